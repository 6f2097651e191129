//! Publishing: to subscribers, to a realm, to a group; copies for the store, confirms for the producer.

use std::sync::Arc;

use super::clock::Now;
use super::config::{Config, Limits};
use super::delivery::stored_message;
use super::input::{Lifetime, Publish, Reach, ReplyToken};
use super::output::{Delivery, Key, LimitReached, Output, PublishError, Reply};
use super::queue::{Backlog, Entry};
use super::realm::{Context, Purpose, Realm, Session, any_producer_key, lower, subscription_key};
use super::registry::{check_event, check_name, named};
use super::route::{Plain, Route, add_member};
use crate::message::{Message, SessionId};
use crate::store::{StoreOp, StoreReply, StoreResult};

/// One message on its way to its receivers.
struct Publication {
    message: Arc<Message>,
    expires_at_ms: Option<u64>,
    guaranteed: bool,
    number: u64,
    /// The confirm that the rows of this message belong to.
    confirm: Option<usize>,
    routed: usize,
    queued: usize,
    error: Option<PublishError>,
}

impl Realm {
    /// Publishes for a session of this realm.
    pub(crate) fn publish(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        mut publish: Publish<'_>,
        token: Option<ReplyToken>,
    ) {
        if let Err(limit) = check_publish(ctx.config, &publish) {
            if token.is_some() {
                let reply = Reply::Published(Err(limit.into()));
                ctx.out.push(Output::Reply {
                    session,
                    token,
                    reply,
                });
            }
            return;
        }
        self.counters.produced += 1;
        let route = self.route(&publish, Some(session), &ctx.config.limits);
        self.produced.count(route.counter, 1);
        let mut publication = self.publication(ctx, &mut publish, &route);
        if let Some(token) = token {
            publication.confirm = Some(self.open_confirm(ctx, session, token));
        }
        self.dispatch(ctx, &mut publication, publish, &route);
        if let Some(confirm) = publication.confirm {
            let state = &mut self.confirms[confirm];
            (state.routed, state.queued) = (publication.routed, publication.queued);
            if state.error.is_none() {
                state.error = publication.error;
            }
            self.close_confirm(ctx, confirm);
        }
    }

    /// Shows a message of another realm to the observers in this one.
    pub(crate) fn observe(&mut self, ctx: &mut Context<'_>, mut publish: Publish<'_>) {
        let route = self.route(&publish, None, &ctx.config.limits);
        let mut publication = self.publication(ctx, &mut publish, &route);
        self.reach_subscribers(ctx, &mut publication, &route, publish.recipients.as_deref());
    }

    /// The route of a message; the producer is registered on this session if nobody holds its name.
    fn route(
        &mut self,
        publish: &Publish<'_>,
        session: Option<SessionId>,
        limits: &Limits,
    ) -> Arc<Route> {
        let producer = named(publish.producer);
        let known = self.routes.find(producer, publish.event, limits.max_routes);
        if let Some(route) = known.filter(|route| route.held || session.is_none()) {
            return route;
        }
        if let Some(session) = session {
            self.register_implicitly(session, producer, publish.producer_id, limits);
        }
        let route = Arc::new(self.build_route(producer, publish.event));
        self.routes.remember(&route, limits.max_routes);
        route
    }

    /// Who produces under a name that no session holds, holds it; at a limit of names the message goes without.
    fn register_implicitly(
        &mut self,
        session: SessionId,
        name: &str,
        id: Option<&str>,
        limits: &Limits,
    ) {
        let known = self.producer_names.get(name).copied();
        let names = self.sessions.get(&session).map_or(0, Session::names);
        let held = known.is_some_and(|it| self.producers[it].session.is_some());
        let no_place = known.is_none() && self.producers.len() >= limits.max_registrations;
        if held || no_place || names >= limits.max_registrations_per_session {
            return;
        }
        let index = self.producer_entry(name);
        if let Some(id) = id {
            self.producers[index].id = Some(id.into());
        }
        self.bind_producer(index, session);
    }

    fn publication(
        &mut self,
        ctx: &Context<'_>,
        publish: &mut Publish<'_>,
        route: &Route,
    ) -> Publication {
        self.publications += 1;
        let message = Message {
            event: route.event.clone(),
            producer: route.producer.clone(),
            body: std::mem::take(&mut publish.body),
            attachments: std::mem::take(&mut publish.attachments),
        };
        let lifetime = if publish.lifetime == Lifetime::Unset {
            route.default_ttl
        } else {
            publish.lifetime
        };
        Publication {
            message: Arc::new(message),
            expires_at_ms: expires_at(ctx.config, ctx.now, lifetime),
            guaranteed: publish.guaranteed,
            number: self.publications,
            confirm: None,
            routed: 0,
            queued: 0,
            error: None,
        }
    }

    fn dispatch(
        &mut self,
        ctx: &mut Context<'_>,
        publication: &mut Publication,
        publish: Publish<'_>,
        route: &Route,
    ) {
        match publish.reach {
            Reach::Subscribers => {
                self.reach_subscribers(ctx, publication, route, publish.recipients.as_deref())
            }
            Reach::Realm => self.reach_realm(ctx, publication),
            Reach::Group(group) => self.reach_group(ctx, publication, route, group),
        }
    }

