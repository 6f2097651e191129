//! Client events become broker commands, and the answers that need no broker are given here.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use tyo_mq_auth::SignedEvent;
use tyo_mq_core::engine::{
    Command, Lifetime, Publish, Reach, RegisterConsumer, RegisterProducer, ReplyToken, RetryPolicy,
    SubscriptionSpec, Unsubscribe,
};
use tyo_mq_core::runtime::{Flushes, Outlet, Session};
use tyo_mq_protocol::events::{self, CONSUME_PREFIX, EventKind};
use tyo_mq_protocol::{
    Answer, Backoff, Broadcast, ClientEvent, Confirm, ErrorCode, Notice, ParseError, Produce,
    ProduceChunk, Status, Ttl, encode_envelope, parse_event, parse_produce,
};
use tyo_mq_transport::{Connection, Frame, Refused, SendKind};

use super::Shared;
use super::encode::{
    ack_frame, acked_frames, confirm_frame, notice_frame, pong_frame, received_frame,
};
use super::socket::MainSocket;
use crate::access::Standing;
use crate::now_ms;

/// An event as it came.
pub(super) struct Event<'a> {
    pub(super) ack: Option<u64>,
    pub(super) args: &'a str,
    pub(super) attachments: Vec<Bytes>,
}

/// Where answers go and commands are carried out.
struct Desk<'a> {
    gateway: &'a Shared,
    conn: &'a Connection,
    main: &'a mut MainSocket,
    flushes: &'a mut Flushes,
}

impl Event<'_> {
    /// Does what the client asks. An error closes the connection.
    pub(super) fn carry_out(
        self,
        gateway: &Shared,
        conn: &Connection,
        main: &mut MainSocket,
        flushes: &mut Flushes,
    ) -> Result<(), Refused> {
        let mut desk = Desk {
            gateway,
            conn,
            main,
            flushes,
        };
        match parse_event(self.args) {
            Ok(event) => {
                desk.carry_out(event, self.ack, self.attachments);
                Ok(())
            }
            Err(error) => {
                let event = error.event().map(EventKind::name);
                match event {
                    Some(event) if !desk.may(event, self.ack) => Ok(()),
                    _ => desk.answer_malformed(&error, self.ack),
                }
            }
        }
    }
}

