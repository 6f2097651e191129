//! Who may do what, joined to the running broker: live sockets, the settings file, the auth store, the clock.
//!
//! The rules are those of `tyo-mq-auth`. Here its state stands behind a lock, what it wants done is done, and what it
//! asks of the broker is answered. A socket remembers what it may do until something changes, so that a message costs
//! no lock.

mod api;
mod deadline;
mod effects;
mod keeper;
mod open;
mod persistence;
mod questions;
mod reload;
mod rename;
mod requests;
mod sockets;
mod validator;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::Notify;
use tyo_mq_auth::document::E2ee;
use tyo_mq_auth::enrolment::MAX_PENDING;
use tyo_mq_auth::{AuthState, Decision, Permission, Refusal, ServerView, SocketAuth};
use tyo_mq_core::engine::RealmPolicy;
use tyo_mq_core::runtime::Broker;

use crate::environment::Environment;
use crate::limits::{ConnectionLimits, Limit, LimitConfig};
use crate::metrics::Metrics;
use crate::now_ms;

pub(crate) use api::ApiHost;
use api::ApiState;
use keeper::Keeper;
pub(crate) use open::open;
use persistence::MessageStore;
use reload::ReloadReport;
pub(crate) use sockets::{SocketHandle, Sockets};

/// The door of one broker.
///
/// Locks are taken in the order of the fields, `order` to `state`, then one socket's, then the list of sockets.
pub(crate) struct Access {
    /// Management commands: one at a time, also while one waits for the broker.
    commands: Arc<tokio::sync::Mutex<()>>,
    /// What changes the state, with all that follows: one at a time, so that files hold what memory does.
    order: Mutex<()>,
    environment: Mutex<Environment>,
    keeper: Mutex<Keeper>,
    state: Mutex<AuthState>,
    pub(crate) sockets: Sockets,
    broker: Broker,
    message_store: MessageStore,
    /// Rises with each change: what a socket remembers of its rights is good for one number.
    generation: AtomicU64,
    limits: RwLock<Arc<LimitConfig>>,
    limits_enabled: AtomicBool,
    pub(crate) connections: Arc<ConnectionLimits>,
    pub(crate) metrics: Metrics,
    api: ApiState,
    /// Something may be due earlier than the deadline's task thinks.
    wake: Notify,
    /// Re-reads and applies the settings file.
    reload: Mutex<Option<Reload>>,
    /// What became of the last reading of the settings file.
    reloaded: Mutex<Option<ReloadReport>>,
}

/// Reads the settings file again and applies it, or says what is wrong with it.
type Reload = Box<dyn Fn() -> Result<(), String> + Send>;

/// What a socket may do, as far as it has asked, until something changes.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    generation: u64,
    allowed: u8,
    /// A realm may end at this moment, in milliseconds since 1970.
    until_ms: Option<u64>,
    /// The realm takes encrypted messages only.
    pub(crate) needs_encryption: bool,
}

/// How a right was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The socket remembered it: nothing has changed.
    Known,
    /// It was looked up: the socket may be in another realm than before.
    Looked,
}

/// A place that a socket has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) realm: String,
    pub(crate) role: String,
}

impl Access {
    pub(crate) fn new(
        state: AuthState,
        keeper: Keeper,
        environment: Environment,
        broker: Broker,
        limits: LimitConfig,
    ) -> Arc<Self> {
        let access = Arc::new(Self {
            commands: Arc::default(),
            order: Mutex::default(),
            environment: Mutex::new(environment),
            keeper: Mutex::new(keeper),
            state: Mutex::new(state),
            sockets: Sockets::default(),
            broker,
            message_store: MessageStore::default(),
            generation: AtomicU64::new(1),
            limits_enabled: AtomicBool::default(),
            limits: RwLock::default(),
            connections: Arc::default(),
            metrics: Metrics::default(),
            api: ApiState::default(),
            wake: Notify::new(),
            reload: Mutex::default(),
            reloaded: Mutex::default(),
        });
        access.set_limits(limits);
        tokio::spawn(deadline::keep(Arc::downgrade(&access)));
        access
    }

    fn state(&self) -> MutexGuard<'_, AuthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn to change the state and to carry out what follows.
    pub(crate) fn in_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server shows of itself.
    fn view(&self) -> ServerView {
        let mut view = self.keeper().view();
        view.storage_pending = self.message_store.is_waiting();
        let reloaded = self.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
        view.reload = reloaded.as_ref().map(ReloadReport::to_object);
        view
    }