    fn reach_subscribers(
        &mut self,
        ctx: &mut Context<'_>,
        publication: &mut Publication,
        route: &Route,
        recipients: Option<&[&str]>,
    ) {
        if let Some(recipients) = recipients {
            return self.reach_recipients(ctx, publication, recipients);
        }
        for Plain {
            key,
            counter,
            sessions,
        } in &route.plain
        {
            publication.routed += sessions.len();
            self.counters.delivered += sessions.len() as u64;
            self.delivered.count(*counter, sessions.len() as u64);
            let delivery = Delivery {
                key: key.clone(),
                message: publication.message.clone(),
                receipt: None,
            };
            ctx.out.push(match &**sessions {
                [session] => Output::Deliver {
                    session: *session,
                    delivery,
                },
                _ => Output::FanOut {
                    sessions: sessions.clone(),
                    delivery,
                },
            });
        }
        for sub in &route.single {
            self.reach_subscription(ctx, publication, *sub);
        }
        for (group, members) in &route.groups {
            if let Some(sub) = self.choose_member(group, members) {
                self.reach_subscription(ctx, publication, sub);
            }
        }
    }

    /// As to subscribers, but only those whose consumer is named.
    fn reach_recipients(
        &mut self,
        ctx: &mut Context<'_>,
        publication: &mut Publication,
        recipients: &[&str],
    ) {
        let message = publication.message.clone();
        let mut groups: Vec<(Arc<str>, Vec<usize>)> = Vec::new();
        for sub in self.matching(&message.producer, &message.event) {
            let consumer = &self.consumers[self.subs[sub].consumer].name;
            if !recipients.contains(&&**consumer) {
                continue;
            }
            match self.subs[sub].spec.group.clone() {
                None => self.reach_subscription(ctx, publication, sub),
                Some(group) => add_member(&mut groups, &group, sub),
            }
        }
        for (group, members) in groups {
            if let Some(sub) = self.choose_member(&group, &members) {
                self.reach_subscription(ctx, publication, sub);
            }
        }
    }

    /// One copy for one subscription: sent now, kept, or dropped.
    fn reach_subscription(
        &mut self,
        ctx: &mut Context<'_>,
        publication: &mut Publication,
        sub: usize,
    ) {
        let state = &self.subs[sub];
        let session = self.live_session(self.consumers[state.consumer].session);
        let (online, stalled) = (
            session.is_some(),
            session.is_some_and(|session| session.stalled),
        );
        let keep = state.spec.durable || publication.guaranteed;
        let idle = state.queue.is_none_or(|queue| self.queues[queue].is_idle());
        if !state.spec.ack && online && idle && !(stalled && keep) {
            publication.routed += 1;
            return self.emit(ctx, sub, publication.message.clone(), None);
        }
        if !online && !keep {
            return;
        }
        let queue = self.queue_of(sub);
        if !online && self.is_served_otherwise(queue, publication.number) {
            return;
        }
        self.queues[queue].last_publication = publication.number;
        publication.routed += 1;
        self.offer(ctx, publication, sub, queue, keep);
    }

    /// Another subscription with the same identity takes the copy, or the queue has its copy already.
    fn is_served_otherwise(&self, queue: usize, publication: u64) -> bool {
        let queue = &self.queues[queue];
        let online = |sub: &usize| self.consumers[self.subs[*sub].consumer].session.is_some();
        queue.last_publication == publication || queue.subs.iter().any(online)
    }

    /// Puts a copy at the end of a queue; straight into a session's hands if nothing stands before it.
    fn offer(
        &mut self,
        ctx: &mut Context<'_>,
        publication: &mut Publication,
        sub: usize,
        queue: usize,
        keep: bool,
    ) {
        let idle = self.queues[queue].is_idle();
        // What stands behind stored messages must be stored too, or it would overtake them.
        let keep = keep || self.queues[queue].backlog.is_some() || !self.subs[sub].spec.ack;
        let most = ctx.config.limits.max_queued_per_realm;
        let full = (self.policy.max_queued.or(most)).is_some_and(|most| self.stored >= most);
        if keep && full {
            return self.refuse_full(publication);
        }
        let mut entry = Entry {
            id: ctx.ids.next(ctx.now.wall_ms),
            message: publication.message.clone(),
            created_at_ms: ctx.now.wall_ms,
            expires_at_ms: publication.expires_at_ms,
            attempts: 0,
            stored: keep,
            row: 0,
            order: super::queue::UNDELIVERED,
        };
        let direct = idle && self.has_room(sub);
        if keep && !direct && super::delivery::is_expired(&entry, ctx.now.wall_ms) {
            entry.stored = false;
            return self.expire(ctx, queue, entry);
        }
        if direct {
            entry.attempts = 1;
        }
        if keep {
            self.keep(ctx, publication, queue, &mut entry);
        }
        if direct {
            self.deliver_entry(ctx, queue, sub, entry, true);
        } else if keep {
            self.queue_behind(ctx, queue);
        } else {
            self.wait_in_memory(ctx, queue, entry);
        }
    }

