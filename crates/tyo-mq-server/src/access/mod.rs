//! Who may do what, joined to the running broker: live sockets, the settings file, the auth store, the clock.
//!
//! The rules are those of `tyo-mq-auth`. Here its state stands behind a lock, what it wants done is done, and what it
//! asks of the broker is answered. A socket remembers what it may do until something changes, so that a message costs
//! no lock.

mod deadline;
mod effects;
mod keeper;
mod open;
mod questions;
mod sockets;
mod validator;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::Notify;
use tyo_mq_auth::document::E2ee;
use tyo_mq_auth::{
    AuthState, Decision, Execution, Handled, Permission, Refusal, Reply, SignedEvent, Step,
    outcome_event,
};
use tyo_mq_core::engine::RealmPolicy;
use tyo_mq_core::runtime::Broker;

use crate::limits::{ConnectionLimits, LimitConfig};
use crate::now_ms;

use keeper::{Keeper, KeeperError};
pub(crate) use open::open;
pub(crate) use sockets::{SocketHandle, Sockets};

/// The door of one broker.
pub(crate) struct Access {
    state: Mutex<AuthState>,
    keeper: Mutex<Keeper>,
    pub(crate) sockets: Sockets,
    broker: Broker,
    /// Rises with each change: what a socket remembers of its rights is good for one number.
    generation: AtomicU64,
    limits: RwLock<Arc<LimitConfig>>,
    limits_enabled: AtomicBool,
    pub(crate) connections: Arc<ConnectionLimits>,
    /// Something may be due earlier than the deadline's task thinks.
    wake: Notify,
    /// Re-reads and applies the settings file.
    reload: Mutex<Option<Box<dyn Fn() -> Result<(), String> + Send>>>,
}

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
        broker: Broker,
        limits: LimitConfig,
    ) -> Arc<Self> {
        let access = Arc::new(Self {
            state: Mutex::new(state),
            keeper: Mutex::new(keeper),
            sockets: Sockets::default(),
            broker,
            generation: AtomicU64::new(1),
            limits_enabled: AtomicBool::new(limits.is_enabled()),
            limits: RwLock::new(Arc::new(limits)),
            connections: Arc::default(),
            wake: Notify::new(),
            reload: Mutex::new(None),
        });
        tokio::spawn(deadline::keep(Arc::downgrade(&access)));
        access
    }

    fn state(&self) -> MutexGuard<'_, AuthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.limits_enabled
            .store(limits.is_enabled(), Ordering::Relaxed);
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
    }

    /// A new socket, known from now on.
    pub(crate) fn join(&self, handle: SocketHandle) -> Arc<SocketHandle> {
        let auth = tyo_mq_auth::SocketAuth::new(self.state().document());
        self.sockets.insert(handle, auth)
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
        let allow_anonymous = self
            .state()
            .document()
            .realm(&realm)
            .and_then(|config| config.allow_anonymous());
        if allow_anonymous.is_some() {
            self.broker
                .set_policy(&realm, RealmPolicy { allow_anonymous });
        }
        Some(Place {
            realm,
            role: grant.role.as_str().to_owned(),
        })
    }

    /// AUTHENTICATION. The answer is an event; a validator elsewhere may be asked first.
    pub(crate) fn authenticate(
        self: &Arc<Self>,
        socket: &Arc<SocketHandle>,
        payload: Option<&str>,
    ) {
        let step = self
            .state()
            .authenticate(&mut socket.auth(), payload, socket.address, now_ms());
        match step {
            Step::Done(outcome) => {
                let (event, payload) = outcome_event(&outcome);
                socket.send_event(event, &payload);
            }
            Step::AskExternal(request, pending) => {
                let (access, socket) = (self.clone(), socket.clone());
                tokio::spawn(async move {
                    let response = validator::ask(request).await;
                    let mut auth = socket.auth();
                    let outcome = access.state().finish_authentication(
                        &mut auth,
                        pending,
                        response,
                        now_ms(),
                    );
                    drop(auth);
                    let (event, payload) = outcome_event(&outcome);
                    socket.send_event(event, &payload);
                    socket.conn.flush();
                });
            }
        }
    }

    /// AUTHORIZATION_REQUEST.
    pub(crate) fn request_admission(
        &self,
        socket: &SocketHandle,
        payload: Option<&str>,
        ack: Option<u64>,
    ) {
        let most = self.limits().and_then(|limits| {
            limits.global(crate::limits::Limit::MAX_PENDING_AUTHORIZATION_REQUESTS)
        });
        let mut state = self.state();
        let pending = state.requests().pending(None, now_ms()).count();
        if most.is_some_and(|most| pending as f64 >= most) {
            let refusal = Refusal::new(429, "too many requests wait for a decision");
            drop(state);
            return socket.answer(
                ack,
                &refused(tyo_mq_auth::enrolment::AUTHORIZATION_REQUEST_FAIL, &refusal),
            );
        }
        let handled = state.request_admission(payload, &socket.id, socket.address, now_ms());
        drop(state);
        self.complete(socket, ack, handled);
    }

    /// AUTHORIZATION_NEXT, AUTHORIZATION_DECIDE, AUTH_MANAGEMENT_COMMAND: what managers sign.
    pub(crate) fn signed(
        self: &Arc<Self>,
        socket: &Arc<SocketHandle>,
        event: SignedEvent,
        payload: Option<&str>,
        ack: Option<u64>,
    ) {
        let verified = match self
            .state()
            .verify(event, payload, socket.address, now_ms())
        {
            Ok(verified) => verified,
            Err(refusal) => return socket.answer(ack, &event.refuse(&refusal)),
        };
        if let Err(error) = self.keep_nonce(verified.used_nonce()) {
            tracing::error!(%error, "cannot keep a nonce");
            return socket.answer(
                ack,
                &event.refuse(&Refusal::new(503, "the proof cannot be kept")),
            );
        }
        if event != SignedEvent::Manage {
            let handled = self.state().handle_authorization(verified, now_ms());
            return self.complete(socket, ack, handled);
        }
        let view = self.keeper().view();
        let execution = self.state().execute_command(verified, &view, now_ms());
        match execution {
            Execution::Done(handled) => self.complete(socket, ack, handled),
            Execution::Ask {
                effects,
                question,
                pending,
            } => {
                self.carry_out(effects);
                let (access, socket) = (self.clone(), socket.clone());
                tokio::spawn(async move {
                    let answer = access.answer(question).await;
                    let view = access.keeper().view();
                    let handled = access
                        .state()
                        .finish_command(pending, answer, &view, now_ms());
                    access.complete(&socket, ack, handled);
                    socket.conn.flush();
                });
            }
        }
    }

    fn keep_nonce(&self, nonce: tyo_mq_auth::nonce::UsedNonce) -> Result<(), KeeperError> {
        // The window is copied first: the two locks are never held together.
        let window: Vec<_> = if self.keeper().has_journal() {
            self.state().nonces().collect()
        } else {
            Vec::new()
        };
        self.keeper().keep_nonce(nonce, &window)
    }

    fn complete(&self, socket: &SocketHandle, ack: Option<u64>, handled: Handled) {
        self.carry_out(handled.effects);
        socket.answer(ack, &handled.reply);
    }

    /// Whether a bearer token of HTTP is the global admin's.
    pub(crate) fn check_admin(&self, presented: Option<&str>, peer: IpAddr) -> Result<(), Refusal> {
        self.state().check_admin_bearer(presented, peer, now_ms())
    }

    /// Says how the settings file is read again.
    pub(crate) fn on_reload(&self, reload: impl Fn() -> Result<(), String> + Send + 'static) {
        *self.reload.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(reload));
    }
}

/// A refusal as an answer.
fn refused(event: &'static str, refusal: &Refusal) -> Reply {
    Reply {
        is_ok: false,
        payload: refusal.to_answer(),
        event,
        is_always_event: true,
    }
}