    /// Whether authentication is on.
    pub(crate) fn is_enabled(&self) -> bool {
        self.state().document().is_enabled()
    }

    /// The limits in force, if any are.
    pub(crate) fn limits(&self) -> Option<Arc<LimitConfig>> {
        let enabled = self.limits_enabled.load(Ordering::Relaxed);
        enabled.then(|| {
            self.limits
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        })
    }

    /// Which proxies are believed.
    pub(crate) fn proxies(&self) -> crate::limits::TrustedProxies {
        self.limits
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .proxies
            .clone()
    }

    fn set_limits(&self, limits: LimitConfig) {
        let most = limits.global(Limit::MAX_PENDING_AUTHORIZATION_REQUESTS);
        // The cast saturates.
        let most = most.map_or(MAX_PENDING, |most| most as usize);
        self.state().requests_mut().set_max(most);
        self.limits_enabled
            .store(limits.is_enabled(), Ordering::Relaxed);
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
        self.tell_policies();
    }

    /// A new socket, known from now on.
    pub(crate) fn join(&self, handle: SocketHandle) -> Arc<SocketHandle> {
        // In the list before the settings can change: whoever was admitted is found when they do.
        let state = self.state();
        self.sockets
            .insert(handle, SocketAuth::new(state.document()))
    }

    /// Whether an event may be handled. A socket that was granted a place by it finds it in [`place`](Self::place).
    pub(crate) fn authorize(
        &self,
        socket: &SocketHandle,
        event: &str,
        rights: &mut Rights,
    ) -> Result<Standing, Refusal> {
        let bit = 1 << Permission::of(event) as u8;
        let generation = self.generation.load(Ordering::Acquire);
        let over = rights.until_ms.is_some_and(|until_ms| until_ms <= now_ms());
        if rights.generation == generation && rights.allowed & bit != 0 && !over {
            return Ok(Standing::Known);
        }
        let state = self.state();
        let document = state.document();
        let mut auth = socket.auth();
        if let Decision::Refused(refusal) = auth.authorize(event, document, now_ms()) {
            return Err(refusal);
        }
        if rights.generation != generation || over {
            *rights = Rights {
                generation,
                ..Rights::default()
            };
        }
        rights.allowed |= bit;
        rights.until_ms = document.next_expiry_ms();
        let config = auth
            .grant()
            .and_then(|grant| document.realm(grant.realm.as_str()));
        rights.needs_encryption = config.is_some_and(|config| config.e2ee() == E2ee::Required);
        Ok(Standing::Looked)
    }

    /// Where a socket is, if it was admitted; the realm's policy is told to the broker.
    pub(crate) fn place(&self, socket: &SocketHandle) -> Option<Place> {
        let grant = socket.auth().grant().cloned()?;
        let realm = grant.realm.as_str().to_owned();
        self.tell_policy(&realm);
        Some(Place {
            realm,
            role: grant.role.as_str().to_owned(),
        })
    }

    /// Tells the broker what a realm allows now.
    fn tell_policy(&self, realm: &str) {
        let allow_anonymous = self
            .state()
            .document()
            .realm(realm)
            .and_then(|config| config.allow_anonymous());
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner);
        let most = limits.of_realm(realm, Limit::MAX_QUEUED_PER_REALM);
        drop(limits);
        let policy = RealmPolicy {
            allow_anonymous,
            max_queued: Some(most.map_or(u64::MAX, |most| most as u64)),
        };
        self.broker.set_policy(realm, policy);
    }

    /// Tells the broker what the realms allow in which there are sockets.
    fn tell_policies(&self) {
        let realm = |socket: &Arc<SocketHandle>| {
            let auth = socket.auth();
            auth.grant().map(|grant| grant.realm.as_str().to_owned())
        };
        let realms: BTreeSet<String> = self.sockets.all().iter().filter_map(realm).collect();
        for realm in realms {
            self.tell_policy(&realm);
        }
    }

    /// Says how the settings file is read again.
    pub(crate) fn on_reload(&self, reload: impl Fn() -> Result<(), String> + Send + 'static) {
        *self.reload.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(reload));
    }
}