impl Desk<'_> {
    fn carry_out(&mut self, event: ClientEvent<'_>, ack: Option<u64>, attachments: Vec<Bytes>) {
        if !self.may(event_name(&event), ack) || !self.is_within_limits(&event, &attachments, ack) {
            return;
        }
        match event {
            ClientEvent::Produce(produce) => self.publish(&produce, ack, attachments),
            ClientEvent::ProduceChunk(chunk) => self.on_chunk(&chunk, ack),
            ClientEvent::Ack(it) => self.submit(Command::Ack { id: &it.msg_id }, ack),
            ClientEvent::Producer(it) => {
                let default_ttl = it.default_ttl.map(lifetime);
                let ask = RegisterProducer {
                    name: &it.name,
                    id: it.id.as_deref(),
                    default_ttl,
                };
                self.register(Command::RegisterProducer(ask), ack);
            }
            ClientEvent::Consumer(it) => {
                let ask = RegisterConsumer {
                    name: &it.name,
                    id: it.id.as_deref(),
                };
                self.register(Command::RegisterConsumer(ask), ack);
            }
            ClientEvent::Subscribe(it) => self.subscribe(&it, ack),
            ClientEvent::Unsubscribe(it) => self.unsubscribe(&it, ack),
            ClientEvent::Ping(Some(payload)) => {
                if let Some(ack) = ack {
                    self.send(&pong_frame(ack, &payload, now_ms()));
                }
            }
            ClientEvent::Quit(Some(id)) if *id == *self.main.handle.id => {
                self.main.outlet.disconnect();
            }
            ClientEvent::Authentication(payload) => {
                let access = &self.gateway.access;
                access.authenticate(&self.main.handle, payload.as_deref());
            }
            ClientEvent::Other { name, payload } => self.on_other(&name, payload.as_deref(), ack),
            // Greetings, debug output and events of nobody have no effect.
            _ => {}
        }
    }

    fn subscribe(&mut self, ask: &tyo_mq_protocol::Subscribe, ack: Option<u64>) {
        let spec = SubscriptionSpec {
            producer: ask.producer.as_str().into(),
            event: ask.event.as_str().into(),
            all_events: ask.all_events,
            topic: ask.topic_mode,
            durable: ask.durable,
            ack: ask.ack,
            ack_timeout_ms: ask.ack_timeout_ms,
            retry: ask.retry.map(retry_policy).unwrap_or_default(),
            group: ask.group.as_deref().map(Arc::from),
            prefetch: ask.prefetch,
        };
        let subscribe = tyo_mq_core::engine::Subscribe {
            consumer: &ask.consumer,
            id: ask.id.as_deref(),
            consumer_id: ask.consumer_id.as_deref().or(ask.id.as_deref()),
            spec,
        };
        self.register(Command::Subscribe(subscribe), ack);
    }

    fn unsubscribe(&mut self, ask: &tyo_mq_protocol::Unsubscribe, ack: Option<u64>) {
        let which = match ask {
            tyo_mq_protocol::Unsubscribe::Key(key) => {
                Unsubscribe::Key(key.strip_prefix(CONSUME_PREFIX).unwrap_or(key))
            }
            tyo_mq_protocol::Unsubscribe::Event {
                event,
                producer,
                consumer,
            } => Unsubscribe::Event {
                event,
                producer: producer.as_deref(),
                consumer: consumer.as_deref(),
            },
        };
        self.submit(Command::Unsubscribe(which), ack);
    }

    /// Asks for admission, and what managers sign. Other events are nobody's.
    fn on_other(&mut self, name: &str, payload: Option<&str>, ack: Option<u64>) {
        let access = &self.gateway.access;
        if name == events::AUTHORIZATION_REQUEST {
            access.request_admission(&self.main.handle, payload, ack);
        } else if let Some(event) = SignedEvent::from_name(name) {
            access.signed(&self.main.handle, event, payload, ack);
        }
    }

    /// Whether the socket may send this event. If not, it is told; if so, it has a session.
    fn may(&mut self, event: &str, ack: Option<u64>) -> bool {
        let MainSocket { handle, rights, .. } = &mut *self.main;
        match self.gateway.access.authorize(handle, event, rights) {
            Ok(Standing::Known) => {}
            Ok(Standing::Looked) => self.take_place(),
            Err(refusal) => {
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
        let here = |session: &Session| session.realm() == place.realm;
        if !self.main.session.as_ref().is_some_and(here) {
            self.main.session = None;
            let (id, outlet) = (&self.main.handle.id, self.main.outlet.clone());
            self.main.session = Some(self.gateway.broker.open(&place.realm, id, outlet));
        }
    }

    /// Whether the socket stays within its rates and quotas. If not, it is told at most once a second.
    fn is_within_limits(
        &mut self,
        event: &ClientEvent<'_>,
        attachments: &[Bytes],
        ack: Option<u64>,
    ) -> bool {
        let Some(config) = self.gateway.access.limits() else {
            return true;
        };
        let Some(realm) = self.main.session.as_ref().map(Session::realm) else {
            return true;
        };
        let usage = || self.gateway.broker.usage_of(realm);
        let limits = &mut self.main.limits;
        let now_ms = self.gateway.elapsed_ms();
        let checked = match event {
            ClientEvent::Produce(produce) => {
                let content = produce.message.as_deref().map_or(0, str::len);
                let binary: usize = attachments.iter().map(Bytes::len).sum();
                limits.message(&config, realm, content + binary, now_ms)
            }
            ClientEvent::ProduceChunk(chunk) => {
                limits.message(&config, realm, chunk.data.len(), now_ms)
            }
            ClientEvent::Producer(_) | ClientEvent::Consumer(_) => {
                let usage = usage();
                limits.registration(&config, realm, usage.producers + usage.consumers)
            }
            ClientEvent::Subscribe(_) => limits.subscription(&config, realm, usage().subscriptions),
            _ => Ok(()),
        };
        let Err(over) = checked else { return true };
        if limits.tell(now_ms) {
            let (reason, retry_after_secs) = (over.reason, over.retry_after_secs);
            self.send(&notice_frame(&Notice::RateLimited {
                reason,
                retry_after_secs,
            }));
        }
        if let Some(ack) = ack {
            let message = &format!("over the limit {}", over.reason);
            self.send(&confirm_frame(
                ack,
                &Confirm::Refused {
                    code: Status::RateLimited,
                    message,
                },
            ));
        }
        false
    }

    fn publish(&mut self, produce: &Produce<'_>, ack: Option<u64>, attachments: Vec<Bytes>) {
        if self.main.rights.needs_encryption && produce.enc.is_none() {
            return self.refuse_plain(ack);
        }
        let body = envelope(produce);
        let reach = match &produce.broadcast {
            None => Reach::Subscribers,
            Some(Broadcast::Realm) => Reach::Realm,
            Some(Broadcast::Group(group)) => Reach::Group(group),
        };
        let publish = Publish {
            event: &produce.event,
            producer: produce.producer(),
            producer_id: produce.id.as_deref(),
            body,
            attachments: attachments.into(),
            lifetime: produce.ttl.map_or(Lifetime::Unset, lifetime),
            guaranteed: produce.guaranteed,
            recipients: produce
                .recipients
                .as_ref()
                .map(|names| names.iter().map(Cow::as_ref).collect()),
            reach,
        };
        self.submit(Command::Publish(publish), ack);
    }

    /// The realm takes encrypted messages only.
    fn refuse_plain(&self, ack: Option<u64>) {
        let message = "this realm takes end-to-end encrypted messages only";
        let code = ErrorCode::EncryptionRequired;
        self.send(&notice_frame(&Notice::Error { code, message }));
        if let Some(ack) = ack {
            let code = Status::Forbidden;
            self.send(&confirm_frame(ack, &Confirm::Refused { code, message }));
        }
    }

    /// The last missing piece publishes; the ack of any other only says that it arrived.
    fn on_chunk(&mut self, chunk: &ProduceChunk<'_>, ack: Option<u64>) {
        let refused = match self.main.chunks.add(chunk, self.gateway.elapsed_ms()) {
            Ok(None) => {
                if let Some(ack) = ack {
                    self.send(&received_frame(ack));
                }
                return;
            }
            Ok(Some(text)) => match parse_produce(&text) {
                Ok(produce) => return self.publish(&produce, ack, Vec::new()),
                Err(error) => (Status::Malformed, error.to_string()),
            },
            Err(error) => (error.status(), error.to_string()),
        };
        if let Some(ack) = ack {
            self.send(&confirm_frame(
                ack,
                &Confirm::Refused {
                    code: refused.0,
                    message: &refused.1,
                },
            ));
        }
    }

    fn answer_malformed(&mut self, error: &ParseError, ack: Option<u64>) -> Result<(), Refused> {
        let message = &error.to_string();
        match error.answer() {
            Answer::Close => return Err(Refused),
            Answer::Silent => {}
            Answer::ErrorObject(code) => self.send(&notice_frame(&Notice::Error { code, message })),
            Answer::ErrorText => self.send(&notice_frame(&Notice::ErrorText(message))),
            Answer::AuthFail(code) => self.send(&notice_frame(&Notice::AuthFail { code, message })),
            Answer::AckFail(code) => {
                for frame in acked_frames(ack, &Notice::AckFail { code, message }) {
                    self.send(&frame);
                }
                return Ok(());
            }
        }
        if let Some(ack) = ack {
            self.send(&confirm_frame(
                ack,
                &Confirm::Refused {
                    code: Status::Malformed,
                    message,
                },
            ));
        }
        Ok(())
    }

    /// Carries out what has no answer when it succeeds.
    fn register(&mut self, command: Command<'_>, ack: Option<u64>) {
        if ack.is_none() {
            return self.submit(command, None);
        }
        let outlet = self.main.outlet.clone();
        outlet.set_asking(ack);
        self.submit(command, None);
        outlet.set_asking(None);
    }

    fn submit(&mut self, command: Command<'_>, ack: Option<u64>) {
        // Who may send an event has a session.
        if let Some(session) = &self.main.session {
            session.submit(command, ack.map(ReplyToken), self.flushes);
        }
    }

    fn send(&self, frame: &Frame) {
        // Too slow or gone: the connection ends by itself.
        let _ = self.conn.send(frame, SendKind::Keep);
    }
}

/// The envelope of a message. A small one is written elsewhere first, so that it is allocated once and to size.
fn envelope(produce: &Produce<'_>) -> Bytes {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let content = produce.message.as_deref().map_or(0, str::len);
    if content > SCRATCH_BYTES {
        let mut body = Vec::with_capacity(content + produce.event.len() + ENVELOPE_ROOM);
        encode_envelope(produce, &mut body);
        return body.into();
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        encode_envelope(produce, scratch);
        Bytes::copy_from_slice(scratch)
    })
}

