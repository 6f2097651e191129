//! Producers and consumers: registration, presence notices, leaving, eviction.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::config::Limits;
use super::input::{Lifetime, RegisterConsumer, RegisterProducer};
use super::output::{LimitReached, Notice, Output, RefusedRegistration};
use super::realm::{Consumer, Context, Producer, Realm, Session, lower};
use super::roster::Roster;
use super::{ANONYMOUS, DEFAULT_REALM};
use crate::message::SessionId;

impl Realm {
    pub(crate) fn open_session(&mut self, session: SessionId, socket: &str) {
        let state = Session {
            socket: socket.into(),
            producers: Vec::new(),
            consumers: Vec::new(),
            stalled: false,
            paced: false,
            burst: 0,
        };
        self.sessions.insert(session, state);
    }

    pub(crate) fn register_producer(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        ask: RegisterProducer<'_>,
    ) {
        let name = named(ask.name);
        let known = self.producer_names.contains_key(name);
        let entries = if known { 0 } else { self.producers.len() };
        if self.refuses(ctx, session, name, ask.id, entries) {
            return;
        }
        let Some(socket) = self
            .sessions
            .get(&session)
            .map(|state| state.socket.clone())
        else {
            return;
        };
        let id: Arc<str> = ask.id.map_or_else(|| socket.clone(), Arc::from);
        let index = self.producer_entry(name);
        let producer = &mut self.producers[index];
        let fresh = producer.id.is_none();
        let replaced = producer.id.as_ref().is_some_and(|old| *old != id);
        let previous = producer.session.filter(|old| replaced && *old != session);
        producer.id = Some(id);
        if let Some(default_ttl) = ask.default_ttl {
            producer.default_ttl = default_ttl;
        }
        if let Some(previous) = previous {
            let notice = Notice::ProducerReplaced {
                producer: producer.name.clone(),
            };
            ctx.out.push(Output::Notify {
                session: previous,
                notice,
            });
        }
        self.bind_producer(index, session);
        self.introduce_producer(ctx, index, &socket, fresh || replaced);
    }

    /// The entry of a name, made if there is none.
    pub(crate) fn producer_entry(&mut self, name: &str) -> usize {
        if let Some(&index) = self.producer_names.get(name) {
            return index;
        }
        let name: Arc<str> = name.into();
        let index = self.producers.insert(Producer {
            name: name.clone(),
            id: None,
            session: None,
            offline_since_ms: 0,
            default_ttl: Lifetime::Unset,
            audience: BTreeMap::new(),
        });
        let fold: Arc<str> = lower(&name).into();
        self.producer_folds.entry(fold).or_default().push(index);
        self.producer_names.insert(name, index);
        index
    }

    /// Makes a session the one that the name is reached by.
    pub(crate) fn bind_producer(&mut self, index: usize, session: SessionId) {
        let old = self.producers[index].session.replace(session);
        if old == Some(session) {
            return;
        }
        if let Some(state) = old.and_then(|old| self.sessions.get_mut(&old)) {
            state.producers.retain(|held| *held != index);
        }
        if let Some(state) = self.sessions.get_mut(&session) {
            state.producers.push(index);
        }
        self.routes.invalidate();
    }

    /// Tells a producer its subscribers, and its subscribers of it.
    fn introduce_producer(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        socket: &Arc<str>,
        all: bool,
    ) {
        for (consumer, events) in self.unannounced(index, all) {
            self.announce(ctx, index, consumer, events);
            let target = &self.consumers[consumer];
            if let Some(session) = target.session {
                let notice = Notice::ProducerConnected {
                    consumer_id: target.id.clone(),
                    socket: socket.clone(),
                    producer: self.producers[index].name.clone(),
                };
                ctx.out.push(Output::Notify { session, notice });
            }
        }
    }

    /// Consumers with a subscription to this producer, each with the keys that it has not been told (or all).
    fn unannounced(&mut self, producer: usize, all: bool) -> Vec<(usize, Vec<Arc<str>>)> {
        let mut found: Vec<(usize, Vec<Arc<str>>)> = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        let name = lower(&self.producers[producer].name);
        let subs = self.by_producer.get(&*name).into_iter();
        for sub in subs.flat_map(Roster::iter) {
            let sub = &mut self.subs[sub];
            let place = *places.entry(sub.consumer).or_insert(found.len());
            if place == found.len() {
                found.push((sub.consumer, Vec::new()));
            }
            if all || !sub.announced {
                found[place].1.push(sub.key.clone());
            }
            sub.announced = true;
        }
        found
    }

