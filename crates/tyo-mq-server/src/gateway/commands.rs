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
use tyo_mq_core::runtime::{Flushes, Outlet};
use tyo_mq_protocol::events::{self, CONSUME_PREFIX, EventKind};
use tyo_mq_protocol::{
    Answer, Backoff, Broadcast, ClientEvent, Confirm, Notice, ParseError, Produce, ProduceChunk,
    Status, Ttl, encode_envelope, parse_event, parse_produce,
};
use tyo_mq_transport::{Connection, FrameRef, Refused, SendKind};

use super::Shared;
use super::encode::{FrameMemo, confirm_frame, notice_frame, pong_frame, received_frame};
use super::socket::MainSocket;
use crate::now_ms;

/// An event as it came.
pub(super) struct Event<'a> {
    pub(super) ack: Option<u64>,
    pub(super) args: &'a str,
    pub(super) attachments: Vec<Bytes>,
}

/// Where answers go and commands are carried out.
pub(super) struct Desk<'a> {
    pub(super) gateway: &'a Shared,
    conn: &'a Connection,
    pub(super) main: &'a mut MainSocket,
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
                let notice = Notice::AckFail { code, message };
                FrameMemo::default().acked(ack, &notice, |frame| self.send(frame));
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

    pub(super) fn send<'a>(&self, frame: impl Into<FrameRef<'a>>) {
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
