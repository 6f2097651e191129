//! The registry of sessions, and what they share: settings, clock, limits.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tyo_mq_codec::engine::{CloseReason, Open, Timing};

use crate::app::{Application, Session};
use crate::config::EngineConfig;
use crate::connection::Connection;
use crate::service::EngineService;

/// Parts of the registry, so that handshakes seldom meet.
const SHARDS: usize = 16;
/// Random bytes of a session id: 20 characters.
const SID_BYTES: usize = 15;
/// Beyond a session's `close_grace`, for its task to notice.
const SHUTDOWN_SLACK: Duration = Duration::from_secs(2);

/// All sessions of an application. Cloning it is cheap and gives the same engine.
pub struct Engine<A: Application> {
    shared: Arc<Shared<A>>,
}

/// One session: its connection, and the application's part of it.
pub(crate) struct SessionCell<A: Application> {
    pub(crate) conn: Arc<Connection>,
    pub(crate) engine: Arc<Shared<A>>,
    app: Mutex<Option<A::Session>>,
}

type Shard<A> = Mutex<HashMap<Box<str>, Arc<SessionCell<A>>>>;

/// What all sessions share.
pub(crate) struct Shared<A: Application> {
    pub(crate) config: EngineConfig,
    pub(crate) app: A,
    started: Instant,
    hasher: RandomState,
    shards: [Shard<A>; SHARDS],
    count: AtomicUsize,
    stopping: AtomicBool,
    empty: Notify,
    random: SystemRandom,
}

impl<A: Application> Engine<A> {
    /// An engine without sessions.
    pub fn new(config: EngineConfig, app: A) -> Self {
        let shared = Shared {
            config,
            app,
            started: Instant::now(),
            hasher: RandomState::new(),
            shards: std::array::from_fn(|_| Mutex::default()),
            count: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            empty: Notify::new(),
            random: SystemRandom::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A tower service that answers the engine's path and gives everything else to `fallback`.
    pub fn service<F>(&self, fallback: F) -> EngineService<A, F> {
        EngineService::new(Arc::clone(&self.shared), fallback)
    }

    /// The application.
    pub fn application(&self) -> &A {
        &self.shared.app
    }

    /// Sessions that are open or closing.
    pub fn connection_count(&self) -> usize {
        self.shared.count.load(Ordering::Acquire)
    }

    /// Says goodbye to everyone, refuses newcomers, and returns when all are gone: at the latest a moment after the
    /// settings' `close_grace`.
    pub async fn shutdown(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        for cell in self.shared.all() {
            cell.conn.close(CloseReason::ServerShutdown);
        }
        let empty = async {
            loop {
                let notified = self.shared.empty.notified();
                if self.connection_count() == 0 {
                    return;
                }
                notified.await;
            }
        };
        let _ = timeout(self.shared.config.close_grace + SHUTDOWN_SLACK, empty).await;
    }
}

impl<A: Application> Clone for Engine<A> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<A: Application> std::fmt::Debug for Engine<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("connections", &self.connection_count())
            .finish_non_exhaustive()
    }
}

impl<A: Application> Shared<A> {
    /// Milliseconds since the engine was made.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The moment that [`Self::now`] will be `ms`.
    pub(crate) fn instant(&self, ms: u64) -> Instant {
        // A deadline beyond what the clock can tell is as good as never.
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let after = Duration::from_millis(ms);
        self.started
            .checked_add(after)
            .unwrap_or_else(|| Instant::now() + FAR)
    }

    pub(crate) fn timing(&self) -> Timing {
        Timing {
            ping_interval_ms: millis(self.config.ping_interval),
            ping_timeout_ms: millis(self.config.ping_timeout),
            upgrade_timeout_ms: millis(self.config.upgrade_timeout),
        }
    }

    /// Whether one more session may open.
    pub(crate) fn admits(&self) -> bool {
        !self.stopping.load(Ordering::Acquire)
            && self.count.load(Ordering::Acquire) < self.config.max_connections
    }

    /// A new session id. `None` when the system has no randomness to give.
    pub(crate) fn new_sid(&self) -> Option<String> {
        let mut bytes = [0; SID_BYTES];
        self.random.fill(&mut bytes).ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The open packet of a session.
    pub(crate) fn open_packet(&self, sid: &str, upgrade: bool) -> Vec<u8> {
        let mut packet = Vec::with_capacity(128);
        Open {
            sid,
            upgrade,
            ping_interval_ms: millis(self.config.ping_interval),
            ping_timeout_ms: millis(self.config.ping_timeout),
            max_payload: self.config.max_payload,
        }
        .write(&mut packet);
        packet
    }

    pub(crate) fn find(&self, sid: &str) -> Option<Arc<SessionCell<A>>> {
        lock(self.shard(sid)).get(sid).map(Arc::clone)
    }

    fn insert(&self, cell: &Arc<SessionCell<A>>) {
        let sid = cell.conn.id();
        let before = lock(self.shard(sid)).insert(sid.into(), Arc::clone(cell));
        debug_assert!(before.is_none(), "session ids are random");
        self.count.fetch_add(1, Ordering::AcqRel);
        if self.stopping.load(Ordering::Acquire) {
            cell.conn.close(CloseReason::ServerShutdown);
        }
    }

    fn remove(&self, sid: &str) {
        if lock(self.shard(sid)).remove(sid).is_some()
            && self.count.fetch_sub(1, Ordering::AcqRel) == 1
        {
            self.empty.notify_waiters();
        }
    }

    fn all(&self) -> Vec<Arc<SessionCell<A>>> {
        self.shards
            .iter()
            .flat_map(|shard| lock(shard).values().map(Arc::clone).collect::<Vec<_>>())
            .collect()
    }

    fn shard(&self, sid: &str) -> &Shard<A> {
        &self.shards[self.hasher.hash_one(sid) as usize % SHARDS]
    }
}

impl<A: Application> SessionCell<A> {
    /// A session that is known from now on.
    pub(crate) fn register(
        engine: &Arc<Shared<A>>,
        conn: Arc<Connection>,
        app: A::Session,
    ) -> Arc<Self> {
        let cell = Arc::new(Self {
            conn,
            engine: Arc::clone(engine),
            app: Mutex::new(Some(app)),
        });
        engine.insert(&cell);
        cell
    }

    /// The application's session: held while messages are handed over, `None` once it was told of the end.
    pub(crate) fn lock_app(&self) -> MutexGuard<'_, Option<A::Session>> {
        self.app.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell_drained(&self) {
        if let Some(session) = self.lock_app().as_mut() {
            session.on_drained();
        }
        self.conn.flush();
    }

    /// Tells the application of the end, once, and returns why it ended.
    pub(crate) fn end(&self) -> CloseReason {
        let reason = self
            .conn
            .close_reason()
            .unwrap_or(CloseReason::TransportError);
        let session = self.lock_app().take();
        if let Some(mut session) = session {
            session.on_close(reason);
        }
        reason
    }

    /// Its id is unknown from now on.
    pub(crate) fn leave(&self) {
        self.engine.remove(self.conn.id());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
