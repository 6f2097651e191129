//! What sockets ask of the door: to be let in, to be enrolled, and what managers sign.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::OwnedMutexGuard;
use tyo_mq_auth::enrolment::MAX_PENDING;
use tyo_mq_auth::external::{ExternalResponse, ExternalUnavailable};
use tyo_mq_auth::nonce::UsedNonce;
use tyo_mq_auth::{
    Execution, Handled, Outcome, PendingAttempt, Refusal, SignedEvent, SocketAuth, Step, Verified,
    outcome_event,
};

use super::keeper::KeeperError;
use super::{Access, SocketHandle, validator};
use crate::limits::Limit;
use crate::now_ms;

impl Access {
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
            Step::Done(outcome) => self.tell(socket, &outcome),
            Step::AskExternal(request, pending) => {
                let (access, socket) = (self.clone(), socket.clone());
                tokio::spawn(async move {
                    let response = validator::ask(request).await;
                    let outcome = access.conclude(&socket, pending, response);
                    access.tell(&socket, &outcome);
                    socket.conn.flush();
                });
            }
        }
    }

    /// The settings may have changed while the validator was asked: what it says counts if it still has a say.
    fn conclude(
        &self,
        socket: &SocketHandle,
        pending: PendingAttempt,
        response: Result<ExternalResponse, ExternalUnavailable>,
    ) -> Outcome {
        let mut state = self.state();
        let mut auth = socket.auth();
        let had_place = auth.grant().is_some();
        let outcome = state.finish_authentication(&mut auth, pending, response, now_ms());
        if had_place {
            // It acted while the validator was asked: what it remembers of its rights was another realm's.
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        if let Err(refusal) = auth.recheck(state.document(), now_ms()) {
            *auth = SocketAuth::new(state.document());
            drop((state, auth));
            if had_place {
                socket.disconnect();
            }
            return Err(refusal);
        }
        outcome
    }

    /// AUTHORIZATION_REQUEST.
    pub(crate) fn request_admission(
        &self,
        socket: &SocketHandle,
        payload: Option<&str>,
        ack: Option<u64>,
    ) {
        socket.owe_answer();
        let _order = self.in_order();
        let handled = self
            .state()
            .request_admission(payload, &socket.id, socket.address, now_ms());
        if !handled.reply.is_ok && self.has_too_many_requests() {
            self.metrics.too_many_requests();
        }
        self.complete(socket, ack, handled);
    }

    fn has_too_many_requests(&self) -> bool {
        let limits = self.limits();
        let most = limits.and_then(|it| it.global(Limit::MAX_PENDING_AUTHORIZATION_REQUESTS));
        // The cast saturates.
        let most = most.map_or(MAX_PENDING, |most| most as usize);
        self.state().requests().len() >= most
    }

    /// AUTHORIZATION_NEXT, AUTHORIZATION_DECIDE, AUTH_MANAGEMENT_COMMAND: what managers sign.
    pub(crate) fn signed(
        self: &Arc<Self>,
        socket: &Arc<SocketHandle>,
        event: SignedEvent,
        payload: Option<&str>,
        ack: Option<u64>,
    ) {
        let verified = match self.verify(socket, event, payload) {
            Ok(verified) => verified,
            Err(refusal) => return socket.answer(ack, &event.refuse(&refusal)),
        };
        socket.owe_answer();
        if event != SignedEvent::Manage {
            let _order = self.in_order();
            let handled = self.state().handle_authorization(verified, now_ms());
            return self.complete(socket, ack, handled);
        }
        if let Ok(turn) = self.commands.clone().try_lock_owned() {
            return self.execute(socket, verified, ack, turn);
        }
        let (access, socket) = (self.clone(), socket.clone());
        tokio::spawn(async move {
            let turn = access.commands.clone().lock_owned().await;
            access.execute(&socket, verified, ack, turn);
            socket.conn.flush();
        });
    }

    fn verify(
        &self,
        socket: &SocketHandle,
        event: SignedEvent,
        payload: Option<&str>,
    ) -> Result<Verified, Refusal> {
        let verified = self
            .state()
            .verify(event, payload, socket.address, now_ms())?;
        self.keep_nonce(verified.used_nonce()).map_err(|error| {
            tracing::error!(%error, "cannot keep a nonce");
            Refusal::new(503, "the proof cannot be kept")
        })?;
        Ok(verified)
    }

    fn keep_nonce(&self, nonce: UsedNonce) -> Result<(), KeeperError> {
        let mut keeper = self.keeper();
        let window: Vec<_> = if keeper.has_journal() {
            self.state().nonces().collect()
        } else {
            Vec::new()
        };
        keeper.keep_nonce(nonce, &window)
    }

    /// The next command begins when the turn is given back.
    fn execute(
        self: &Arc<Self>,
        socket: &Arc<SocketHandle>,
        verified: Verified,
        ack: Option<u64>,
        turn: OwnedMutexGuard<()>,
    ) {
        let order = self.in_order();
        let view = self.view();
        let execution = self.state().execute_command(verified, &view, now_ms());
        let (question, pending) = match execution {
            Execution::Done(handled) => return self.complete(socket, ack, handled),
            Execution::Ask {
                effects,
                question,
                pending,
            } => {
                self.carry_out(effects);
                (question, pending)
            }
        };
        drop(order);
        let (access, socket) = (self.clone(), socket.clone());
        tokio::spawn(async move {
            let answer = access.answer(question).await;
            access.finish(&socket, ack, pending, answer);
            socket.conn.flush();
            drop(turn);
        });
    }

    fn finish(
        &self,
        socket: &SocketHandle,
        ack: Option<u64>,
        pending: tyo_mq_auth::PendingCommand,
        answer: tyo_mq_auth::Answer,
    ) {
        let _order = self.in_order();
        let view = self.view();
        let handled = self
            .state()
            .finish_command(pending, answer, &view, now_ms());
        self.complete(socket, ack, handled);
    }

    fn complete(&self, socket: &SocketHandle, ack: Option<u64>, handled: Handled) {
        self.carry_out(handled.effects);
        socket.answer(ack, &handled.reply);
        socket.answer_given();
    }

    fn tell(&self, socket: &SocketHandle, outcome: &Outcome) {
        if let Err(refusal) = outcome {
            self.metrics.auth_failed(refusal.code);
        }
        let (event, payload) = outcome_event(outcome);
        socket.send_event(event, &payload);
    }
}
