//! The tokio shell around the engine: shards, timers, the store executor, in-process sessions.
//!
//! A realm belongs to one shard. A command locks its shard for the moment that the engine takes and appends what
//! follows to outbound queues before it unlocks, so the order of each session holds; writing comes after.

mod adopt;
mod clock;
mod executor;
mod local;
mod outlet;
mod rename;
mod shard;
mod slot;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::JoinHandle;

pub use adopt::WeakBroker;
pub use executor::ExecutorLimits;
pub use local::{LocalEvent, LocalSession, PublishOptions};
pub use outlet::{Flushes, Memo, Outlet, Pressure};
pub use rename::MAX_MOVED_REALMS;

use clock::Clock;
use executor::Executor;
use rename::{KnownRealm, Moved};
use shard::Shard;
use slot::StoreSlot;

use crate::engine::{
    Command, Config, Counters, Engine, Input, OBSERVER_REALM, Publish, Reach, RealmPolicy,
    RealmUsage, ReplyToken, Tally, Usage,
};
use crate::message::{MessageId, SessionId};
use crate::store::{DeadLetter, DeadLetterPage, Snapshot, Store, StoreError};

/// A running broker; clones are handles to the same one. It must be made inside a tokio runtime.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    shards: Arc<[Arc<Shard>]>,
    store: Arc<StoreSlot>,
    executor: Arc<Executor>,
    tasks: std::sync::Mutex<Tasks>,
    hasher: hashbrown::DefaultHashBuilder,
    moved: Moved,
}

struct Tasks {
    timers: Vec<JoinHandle<()>>,
    executor: Option<JoinHandle<()>>,
}

/// How a broker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// Settings of each engine. The seed is varied by shard.
    pub engine: Config,
    /// Number of shards, at least 1.
    pub shards: usize,
    /// Bounds of what waits for the store.
    pub executor: ExecutorLimits,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        let shards = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            engine: Config::default(),
            shards,
            executor: ExecutorLimits::default(),
        }
    }
}

impl Broker {
    /// Reads what the store holds and starts.
    ///
    /// # Errors
    /// What the store says when it cannot be read.
    pub async fn start(config: RuntimeConfig, store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let snapshot = store.load().await?;
        let executor = Arc::new(Executor::new(config.executor));
        let clock = Clock::new();
        let shards: Arc<[Arc<Shard>]> = (0..config.shards.max(1))
            .map(|index| {
                let seed = config.engine.seed ^ (index as u64).wrapping_mul(0xa076_1d64_78bd_642f);
                let engine = Engine::new(Config {
                    seed,
                    ..config.engine.clone()
                });
                Arc::new(Shard::new(
                    index,
                    engine,
                    store.clone(),
                    executor.clone(),
                    clock,
                ))
            })
            .collect();
        let timers = shards
            .iter()
            .map(|shard| tokio::spawn(shard.clone().keep_time()))
            .collect();
        let store = Arc::new(StoreSlot::new(store));
        let task = tokio::spawn(executor.clone().run(store.clone(), shards.clone()));
        let broker = Self {
            inner: Arc::new(Inner {
                shards,
                store,
                executor,
                tasks: std::sync::Mutex::new(Tasks {
                    timers,
                    executor: Some(task),
                }),
                hasher: hashbrown::DefaultHashBuilder::default(),
                moved: Moved::default(),
            }),
        };
        broker.restore(snapshot);
        Ok(broker)
    }

    fn restore(&self, snapshot: Snapshot) {
        let mut parts: Vec<Snapshot> = self
            .inner
            .shards
            .iter()
            .map(|_| Snapshot::default())
            .collect();
        for subscription in snapshot.subscriptions {
            parts[self.shard_index(&subscription.queue.realm)]
                .subscriptions
                .push(subscription);
        }
        for queue in snapshot.queues {
            parts[self.shard_index(&queue.0.realm)].queues.push(queue);
        }
        for (shard, part) in self.inner.shards.iter().zip(parts) {
            shard.input(Input::Loaded(part), &mut Flushes::new());
            shard.refresh_observed();
        }
    }