/// The largest message that is written to the scratch first.
const SCRATCH_BYTES: usize = 16 * 1024;

/// Room for the field names of an envelope and a producer's name.
const ENVELOPE_ROOM: usize = 96;

fn lifetime(ttl: Ttl) -> Lifetime {
    match ttl {
        Ttl::StoreDefault => Lifetime::Broker,
        Ttl::Never => Lifetime::Never,
        Ttl::Millis(ttl_ms) => Lifetime::Millis(ttl_ms),
    }
}

fn retry_policy(retry: tyo_mq_protocol::Retry) -> RetryPolicy {
    RetryPolicy {
        max_attempts: retry.max_attempts,
        delay_ms: retry.delay_ms,
        exponential: retry.backoff == Backoff::Exponential,
    }
}

/// An event's name on the wire.
fn event_name<'a>(event: &'a ClientEvent<'_>) -> &'a str {
    let kind = match event {
        ClientEvent::Producer(_) => EventKind::Producer,
        ClientEvent::Consumer(_) => EventKind::Consumer,
        ClientEvent::Subscribe(_) => EventKind::Subscribe,
        ClientEvent::Unsubscribe(_) => EventKind::Unsubscribe,
        ClientEvent::Produce(_) => EventKind::Produce,
        ClientEvent::ProduceChunk(_) => EventKind::ProduceChunk,
        ClientEvent::Ack(_) => EventKind::Ack,
        ClientEvent::Ping(_) => EventKind::Ping,
        ClientEvent::Hello => EventKind::Hello,
        ClientEvent::Quit(_) => EventKind::Quit,
        ClientEvent::Authentication(_) => EventKind::Authentication,
        ClientEvent::Other { name, .. } => return name,
        _ => EventKind::Debug,
    };
    kind.name()
}