    /// Tells an online producer of a consumer's subscriptions, and remembers whom its leaving concerns.
    pub(crate) fn announce(
        &mut self,
        ctx: &mut Context<'_>,
        producer: usize,
        consumer: usize,
        events: Vec<Arc<str>>,
    ) {
        let target = &mut self.producers[producer];
        let Some(session) = target.session else {
            return;
        };
        target
            .audience
            .insert(consumer, self.consumers[consumer].unique);
        if events.is_empty() {
            return;
        }
        let producer_id = target.id.clone();
        let consumer = &self.consumers[consumer];
        let notice = Notice::SubscribeTo {
            producer_id,
            name: consumer.name.clone(),
            id: consumer.id.clone(),
            socket: self
                .live_session(consumer.session)
                .map(|state| state.socket.clone()),
            events,
        };
        ctx.out.push(Output::Notify { session, notice });
    }

    pub(crate) fn register_consumer(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        ask: RegisterConsumer<'_>,
    ) {
        let name = named(ask.name);
        let known = self.consumer_names.contains_key(name);
        let entries = if known { 0 } else { self.consumers.len() };
        if self.refuses(ctx, session, name, ask.id, entries) {
            return;
        }
        let holder = self
            .consumer_names
            .get(name)
            .and_then(|index| self.consumers[*index].session);
        if holder.is_some_and(|holder| holder != session) {
            let reason = RefusedRegistration::DuplicateConsumer(name.to_owned());
            ctx.out.push(Output::Notify {
                session,
                notice: Notice::Refused(reason),
            });
            ctx.out.push(Output::Disconnect { session });
            return;
        }
        let Some(index) = self.bind_consumer(ctx, session, name, ask.id) else {
            return;
        };
        let consumer = &self.consumers[index];
        let socket = self.sessions[&session].socket.clone();
        for producer in self.producers_of(index) {
            let producer = &self.producers[producer];
            let (Some(target), Some(producer_id)) = (producer.session, producer.id.clone()) else {
                continue;
            };
            let notice = Notice::ConsumerConnected {
                producer_id,
                socket: socket.clone(),
                id: consumer.id.clone(),
                consumer: consumer.name.clone(),
            };
            ctx.out.push(Output::Notify {
                session: target,
                notice,
            });
        }
    }

    /// Makes a session the one that the consumer name is reached by; its subscriptions come alive.
    pub(crate) fn bind_consumer(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        name: &str,
        id: Option<&str>,
    ) -> Option<usize> {
        let socket = self.sessions.get(&session)?.socket.clone();
        let id: Arc<str> = id.map_or(socket, Arc::from);
        let index = match self.consumer_names.get(name) {
            Some(&index) => index,
            None => self.insert_consumer(name.into(), id.clone()),
        };
        self.consumers[index].id = id;
        if self.consumers[index].session.replace(session) != Some(session) {
            self.sessions.get_mut(&session)?.consumers.push(index);
            self.routes.invalidate();
            for sub in self.consumers[index].subs.to_vec() {
                self.save_subscription(ctx, sub);
                self.resume(ctx, sub);
            }
        }
        Some(index)
    }

    /// Makes the entry of a name that has none.
    pub(crate) fn insert_consumer(&mut self, name: Arc<str>, id: Arc<str>) -> usize {
        let unique = self.next_order;
        self.next_order += 1;
        let consumer = Consumer {
            name: name.clone(),
            unique,
            id,
            session: None,
            offline_since_ms: 0,
            away_before_ms: 0,
            subs: Roster::default(),
        };
        let index = self.consumers.insert(consumer);
        self.consumer_names.insert(name, index);
        index
    }

    /// Producers that a consumer named in a subscription.
    fn producers_of(&self, consumer: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut seen = HashSet::new();
        for sub in self.consumers[consumer].subs.iter() {
            let sub = &self.subs[sub];
            if seen.insert(sub.producer_lower.clone()) {
                found.extend_from_slice(self.producers_named(&sub.producer_lower));
            }
        }
        found
    }

