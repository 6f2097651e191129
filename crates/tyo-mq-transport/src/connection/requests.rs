//! What HTTP requests, and a WebSocket that may take over from them, do to a connection. They hold no packets.

use std::task::Context;

use tyo_mq_codec::engine::{CloseReason, Packet, PayloadEncoder, Session, UpgradeStep, Violation};

use super::{Connection, Link, State};

impl Connection {
    pub(crate) fn begin_poll(&self, now: u64) -> Result<(), Violation> {
        self.begin_request(|session| session.begin_poll(now))
    }

    pub(crate) fn begin_post(&self, now: u64) -> Result<(), Violation> {
        self.begin_request(|session| session.begin_post(now))
    }

    /// Whether a poll is being waited with.
    pub(crate) fn poll_waits(&self) -> bool {
        self.lock().poll.is_some()
    }

    pub(crate) fn end_post(&self) {
        self.lock().session.end_post();
    }

    pub(crate) fn post_progress(&self, now: u64) {
        self.lock().session.post_progress(now);
    }

    /// The body for the waiting poll, once there is one; until then the poll's task is registered.
    pub(crate) fn take_poll_body(&self, cx: &Context<'_>) -> Option<PayloadEncoder> {
        let mut state = self.lock();
        if state.out.is_empty() && !state.session.must_answer_poll() {
            state.poll = Some(cx.waker().clone());
            return None;
        }
        let body = self.finish_poll_body(&mut state);
        state.session.end_poll();
        state.poll = None;
        Some(body)
    }

    /// The last body of a session that was closed by the server and whose client comes to read the rest.
    pub(crate) fn take_goodbye(&self) -> Option<PayloadEncoder> {
        let mut state = self.lock();
        if !state.goodbye {
            return None;
        }
        Some(self.finish_poll_body(&mut state))
    }

    /// The client of the waiting poll left.
    pub(crate) fn abandon_poll(&self) {
        let mut state = self.lock();
        state.poll = None;
        state.session.end_poll();
        self.close_locked(&mut state, CloseReason::TransportError, None);
    }

    pub(crate) fn begin_upgrade(&self, now: u64) -> Result<(), Violation> {
        self.begin_request(|session| session.begin_upgrade(now))
    }

    pub(crate) fn upgrade_deadline(&self) -> Option<u64> {
        self.lock().session.upgrade_deadline()
    }

    /// A packet on a WebSocket that may become the carrier. When it does, `link` takes over.
    pub(crate) fn on_upgrade_packet(
        &self,
        packet: &Packet<'_>,
        now: u64,
        link: &mut Option<Link>,
    ) -> UpgradeStep {
        let mut state = self.lock();
        let step = state.session.on_upgrade_packet(packet, now);
        if step == UpgradeStep::Complete
            && let Some(link) = link.take()
        {
            state.link = link;
            state.out.start_streaming();
            self.keeper.wake();
        }
        if let Some(poll) = state.poll.take_if(|_| step != UpgradeStep::Refuse) {
            poll.wake();
        }
        step
    }

    pub(crate) fn abandon_upgrade(&self) {
        self.lock().session.abandon_upgrade();
    }

    fn begin_request(
        &self,
        begin: impl FnOnce(&mut Session) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let mut state = self.lock();
        let was_open = state.session.closed().is_none();
        let result = begin(&mut state.session);
        if was_open && state.session.closed().is_some() {
            self.after_close(&mut state, None);
        }
        result
    }

    fn finish_poll_body(&self, state: &mut State) -> PayloadEncoder {
        let mut body = state.out.take_payload(self.raw_bytes);
        if state.out.take_drained() {
            state.drained = true;
            self.keeper.wake();
        }
        // What did not fit comes first.
        if state.session.closed().is_none() || state.out.is_empty() {
            if let Some(ending) = state.session.poll_ending(body.is_empty()) {
                body.push_text(ending);
            }
            if state.session.closed().is_some() {
                state.goodbye = false;
                self.keeper.wake();
            }
        }
        body
    }
}
