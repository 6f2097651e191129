//! Whether an event is handled at all: may its sender send it, and is it within the limits? Knows no event's meaning.

use bytes::Bytes;
use tyo_mq_core::runtime::Session;
use tyo_mq_protocol::events;
use tyo_mq_protocol::{ClientEvent, Confirm, ErrorCode, Notice, Produce, Status};

use super::commands::Desk;
use super::encode::{ack_frame, confirm_frame, notice_frame};
use super::socket::MainSocket;
use crate::access::Standing;
use crate::limits::{LimitConfig, OverLimit};

impl Desk<'_> {
    /// Whether the socket may send this event. If not, it is told; if so, it has a session.
    pub(super) fn may(&mut self, event: &str, ack: Option<u64>) -> bool {
        let MainSocket { handle, rights, .. } = &mut *self.main;
        match self.gateway.access.authorize(handle, event, rights) {
            Ok(Standing::Known) => {}
            Ok(Standing::Looked) => self.take_place(),
            Err(refusal) => {
                self.gateway.access.metrics.auth_failed(refusal.code);
                handle.send_event(events::AUTH_FAIL, &refusal.to_auth_fail());
                if let Some(ack) = ack {
                    let answer = refusal.to_answer();
                    self.send(&ack_frame(ack, |out| {
                        out.extend_from_slice(answer.as_bytes())
                    }));
                }
                return false;
            }
        }
        true
    }

    /// Opens the session in the realm where the socket is; one in another realm ends.
    fn take_place(&mut self) {
        let Some(place) = self.gateway.access.place(&self.main.handle) else {
            return;
        };
        // While its realm gets another name, either the session or the socket may be the first to know.
        let same = self.main.place.as_ref() == Some(&place.realm);
        let here = |session: &Session| same || *session.realm() == *place.realm;
        let stays = self.main.session.as_ref().is_some_and(here);
        self.main.place = Some(place.realm.clone());
        if !stays {
            self.main.session = None;
            let (id, outlet) = (&self.main.handle.id, self.main.outlet.clone());
            self.main.session = Some(self.gateway.broker.open(&place.realm, id, outlet));
        }
    }

    /// Whether the socket stays within its rates and quotas. If not, it is told at most once a second.
    pub(super) fn is_within_limits(
        &mut self,
        event: &ClientEvent<'_>,
        attachments: &[Bytes],
        ack: Option<u64>,
    ) -> bool {
        let Some(config) = self.gateway.access.limits() else {
            return true;
        };
        match self.charge(&config, event, attachments) {
            Ok(()) => true,
            Err(over) => {
                self.refuse_too_much(&over, ack);
                false
            }
        }
    }

    fn charge(
        &mut self,
        config: &LimitConfig,
        event: &ClientEvent<'_>,
        attachments: &[Bytes],
    ) -> Result<(), OverLimit> {
        let Some(realm) = self.main.session.as_ref().map(Session::realm) else {
            return Ok(());
        };
        let realm = &*realm;
        let usage = || self.gateway.broker.usage_of(realm);
        let limits = &mut self.main.limits;
        let now_ms = self.gateway.elapsed_ms();
        match event {
            ClientEvent::Produce(produce) => {
                let binary: usize = attachments.iter().map(Bytes::len).sum();
                limits.message(config, realm, passed_on(produce) + binary, now_ms)
            }
            ClientEvent::ProduceChunk(chunk) => {
                limits.message(config, realm, chunk.data.len(), now_ms)
            }
            ClientEvent::Producer(_) | ClientEvent::Consumer(_) => {
                let usage = usage();
                limits.registration(config, realm, usage.producers + usage.consumers)
            }
            ClientEvent::Subscribe(_) => limits.subscription(config, realm, usage().subscriptions),
            _ => Ok(()),
        }
    }

    fn refuse_too_much(&mut self, over: &OverLimit, ack: Option<u64>) {
        self.gateway.access.metrics.rate_limited(over);
        let OverLimit {
            reason,
            retry_after_secs,
        } = *over;
        if self.main.limits.tell(self.gateway.elapsed_ms()) {
            self.send(&notice_frame(&Notice::RateLimited {
                reason,
                retry_after_secs,
            }));
        }
        if let Some(ack) = ack {
            let message = &format!("over the limit {reason}");
            let code = Status::RateLimited;
            self.send(&confirm_frame(ack, &Confirm::Refused { code, message }));
        }
    }

    /// The realm takes encrypted messages only.
    pub(super) fn refuse_plain(&self, ack: Option<u64>) {
        let message = "this realm takes end-to-end encrypted messages only";
        let code = ErrorCode::EncryptionRequired;
        self.send(&notice_frame(&Notice::Error { code, message }));
        if let Some(ack) = ack {
            let code = Status::Forbidden;
            self.send(&confirm_frame(ack, &Confirm::Refused { code, message }));
        }
    }
}

/// The bytes of a message that its consumers get.
fn passed_on(produce: &Produce<'_>) -> usize {
    let Produce {
        event,
        from,
        message,
        to,
        enc,
        content_type,
        ..
    } = produce;
    let values = [message, to, enc, content_type];
    let values = values.into_iter().flatten().map(|value| value.len());
    event.len() + from.as_deref().map_or(0, str::len) + values.sum::<usize>()
}