    /// Producers that a subscription's producer name stands for, given in lower case.
    pub(crate) fn producers_named(&self, lower: &str) -> &[usize] {
        self.producer_folds
            .get(lower)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Everything that a session held is offline; whom it concerns is told. Only its own entries are touched.
    pub(crate) fn close_session(&mut self, ctx: &mut Context<'_>, session: SessionId) {
        let Some(state) = self.sessions.remove(&session) else {
            return;
        };
        for index in state.producers {
            self.producer_left(ctx, index, session, &state.socket);
        }
        for index in &state.consumers {
            self.consumer_left(ctx, *index, session, &state.socket);
        }
        self.routes.invalidate();
        self.release_session(ctx, session, &state.consumers);
    }

    fn producer_left(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        session: SessionId,
        socket: &Arc<str>,
    ) {
        let producer = &mut self.producers[index];
        if producer.session != Some(session) {
            return;
        }
        producer.session = None;
        producer.offline_since_ms = ctx.now.mono_ms;
        let name = producer.name.clone();
        for (consumer, unique) in &producer.audience {
            let Some(consumer) = self
                .consumers
                .get(*consumer)
                .filter(|it| it.unique == *unique)
            else {
                continue;
            };
            let Some(target) = consumer.session.filter(|target| *target != session) else {
                continue;
            };
            let notice = Notice::ProducerDisconnected {
                consumer_id: consumer.id.clone(),
                socket: socket.clone(),
                producer: name.clone(),
            };
            ctx.out.push(Output::Notify {
                session: target,
                notice,
            });
        }
    }

    fn consumer_left(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        session: SessionId,
        socket: &Arc<str>,
    ) {
        if self.consumers[index].session != Some(session) {
            return;
        }
        self.consumers[index].session = None;
        self.consumers[index].offline_since_ms = ctx.now.mono_ms;
        self.consumers[index].away_before_ms = 0;
        let consumer = self.consumers[index].name.clone();
        for producer in self.producers_of(index) {
            let producer = &self.producers[producer];
            let (Some(target), Some(producer_id)) = (producer.session, producer.id.clone()) else {
                continue;
            };
            if target != session {
                let notice = Notice::ConsumerDisconnected {
                    producer_id,
                    socket: socket.clone(),
                    consumer: consumer.clone(),
                };
                ctx.out.push(Output::Notify {
                    session: target,
                    notice,
                });
            }
        }
    }

    /// Answers and ends a session that may not register; true if it may not.
    fn refuses(
        &self,
        ctx: &mut Context<'_>,
        session: SessionId,
        name: &str,
        id: Option<&str>,
        entries: usize,
    ) -> bool {
        let limits = &ctx.config.limits;
        let held = self.sessions.get(&session).map_or(0, Session::names);
        let limit = check_name(limits, name)
            .and_then(|()| check_name(limits, id.unwrap_or_default()))
            .and_then(|()| {
                if entries >= limits.max_registrations {
                    return Err(LimitReached("max_registrations"));
                }
                if held >= limits.max_registrations_per_session {
                    return Err(LimitReached("max_registrations_per_session"));
                }
                Ok(())
            });
        if let Err(limit) = limit {
            let notice = Notice::Refused(RefusedRegistration::Limit(limit));
            ctx.out.push(Output::Notify { session, notice });
            return true;
        }
        let anonymous = name == ANONYMOUS
            || name
                .strip_prefix(ANONYMOUS)
                .is_some_and(|rest| rest.starts_with('-'));
        let allowed = self
            .policy
            .allow_anonymous
            .unwrap_or(&*self.name == DEFAULT_REALM);
        if anonymous && !allowed {
            let notice = Notice::Refused(RefusedRegistration::AnonymousNotAllowed);
            ctx.out.push(Output::Notify { session, notice });
            ctx.out.push(Output::Disconnect { session });
        }
        anonymous && !allowed
    }
}

/// The name that is registered: an empty one stands for `ANONYMOUS`.
pub(crate) fn named(name: &str) -> &str {
    if name.is_empty() { ANONYMOUS } else { name }
}

pub(crate) fn check_name(limits: &Limits, name: &str) -> Result<(), LimitReached> {
    if name.len() > limits.max_name_bytes {
        Err(LimitReached("max_name_bytes"))
    } else {
        Ok(())
    }
}

pub(crate) fn check_event(limits: &Limits, event: &str) -> Result<(), LimitReached> {
    if event.len() > limits.max_event_bytes {
        Err(LimitReached("max_event_bytes"))
    } else {
        Ok(())
    }
}
