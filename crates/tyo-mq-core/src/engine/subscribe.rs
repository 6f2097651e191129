//! Subscriptions: made, changed, indexed, ended. What they deliver is decided in `route` and `queue`.

use std::sync::Arc;

use super::config::Limits;
use super::input::{Subscribe, SubscriptionSpec, Unsubscribe};
use super::output::{LimitReached, Notice, Output};
use super::realm::{
    ALL_EVENTS_SUFFIX, Context, Realm, Session, Subscription, lower, subscription_key,
};
use super::registry::{check_event, check_name, named};
use super::settle::SubscriptionName;
use super::{ALL_EVENTS, ANY_PRODUCER};
use crate::message::SessionId;
use crate::store::QueueKey;

impl Realm {
    pub(crate) fn subscribe(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        ask: Subscribe<'_>,
    ) {
        if let Err(limit) = self.check_subscribe(&ctx.config.limits, session, &ask) {
            ctx.out.push(Output::Notify {
                session,
                notice: Notice::SubscribeRefused(limit),
            });
            return;
        }
        let name = named(ask.consumer);
        let Some(socket) = self
            .sessions
            .get(&session)
            .map(|state| state.socket.clone())
        else {
            return;
        };
        let consumer = match self.consumer_names.get(name) {
            Some(&index) if self.consumers[index].session.is_some() => index,
            _ => match self.bind_consumer(ctx, session, name, ask.id) {
                Some(index) => index,
                None => return,
            },
        };
        let consumer_id: Arc<str> = ask.consumer_id.map_or(socket, Arc::from);
        let (sub, changed) = self.put_subscription(ctx, consumer, consumer_id, ask.spec);
        self.announce_subscription(ctx, sub);
        if changed {
            self.save_subscription(ctx, sub);
        }
        self.claim(ctx, sub);
    }

    fn check_subscribe(
        &self,
        limits: &Limits,
        session: SessionId,
        ask: &Subscribe<'_>,
    ) -> Result<(), LimitReached> {
        check_name(limits, ask.consumer)?;
        check_name(limits, ask.id.unwrap_or_default())?;
        check_name(limits, ask.consumer_id.unwrap_or_default())?;
        check_name(limits, &ask.spec.producer)?;
        check_name(limits, ask.spec.group.as_deref().unwrap_or_default())?;
        check_event(limits, &ask.spec.event)?;
        let known = self.consumer_names.get(named(ask.consumer)).copied();
        let online = known.is_some_and(|it| self.consumers[it].session.is_some());
        let key = subscription_key(&ask.spec.producer, event_name(&ask.spec));
        if self.subs.len() >= limits.max_subscriptions
            && known.is_none_or(|it| self.subscription_of(it, &key).is_none())
        {
            return Err(LimitReached("max_subscriptions"));
        }
        let held = self.sessions.get(&session).map_or(0, Session::names);
        if !online && held >= limits.max_registrations_per_session {
            return Err(LimitReached("max_registrations_per_session"));
        }
        if known.is_none() && self.consumers.len() >= limits.max_registrations {
            return Err(LimitReached("max_registrations"));
        }
        Ok(())
    }

    /// The subscription of (key, consumer), made or replaced; and whether that changed anything that is kept.
    pub(crate) fn put_subscription(
        &mut self,
        ctx: &mut Context<'_>,
        consumer: usize,
        consumer_id: Arc<str>,
        mut spec: SubscriptionSpec,
    ) -> (usize, bool) {
        if spec.all_events {
            spec.event = ALL_EVENTS.into();
            spec.topic = false;
        }
        let key = subscription_key(&spec.producer, &spec.event);
        let existing = self.subscription_of(consumer, &key);
        self.routes.invalidate();
        match existing {
            Some(index) => {
                let known = &self.subs[index];
                let changed = known.spec != spec || known.consumer_id != consumer_id;
                self.replace_subscription(ctx, index, consumer_id, spec);
                (index, changed)
            }
            None => {
                let index = self.insert_subscription(consumer, key.into(), consumer_id, spec);
                (index, true)
            }
        }
    }