    /// Where a realm is: by its name, unless it was renamed.
    fn shard_index(&self, realm: &str) -> usize {
        let moved = self.inner.moved.shard_of(realm);
        moved.unwrap_or_else(|| self.hashed_index(realm))
    }

    fn hashed_index(&self, realm: &str) -> usize {
        let mut hasher = self.inner.hasher.build_hasher();
        hasher.write(realm.as_bytes());
        (hasher.finish() % self.inner.shards.len() as u64) as usize
    }

    fn shard(&self, realm: &str) -> &Arc<Shard> {
        &self.inner.shards[self.shard_index(realm)]
    }

    /// Opens a session in a realm. `socket` is the public id that others see; it should not repeat.
    pub fn open(&self, realm: &str, socket: &str, outlet: Arc<dyn Outlet>) -> Session {
        // No realm moves meanwhile.
        let moved = self.inner.moved.read();
        let shard = moved.shard_of(realm);
        let shard = shard.unwrap_or_else(|| self.hashed_index(realm));
        let id = self.inner.shards[shard].open(realm, socket, outlet);
        drop(moved);
        Session {
            broker: self.clone(),
            shard,
            id,
            observes: realm == OBSERVER_REALM,
            realm: KnownRealm::default(),
        }
    }

    /// Opens a session inside this process, for embedders.
    pub fn connect(&self, realm: &str) -> LocalSession {
        LocalSession::open(self, realm)
    }

    /// Changes what a realm allows.
    pub fn set_policy(&self, realm: &str, policy: RealmPolicy) {
        self.shard(realm)
            .input(Input::Policy { realm, policy }, &mut Flushes::new());
    }

    /// Ends a realm: its sessions are disconnected, its subscriptions, messages and dead letters forgotten.
    pub fn purge_realm(&self, realm: &str) {
        let shard = self.shard(realm);
        shard.input(Input::PurgeRealm { realm }, &mut Flushes::new());
        self.inner.moved.forget(realm);
    }

    /// What has been counted.
    pub fn counters(&self) -> Counters {
        let counters = self
            .inner
            .shards
            .iter()
            .map(|shard| shard.read(Engine::counters));
        counters.fold(Counters::default(), |sum, part| sum.plus(&part))
    }

    /// How much is held.
    pub fn usage(&self) -> Usage {
        let usages = self
            .inner
            .shards
            .iter()
            .map(|shard| shard.read(Engine::usage));
        usages.fold(Usage::default(), |sum, part| sum.plus(&part))
    }

    /// How much one realm holds: sessions, names and subscriptions.
    pub fn usage_of(&self, realm: &str) -> Usage {
        self.shard(realm).read(|engine| engine.usage_of(realm))
    }

    /// What has been counted in each realm, a bounded number of them by name.
    pub fn tallies(&self) -> BTreeMap<Arc<str>, Tally> {
        let mut sums = BTreeMap::new();
        for shard in self.inner.shards.iter() {
            shard.read(|engine| engine.add_tallies(&mut sums));
        }
        sums
    }

    /// What each realm holds that is in memory.
    pub fn realm_usages(&self) -> BTreeMap<Arc<str>, RealmUsage> {
        let mut sums = BTreeMap::new();
        for shard in self.inner.shards.iter() {
            shard.read(|engine| engine.add_realm_usages(&mut sums));
        }
        sums
    }

    /// The message store in use.
    pub fn store(&self) -> Arc<dyn Store> {
        self.inner.store.current()
    }

