//! The deterministic state machine: inputs with a time in, outputs out. No clock, no randomness, no I/O, no threads.

pub mod clock;
mod config;
mod confirm;
mod counters;
mod delivery;
mod eviction;
mod ids;
mod input;
mod output;
mod publish;
mod queue;
mod realm;
mod registry;
mod rename;
mod restore;
mod roster;
mod route;
mod settle;
mod subscribe;
mod takeover;
mod tally;
pub mod topics;

use std::sync::Arc;

use hashbrown::HashMap;
use slab::Slab;

pub use clock::Now;
pub use config::{Config, IdleEviction, Limits};
pub use counters::{Counters, RealmUsage, Usage};

pub use input::{
    Command, Input, Lifetime, Publish, Reach, RealmPolicy, RegisterConsumer, RegisterProducer,
    ReplyToken, RetryPolicy, StoreToken, Subscribe, SubscriptionSpec, Unsubscribe,
};
pub use output::{
    AckError, Delivery, Key, LimitReached, Notice, Output, PublishError, Published,
    RefusedRegistration, RenameError, Reply,
};

use clock::{Timer, Timers};
use config::SWEEP_INTERVAL_MS;
use ids::Ids;
use realm::{Context, Ledger, Purpose, Realm};

pub use tally::{
    EventCounts, MAX_COUNTED_EVENTS, MAX_COUNTED_NAME_BYTES, MAX_COUNTED_REALMS, OTHER, Tally,
};

use crate::message::SessionId;
use crate::store::StoreResult;

/// Producer name of a subscription to any producer.
pub const ANY_PRODUCER: &str = "TYO-MQ-ALL";

/// [`ANY_PRODUCER`] as it stands in keys.
const ANY_PRODUCER_KEY: &str = "tyo-mq-all";

/// Event name of a subscription to all events.
pub const ALL_EVENTS: &str = "TM-ALL";

/// Name of who gives none.
pub const ANONYMOUS: &str = "ANONYMOUS";

/// The realm of clients that name none.
pub const DEFAULT_REALM: &str = "default";

/// The realm whose subscribers see the messages of all others.
pub const OBSERVER_REALM: &str = "*";

/// The state of one shard: whole realms and their sessions.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    realms: Slab<Realm>,
    realm_names: HashMap<Arc<str>, usize>,
    session_realms: HashMap<SessionId, usize>,
    timers: Timers,
    ids: Ids,
    ledger: Ledger,
    sweep_set: bool,
    past: tally::Past,
}

impl Engine {
    /// An empty engine.
    pub fn new(config: Config) -> Self {
        Self {
            ids: Ids::new(config.seed),
            config,
            realms: Slab::new(),
            realm_names: HashMap::new(),
            session_realms: HashMap::new(),
            timers: Timers::default(),
            ledger: Ledger::default(),
            sweep_set: false,
            past: tally::Past::default(),
        }
    }

    /// When [`Input::Timeout`] is due, in monotonic milliseconds.
    pub fn deadline(&self) -> Option<u64> {
        self.timers.next()
    }

    /// Takes one input; what follows from it is appended to `out`.
    pub fn handle(&mut self, now: Now, input: Input<'_>, out: &mut Vec<Output>) {
        if !self.sweep_set {
            self.sweep_set = true;
            self.timers
                .set(now.mono_ms + self.sweep_interval(), Timer::Sweep);
        }
        match input {
            Input::Opened {
                session,
                realm,
                socket,
            } => {
                let index = self.realm_entry(realm);
                self.session_realms.insert(session, index);
                self.realms[index].open_session(session, socket);
            }
            Input::Command {
                session,
                command,
                reply,
            } => {
                if let Some((realm, mut ctx)) = self.of_session(session, now, out) {
                    realm.command(&mut ctx, session, command, reply);
                }
            }
            Input::Closed { session } => self.on_closed(now, session, out),
            Input::Stalled { session } => {
                if let Some((realm, _)) = self.of_session(session, now, out) {
                    realm.on_stalled(session);
                }
            }
            Input::Drained { session } => {
                if let Some((realm, mut ctx)) = self.of_session(session, now, out) {
                    realm.on_drained(&mut ctx, session);
                }
            }
            other => self.handle_other(now, other, out),
        }
    }