    fn refuse_full(&mut self, publication: &mut Publication) {
        self.counters.dropped += 1;
        self.counters.over_quota += 1;
        publication.error = Some(PublishError::QueueFull(self.stored));
    }

    fn keep(
        &mut self,
        ctx: &mut Context<'_>,
        publication: &mut Publication,
        queue: usize,
        entry: &mut Entry,
    ) {
        self.rows += 1;
        entry.row = self.rows;
        publication.queued += 1;
        self.counters.queued += 1;
        self.stored += 1;
        self.queues[queue].stored += 1;
        if let Some(confirm) = publication.confirm {
            self.confirms[confirm].waiting += 1;
        }
        let reference = self.queue_ref(queue);
        let purpose = Purpose::Enqueue {
            queue: reference,
            id: entry.id.clone(),
            row: entry.row,
            confirm: publication.confirm,
        };
        let row = stored_message(&self.queues[queue], entry.clone());
        ctx.store(self.index, StoreOp::Enqueue(row), purpose);
    }

    /// A stored message that nobody can take yet: it is read when somebody can.
    fn queue_behind(&mut self, ctx: &mut Context<'_>, index: usize) {
        let queue = &mut self.queues[index];
        let tail = queue.tail;
        let backlog = queue.backlog.get_or_insert(Backlog {
            after: tail,
            ..Backlog::default()
        });
        backlog.grown = true;
        self.pump(ctx, index);
    }

    /// A message that is not stored waits behind the window, within a bound.
    fn wait_in_memory(&mut self, ctx: &Context<'_>, index: usize, entry: Entry) {
        let limits = &ctx.config.limits;
        let queue = &mut self.queues[index];
        let room = queue.ready.len() < limits.max_unstored_waiting
            && queue.ready_bytes + entry.message.size() <= limits.max_unstored_waiting_bytes;
        if room {
            queue.ready_bytes += entry.message.size();
            queue.ready.push_back(entry);
        } else {
            self.counters.dropped += 1;
        }
    }

    /// To every registered session, under each name that it can be listening to.
    fn reach_realm(&mut self, ctx: &mut Context<'_>, publication: &mut Publication) {
        let sessions: Arc<[SessionId]> = self.registered_sessions().into();
        publication.routed = sessions.len();
        let message = &publication.message;
        let mut keys = vec![Key::Exact(message.event.clone())];
        for name in [
            subscription_key(&message.producer, &message.event),
            any_producer_key(&message.event),
            // Under this one name alone, unlike what is published to subscribers.
            [&lower(&message.producer), "-TM-ALL"].concat(),
        ] {
            let key = Key::Exact(name.into());
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        for key in keys {
            let delivery = Delivery {
                key,
                message: message.clone(),
                receipt: None,
            };
            ctx.out.push(Output::FanOut {
                sessions: sessions.clone(),
                delivery,
            });
        }
    }

    /// To every online member of a group once, under the key that the event matches, else under the first.
    fn reach_group(
        &mut self,
        ctx: &mut Context<'_>,
        publication: &mut Publication,
        route: &Route,
        group: &str,
    ) {
        let matching = route.groups.iter().find(|(name, _)| **name == *group);
        let matching = matching
            .map(|(_, members)| members.as_slice())
            .unwrap_or_default();
        let members = self
            .groups
            .get(group)
            .map(|group| group.members.clone())
            .unwrap_or_default();
        let mut served = hashbrown::HashSet::new();
        for sub in matching.iter().copied().chain(members) {
            let consumer = self.subs[sub].consumer;
            let online = self.consumers[consumer].session.is_some();
            if online && served.insert(consumer) {
                publication.routed += 1;
                self.emit(ctx, sub, publication.message.clone(), None);
            }
        }
    }
}

/// The position that a successful enqueue gives.
pub(crate) fn enqueued_at(result: &StoreResult) -> Result<crate::store::Position, ()> {
    match result {
        Ok(StoreReply::Enqueued(position)) => Ok(*position),
        _ => Err(()),
    }
}

fn check_publish(config: &Config, publish: &Publish<'_>) -> Result<(), LimitReached> {
    check_name(&config.limits, publish.producer)?;
    check_name(&config.limits, publish.producer_id.unwrap_or_default())?;
    for name in publish.recipients.iter().flatten() {
        check_name(&config.limits, name)?;
    }
    if let Reach::Group(name) = publish.reach {
        check_name(&config.limits, name)?;
    }
    check_event(&config.limits, publish.event)
}

fn expires_at(config: &Config, now: Now, lifetime: Lifetime) -> Option<u64> {
    let ttl_ms = match lifetime {
        Lifetime::Unset | Lifetime::Broker => config.default_ttl_ms,
        Lifetime::Millis(ttl_ms) => Some(ttl_ms),
        Lifetime::Never => None,
    };
    ttl_ms.map(|ttl_ms| now.wall_ms.saturating_add(ttl_ms))
}