    pub(crate) fn subscription_of(&self, consumer: usize, key: &str) -> Option<usize> {
        let of_consumer = &self.consumers[consumer].subs;
        let is_it =
            |sub: &usize| *self.subs[*sub].key == *key && self.subs[*sub].consumer == consumer;
        // Whichever list is shorter. Subscriptions to all events have none by key.
        match self.by_key.get(key) {
            _ if key.ends_with(ALL_EVENTS_SUFFIX) => of_consumer.iter().find(is_it),
            Some(of_key) if of_key.len() < of_consumer.len() => of_key.iter().find(is_it),
            Some(_) => of_consumer.iter().find(is_it),
            None => None,
        }
    }

    fn insert_subscription(
        &mut self,
        consumer: usize,
        key: Arc<str>,
        consumer_id: Arc<str>,
        spec: SubscriptionSpec,
    ) -> usize {
        let order = self.next_order;
        self.next_order += 1;
        let counter = self.delivered.place(&key);
        let index = self.subs.insert(Subscription {
            consumer,
            key,
            producer_lower: lower(&spec.producer).into(),
            event_lower: lower(&spec.event).into(),
            consumer_id,
            spec,
            announced: false,
            resume_at_ms: None,
            queue: None,
            in_flight: 0,
            counter,
            order,
        });
        self.consumers[consumer].subs.insert(order, index);
        self.index_names(index);
        self.index_options(index);
        index
    }

    /// The indexes by key and by producer.
    fn index_names(&mut self, index: usize) {
        let sub = &self.subs[index];
        let (producer, order) = (sub.producer_lower.clone(), sub.order);
        if sub.spec.all_events {
            self.all_events
                .entry(producer.clone())
                .or_default()
                .insert(order, index);
        } else {
            let of_key = self.by_key.entry(sub.key.clone()).or_default();
            of_key.insert(order, index);
        }
        if !sub.any_producer() {
            let of_producer = self.by_producer.entry(producer).or_default();
            of_producer.insert(order, index);
        }
    }

    fn unindex_names(&mut self, index: usize) {
        let sub = &self.subs[index];
        let indexes = [
            (&mut self.by_key, &sub.key),
            (&mut self.all_events, &sub.producer_lower),
            (&mut self.by_producer, &sub.producer_lower),
        ];
        for (map, key) in indexes {
            if let Some(list) = map.get_mut(key) {
                list.remove(sub.order);
                if list.is_empty() {
                    map.remove(key);
                }
            }
        }
    }

    /// New options for a known key: what is in flight stays so.
    fn replace_subscription(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        consumer_id: Arc<str>,
        spec: SubscriptionSpec,
    ) {
        self.unindex_options(index);
        let names = (lower(&spec.producer), lower(&spec.event), spec.all_events);
        let sub = &self.subs[index];
        let known = (&*sub.producer_lower, &*sub.event_lower, sub.spec.all_events);
        let any = (sub.any_producer(), &*spec.producer == ANY_PRODUCER);
        // Another producer and event may share the key: `a`, `b-c` and `a-b`, `c`.
        let renamed = (&*names.0, &*names.1, names.2) != known || any.0 != any.1;
        if renamed {
            self.unindex_names(index);
        }
        let old_group = sub_group_left(&self.subs[index].spec, &spec);
        let sub = &mut self.subs[index];
        let moved = sub.consumer_id != consumer_id;
        let (old_id, was_durable) = (sub.consumer_id.clone(), sub.spec.durable);
        (sub.producer_lower, sub.event_lower) = (names.0.into(), names.1.into());
        sub.consumer_id = consumer_id;
        sub.spec = spec;
        sub.announced = false;
        let forgotten = was_durable && (moved || !sub.spec.durable);
        if renamed {
            self.index_names(index);
        }
        if forgotten {
            let name = self.subscription_name(index, old_id);
            self.forget_subscription(ctx, name);
        }
        if moved {
            self.leave_queue(ctx, index);
        }
        if let Some(group) = old_group {
            self.leave_group(ctx, index, &group);
        }
        self.index_options(index);
    }

    fn subscription_name(&self, index: usize, consumer_id: Arc<str>) -> SubscriptionName {
        let sub = &self.subs[index];
        let consumer_name = self.consumers[sub.consumer].name.clone();
        (sub.key.clone(), consumer_id, consumer_name)
    }