    /// Inputs that no session gives.
    fn handle_other(&mut self, now: Now, input: Input<'_>, out: &mut Vec<Output>) {
        match input {
            Input::Opened { .. }
            | Input::Command { .. }
            | Input::Closed { .. }
            | Input::Stalled { .. }
            | Input::Drained { .. } => {}
            Input::Observed { publish } => {
                let index = self.realm_names.get(OBSERVER_REALM).copied();
                if let Some(index) = index.filter(|_| publish.reach == Reach::Subscribers) {
                    let (realm, mut ctx) = self.split(index, now, out);
                    realm.observe(&mut ctx, publish);
                }
            }
            Input::Stored { token, result } => self.on_stored(now, token, result, out),
            Input::DefaultTtl(ttl_ms) => self.config.default_ttl_ms = ttl_ms,
            Input::Loaded(snapshot) => self.restore(now, snapshot, out),
            Input::Requeue { realm, id, reply } => self.requeue(now, realm, id, reply, out),
            Input::PurgeRealm { realm } => {
                let index = self.realm_entry(realm);
                let (realm, mut ctx) = self.split(index, now, out);
                realm.purge(&mut ctx);
            }
            Input::RenameRealm { from, to, reply } => {
                self.rename_realm(now, (from, to), reply, out)
            }
            Input::Policy { realm, policy } => {
                let index = self.realm_entry(realm);
                self.realms[index].policy = policy;
            }
            Input::Timeout => self.on_timeout(now, out),
        }
    }

    /// Somebody in realm `*` subscribed to something.
    pub fn has_observers(&self) -> bool {
        let realm = self
            .realm_names
            .get(OBSERVER_REALM)
            .map(|index| &self.realms[*index]);
        realm.is_some_and(|realm| !realm.subs.is_empty())
    }

    /// How much is held.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage {
            realms: self.realms.len(),
            store_operations: self.ledger.len(),
            ..Usage::default()
        };
        for (_, realm) in &self.realms {
            usage.sessions += realm.sessions.len();
            usage.producers += realm.producers.len();
            usage.consumers += realm.consumers.len();
            usage.subscriptions += realm.subs.len();
            usage.queues += realm.queues.len();
            usage.in_flight += realm.tracked.len();
            usage.ready += realm
                .queues
                .iter()
                .map(|(_, queue)| queue.ready.len())
                .sum::<usize>();
            usage.stored += realm.stored;
            usage.confirms += realm.confirms.len();
        }
        usage
    }

    /// How much one realm holds: sessions, names and subscriptions.
    pub fn usage_of(&self, realm: &str) -> Usage {
        let realm = self
            .realm_names
            .get(realm)
            .map(|index| &self.realms[*index]);
        realm.map_or_else(Usage::default, |realm| Usage {
            realms: 1,
            sessions: realm.sessions.len(),
            producers: realm.producers.len(),
            consumers: realm.consumers.len(),
            subscriptions: realm.subs.len(),
            stored: realm.stored,
            ..Usage::default()
        })
    }

    fn sweep_interval(&self) -> u64 {
        self.config
            .idle_eviction
            .map_or(SWEEP_INTERVAL_MS, |eviction| eviction.interval_ms.max(1))
    }

    fn realm_entry(&mut self, name: &str) -> usize {
        if let Some(&index) = self.realm_names.get(name) {
            return index;
        }
        let name: Arc<str> = name.into();
        let entry = self.realms.vacant_entry();
        let index = entry.key();
        let mut realm = Realm::new(index, name.clone(), self.config.prefetch);
        self.past.revive(&mut realm);
        entry.insert(realm);
        self.realm_names.insert(name, index);
        index
    }

    fn split<'a>(
        &'a mut self,
        index: usize,
        now: Now,
        out: &'a mut Vec<Output>,
    ) -> (&'a mut Realm, Context<'a>) {
        let ctx = Context {
            now,
            out,
            config: &self.config,
            timers: &mut self.timers,
            ids: &mut self.ids,
            ledger: &mut self.ledger,
        };
        (&mut self.realms[index], ctx)
    }

    fn of_session<'a>(
        &'a mut self,
        session: SessionId,
        now: Now,
        out: &'a mut Vec<Output>,
    ) -> Option<(&'a mut Realm, Context<'a>)> {
        let index = *self.session_realms.get(&session)?;
        Some(self.split(index, now, out))
    }

    fn on_closed(&mut self, now: Now, session: SessionId, out: &mut Vec<Output>) {
        if let Some(index) = self.session_realms.remove(&session) {
            let (realm, mut ctx) = self.split(index, now, out);
            realm.close_session(&mut ctx, session);
        }
    }

    fn on_stored(
        &mut self,
        now: Now,
        token: StoreToken,
        result: StoreResult,
        out: &mut Vec<Output>,
    ) {
        let closed = self.ledger.close(token);
        let Some((index, purpose)) = closed.filter(|(index, _)| self.realms.contains(*index))
        else {
            return;
        };
        if let Purpose::Rename { token } = purpose {
            return self.on_renamed(index, token, result, out);
        }
        let (realm, mut ctx) = self.split(index, now, out);
        match purpose {
            Purpose::Enqueue {
                queue,
                id,
                row,
                confirm,
            } => {
                realm.on_enqueued(queue, (row, &id), &publish::enqueued_at(&result));
                realm.on_kept(&mut ctx, confirm, result);
            }
            Purpose::Ack {
                queue,
                entry,
                session,
                token,
            } => {
                realm.on_ack_stored(&mut ctx, &queue, (*entry, session, token), result);
            }
            Purpose::Fetch { queue, round } => realm.on_page(&mut ctx, queue, round, result),
            Purpose::Purge => realm.on_purged(&mut ctx, result),
            Purpose::Requeue { id, token } => realm.on_requeued(&mut ctx, &id, token, result),
            Purpose::Depart { id, departure, era } => {
                realm.on_departed(&mut ctx, (id, departure, era), &result);
            }
            Purpose::Subscription(name) => {
                realm.on_subscription_stored(&mut ctx, *name, &result);
            }
            Purpose::Rename { .. } | Purpose::Note => {
                realm.counters.store_failures += u64::from(result.is_err());
            }
        }
    }

    fn on_timeout(&mut self, now: Now, out: &mut Vec<Output>) {
        while let Some(timer) = self.timers.pop_due(now.mono_ms) {
            match timer {
                Timer::Queue { realm, queue } => {
                    if self.realms.contains(realm) {
                        let (realm, mut ctx) = self.split(realm, now, out);
                        realm.on_queue_timer(&mut ctx, queue);
                    }
                }
                Timer::Settle { realm } => {
                    if self.realms.contains(realm) {
                        let (realm, mut ctx) = self.split(realm, now, out);
                        realm.settle(&mut ctx);
                    }
                }
                Timer::Sweep => self.sweep(now, out),
            }
        }
    }

    fn sweep(&mut self, now: Now, out: &mut Vec<Output>) {
        for index in 0..self.realms.capacity() {
            if !self.realms.contains(index) {
                continue;
            }
            let (realm, mut ctx) = self.split(index, now, out);
            realm.evict_idle(&mut ctx);
            realm.purge_expired(&mut ctx);
            // What is under way names the realm by its place, which another may get.
            if self.realms[index].is_unused() && self.ledger.is_idle(index) {
                let realm = self.realms.remove(index);
                self.realm_names.remove(&realm.name);
                self.past.keep(realm);
            }
        }
        let realms = &self.realms;
        self.timers.retain(|at_ms, timer| match timer {
            Timer::Queue { realm, queue } => realms
                .get(realm)
                .and_then(|realm| realm.queues.get(queue))
                .is_some_and(|queue| queue.timer_at == Some(at_ms)),
            Timer::Settle { realm } => realms.contains(realm),
            Timer::Sweep => true,
        });
        self.timers
            .set(now.mono_ms + self.sweep_interval(), Timer::Sweep);
    }
}