    /// Lists dead letters of a realm, or of all, oldest first.
    ///
    /// # Errors
    /// What the store says.
    pub async fn dead_letters(
        &self,
        realm: Option<&str>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<DeadLetterPage, StoreError> {
        let store = self.inner.store.enter().await;
        store.dead_letters(realm.map(Arc::from), after, limit).await
    }

    /// Shows one dead letter.
    ///
    /// # Errors
    /// What the store says.
    pub async fn dead_letter(
        &self,
        realm: Option<&str>,
        id: &str,
    ) -> Result<Option<DeadLetter>, StoreError> {
        let store = self.inner.store.enter().await;
        store
            .dead_letter(realm.map(Arc::from), MessageId::from(id))
            .await
    }

    /// Puts a dead letter back at the end of its queue, with its origin and expiry; false if there is none.
    ///
    /// # Errors
    /// What the store says.
    pub async fn replay_dead_letter(&self, realm: &str, id: &str) -> Result<bool, StoreError> {
        let gone = |_| StoreError::Unavailable("the broker is shutting down".to_owned());
        self.shard(realm).requeue(realm, id).await.map_err(gone)?
    }

    /// Forgets one dead letter; false if there is none.
    ///
    /// # Errors
    /// What the store says.
    pub async fn discard_dead_letter(
        &self,
        realm: Option<&str>,
        id: &str,
    ) -> Result<bool, StoreError> {
        let store = self.inner.store.enter().await;
        store
            .discard_dead_letter(realm.map(Arc::from), MessageId::from(id))
            .await
    }

    /// Ends: everything accepted is written, then the store is closed. Sessions should be closed before.
    pub async fn shutdown(&self) {
        self.inner.executor.close();
        let (timers, executor) = {
            let mut tasks = self
                .inner
                .tasks
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            (std::mem::take(&mut tasks.timers), tasks.executor.take())
        };
        for timer in timers {
            timer.abort();
        }
        if let Some(executor) = executor {
            // It ends by itself when nothing waits any more; a panic there is reported by tokio.
            let _ = executor.await;
        }
        self.inner.store.current().close().await;
    }

    /// Shows a message to the observers in realm `*`, if there are any.
    fn observe(&self, publish: &Publish<'_>, flushes: &mut Flushes) {
        let shard = &self.inner.shards[self.hashed_index(OBSERVER_REALM)];
        if shard.observed.load(Ordering::Relaxed) && publish.reach == Reach::Subscribers {
            shard.input(
                Input::Observed {
                    publish: publish.clone(),
                },
                flushes,
            );
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.executor.close();
        let tasks = self
            .tasks
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for timer in &tasks.timers {
            timer.abort();
        }
    }
}

/// One client of the broker; dropping it closes it.
pub struct Session {
    broker: Broker,
    shard: usize,
    id: SessionId,
    /// It is in the realm that sees all others; that one keeps its name.
    observes: bool,
    realm: KnownRealm,
}

impl Session {
    /// The realm it belongs to, by its present name.
    pub fn realm(&self) -> Arc<str> {
        let look = || {
            let shard = &self.broker.inner.shards[self.shard];
            shard.read(|engine| engine.realm_of(self.id).cloned())
        };
        self.realm.name(&self.broker.inner.moved, look)
    }

    /// Carries out a command. What it sends is appended to outbound queues and written when `flushes` is flushed
    /// or dropped.
    pub fn submit(&self, command: Command<'_>, reply: Option<ReplyToken>, flushes: &mut Flushes) {
        if let Command::Publish(publish) = &command
            && !self.observes
        {
            self.broker.observe(publish, flushes);
        }
        let subscribes = matches!(command, Command::Subscribe(_) | Command::Unsubscribe(_));
        let shard = &self.broker.inner.shards[self.shard];
        shard.input(
            Input::Command {
                session: self.id,
                command,
                reply,
            },
            flushes,
        );
        if subscribes && self.observes {
            shard.refresh_observed();
        }
    }

    /// The outbound queue is below its low-water mark again.
    pub fn drained(&self) {
        self.broker.inner.shards[self.shard].drained(self.id, &mut Flushes::new());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.broker.inner.shards[self.shard].close(self.id);
        if self.observes {
            self.broker.inner.shards[self.shard].refresh_observed();
        }
    }
}