    /// The indexes that depend on the options of a subscription.
    fn index_options(&mut self, index: usize) {
        let sub = &self.subs[index];
        if sub.spec.topic {
            self.topics.insert(&sub.event_lower, index);
        }
        if let Some(group) = &sub.spec.group {
            self.groups
                .entry(group.clone())
                .or_default()
                .members
                .push(index);
        }
    }

    fn unindex_options(&mut self, index: usize) {
        let sub = &self.subs[index];
        if sub.spec.topic {
            self.topics.remove(&sub.event_lower, index);
        }
        if let Some(name) = &sub.spec.group
            && let Some(group) = self.groups.get_mut(name)
        {
            group.members.retain(|member| *member != index);
            // The turn of a key goes with its last member.
            if !group.members.iter().any(|it| self.subs[*it].key == sub.key) {
                group.turns.remove(&sub.key);
            }
            if group.members.is_empty() {
                self.groups.remove(name);
            }
        }
    }

    fn announce_subscription(&mut self, ctx: &mut Context<'_>, index: usize) {
        let sub = &self.subs[index];
        let (consumer, key) = (sub.consumer, sub.key.clone());
        if sub.any_producer() {
            let own_name = self.consumers[consumer].name.clone();
            let others: Vec<usize> = self
                .producers
                .iter()
                .filter(|(_, it)| it.name != own_name)
                .map(|(index, _)| index)
                .collect();
            for producer in others {
                self.announce(ctx, producer, consumer, vec![key.clone()]);
            }
            return;
        }
        for producer in self.producers_named(&sub.producer_lower).to_vec() {
            if self.producers[producer].session.is_some() {
                self.announce(ctx, producer, consumer, vec![key.clone()]);
                self.subs[index].announced = true;
            }
        }
    }

    pub(crate) fn queue_key(&self, key: &Arc<str>, consumer: &Arc<str>) -> QueueKey {
        QueueKey {
            realm: self.name.clone(),
            key: key.clone(),
            consumer: consumer.clone(),
        }
    }

    /// Ends subscriptions of the consumers on this session; returns how many.
    pub(crate) fn unsubscribe(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        ask: Unsubscribe<'_>,
    ) -> usize {
        let Some(state) = self.sessions.get(&session) else {
            return 0;
        };
        let (key, event, producer, only) = match ask {
            Unsubscribe::Key(key) => (Some(lower(key)), String::new(), None, None),
            Unsubscribe::Event {
                event,
                producer,
                consumer,
            } => (None, lower(event), producer.map(lower), consumer),
        };
        let mut found = Vec::new();
        for consumer in &state.consumers {
            let consumer = &self.consumers[*consumer];
            if consumer.session != Some(session)
                || only.is_some_and(|only| named(only) != &*consumer.name)
            {
                continue;
            }
            found.extend(consumer.subs.iter().filter(|index| {
                let sub = &self.subs[*index];
                match &key {
                    Some(key) => *sub.key == **key,
                    None => match &producer {
                        Some(it) => *sub.event_lower == *event && *sub.producer_lower == **it,
                        None => *sub.event_lower == *event || *sub.key == *event,
                    },
                }
            }));
        }
        for sub in &found {
            self.remove_subscription(ctx, *sub);
        }
        found.len()
    }

    pub(crate) fn remove_subscription(&mut self, ctx: &mut Context<'_>, index: usize) {
        if self.subs[index].spec.durable {
            let name = self.subscription_name(index, self.subs[index].consumer_id.clone());
            self.forget_subscription(ctx, name);
        }
        // First no member, so that nothing comes back to it.
        self.unindex_options(index);
        self.unindex_names(index);
        self.leave_queue(ctx, index);
        if let Some(group) = self.subs[index].spec.group.clone() {
            self.leave_group(ctx, index, &group);
        }
        self.routes.invalidate();
        let sub = self.subs.remove(index);
        if let Some(consumer) = self.consumers.get_mut(sub.consumer) {
            consumer.subs.remove(sub.order);
        }
    }
}

/// The event that stands in the key.
fn event_name(spec: &SubscriptionSpec) -> &str {
    if spec.all_events {
        ALL_EVENTS
    } else {
        &spec.event
    }
}

/// The group that new options leave.
fn sub_group_left(old: &SubscriptionSpec, new: &SubscriptionSpec) -> Option<Arc<str>> {
    old.group.clone().filter(|_| old.group != new.group)
}