impl Realm {
    fn command(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        command: Command<'_>,
        token: Option<ReplyToken>,
    ) {
        match command {
            Command::RegisterProducer(ask) => self.register_producer(ctx, session, ask),
            Command::RegisterConsumer(ask) => self.register_consumer(ctx, session, ask),
            Command::Subscribe(ask) => self.subscribe(ctx, session, ask),
            Command::Unsubscribe(ask) => {
                let removed = self.unsubscribe(ctx, session, ask);
                ctx.out.push(Output::Reply {
                    session,
                    token,
                    reply: Reply::Unsubscribed { removed },
                });
            }
            Command::Publish(publish) => self.publish(ctx, session, publish, token),
            Command::Ack { id } => self.ack(ctx, session, id, token),
        }
    }

    fn on_stalled(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.stalled = true;
        }
    }

    fn on_drained(&mut self, ctx: &mut Context<'_>, session: SessionId) {
        let Some(state) = self.sessions.get_mut(&session) else {
            return;
        };
        (state.stalled, state.paced, state.burst) = (false, false, 0);
        let mut queues = Vec::new();
        for consumer in state.consumers.clone() {
            for sub in self.consumers[consumer].subs.iter() {
                queues.extend(self.served_by(sub));
            }
        }
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            self.pump(ctx, queue);
        }
    }
}

impl Usage {
    /// The sum of two.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.realms += other.realms;
        self.sessions += other.sessions;
        self.producers += other.producers;
        self.consumers += other.consumers;
        self.subscriptions += other.subscriptions;
        self.queues += other.queues;
        self.in_flight += other.in_flight;
        self.ready += other.ready;
        self.stored += other.stored;
        self.confirms += other.confirms;
        self.store_operations += other.store_operations;
        self
    }
}
