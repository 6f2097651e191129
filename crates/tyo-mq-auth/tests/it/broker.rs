//! A small broker: state and store, effects carried out in their order.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use tyo_mq_auth::entropy::SeededEntropy;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::nonce::NonceWindow;
use tyo_mq_auth::proof;
use tyo_mq_auth::secret::Secret;
use tyo_mq_auth::store::SqliteAuthStore;
use tyo_mq_auth::{
    Answer, AuthDocument, AuthState, Effect, Execution, Handled, ServerView, SignedEvent,
    SocketAuth, Step, outcome_event,
};

pub(crate) const NOW: u64 = 1_760_000_000_000;
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(crate) struct Broker {
    pub(crate) state: AuthState,
    store: SqliteAuthStore,
    pub(crate) notices: Vec<(String, &'static str, String)>,
}

impl Broker {
    /// Starts from settings and what the store holds.
    pub(crate) fn start(settings: &str, path: &Path) -> Self {
        let mut store = SqliteAuthStore::open(path).unwrap();
        let (mut document, _) = AuthDocument::parse(settings).unwrap();
        let merged = document.merge_store(store.load().unwrap());
        assert!(merged.warnings.is_empty());
        store.apply(&merged.imports).unwrap();
        let nonces = NonceWindow::restored(store.load_nonces(NOW).unwrap(), NOW);
        let mut state = AuthState::new(document, nonces, Box::new(SeededEntropy::new(7)));
        state.set_has_store(true);
        for request in store.load_requests().unwrap() {
            assert_eq!(state.requests_mut().insert(request).unwrap().count(), 0);
        }
        Self {
            state,
            store,
            notices: Vec::new(),
        }
    }

    pub(crate) fn authenticate(&mut self, payload: &str) -> String {
        let mut socket = SocketAuth::new(self.state.document());
        match self
            .state
            .authenticate(&mut socket, Some(payload), PEER, NOW)
        {
            Step::Done(outcome) => outcome_event(&outcome).1,
            Step::AskExternal(..) => panic!("there is no validator"),
        }
    }

    pub(crate) fn request(&mut self, payload: &str, socket: &str) -> String {
        let handled = self
            .state
            .request_admission(Some(payload), socket, PEER, NOW);
        self.finish(handled)
    }

    pub(crate) fn signed(&mut self, payload: &str, event: SignedEvent) -> String {
        let verified = match self.state.verify(event, Some(payload), PEER, NOW) {
            Ok(verified) => verified,
            Err(refusal) => return event.refuse(&refusal).payload,
        };
        self.store.remember_nonce(verified.used_nonce()).unwrap();
        if event != SignedEvent::Manage {
            let handled = self.state.handle_authorization(verified, NOW);
            return self.finish(handled);
        }
        let view = ServerView::default();
        match self.state.execute_command(verified, &view, NOW) {
            Execution::Done(handled) => self.finish(handled),
            Execution::Ask {
                effects, pending, ..
            } => {
                self.carry_out(effects);
                let answer = Answer::Value(0u64.into());
                let handled = self.state.finish_command(pending, answer, &view, NOW);
                self.finish(handled)
            }
        }
    }

    fn finish(&mut self, handled: Handled) -> String {
        self.carry_out(handled.effects);
        handled.reply.payload
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.store.carry_out(&effect).unwrap();
            if let Effect::Notify {
                socket,
                event,
                payload,
            } = effect
            {
                self.notices.push((socket, event, payload));
            }
        }
    }

    pub(crate) fn audit_trail(&self) -> Vec<String> {
        self.store.audit_trail(100).unwrap()
    }
}

pub(crate) fn sign(secret: &str, event: SignedEvent, nonce: &str, body: &str) -> String {
    let signed = proof::sign(
        &Secret::new(secret),
        event.name(),
        NOW,
        nonce,
        &object(body),
    );
    Value::from(signed).to_json()
}

pub(crate) fn object(json: &str) -> Object {
    Value::parse(json).unwrap().as_object().unwrap().clone()
}
