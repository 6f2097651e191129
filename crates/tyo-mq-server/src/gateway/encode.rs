//! From the broker's outputs to Socket.IO frames. Pure: no connection, no lock.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use tyo_mq_codec::socket::{ROOT, placeholders_to_buffers, write_ack_start, write_event_start};
use tyo_mq_core::engine::{
    AckError, Delivery, Key, Notice, PublishError, RefusedRegistration, Reply,
};
use tyo_mq_core::store::StoreError;
use tyo_mq_core::{Message, Receipt};
use tyo_mq_protocol::events::{CONSUME_CHUNK, CONSUME_PREFIX};
use tyo_mq_protocol::{
    Confirm, ErrorCode, Notice as WireNotice, Status, cut_chunks, needs_chunks,
    write_consume_chunk, write_receipt,
};
use tyo_mq_transport::{Frame, FrameRef, FrameScratch};

/// The frames of the message that was delivered last on a shard, for its next receiver.
#[derive(Default)]
pub(super) struct FrameMemo {
    /// What they are of; nothing if they are for one receiver alone.
    of: Option<(Arc<Message>, Key)>,
    /// The one frame of a small message, in place of the one before.
    small: FrameScratch,
    /// The frames of any other message.
    frames: Vec<Frame>,
    /// The last frame of an answer.
    answer: FrameScratch,
}

impl FrameMemo {
    /// Sends the frames of a delivery: encoded now, or those of the receiver before.
    pub(super) fn send(&mut self, delivery: &Delivery, mut send: impl FnMut(FrameRef<'_>)) {
        let shared = delivery.receipt.is_none();
        let known = self.of.as_ref().is_some_and(|(message, key)| {
            shared && Arc::ptr_eq(message, &delivery.message) && *key == delivery.key
        });
        if !known {
            self.encode(delivery);
            self.of = shared.then(|| (delivery.message.clone(), delivery.key.clone()));
        }
        if self.frames.is_empty() {
            return send(self.small.last());
        }
        self.frames.iter().for_each(|frame| send(frame.into()));
    }

    /// Sends the frames of an answer: as an event where there is one, and to the Socket.IO ack if one waits.
    pub(super) fn answer(
        &mut self,
        ack: Option<u64>,
        reply: &Reply,
        send: impl FnMut(FrameRef<'_>),
    ) {
        match reply {
            Reply::Published(Ok(published)) => self.confirm(
                ack,
                &Confirm::Produced {
                    msg_id: published.id.as_str(),
                    routed: published.routed as u64,
                    queued: published.queued as u64,
                },
                send,
            ),
            Reply::Published(Err(error)) => {
                let (code, message) = (publish_status(error), &error.to_string());
                self.confirm(ack, &Confirm::Refused { code, message }, send);
            }
            Reply::Unsubscribed { removed } => {
                let removed = *removed as u64;
                self.confirm(ack, &Confirm::Unsubscribed { removed }, send);
            }
            Reply::Acked { id, result: Ok(()) } => {
                let msg_id = id.as_str();
                self.acked(ack, &WireNotice::AckOk { msg_id }, send);
            }
            Reply::Acked {
                result: Err(error), ..
            } => {
                let (code, message) = (ack_status(error), &error.to_string());
                self.acked(ack, &WireNotice::AckFail { code, message }, send);
            }
        }
    }

    fn confirm(
        &mut self,
        ack: Option<u64>,
        confirm: &Confirm<'_>,
        mut send: impl FnMut(FrameRef<'_>),
    ) {
        if let Some(ack) = ack {
            let write = |out: &mut Vec<u8>| write_ack(out, ack, |out| confirm.write_payload(out));
            send(self.answer.text(write));
        }
    }

    /// The outcome of an ACK: the event, then the same payload to the Socket.IO ack.
    pub(super) fn acked(
        &mut self,
        ack: Option<u64>,
        notice: &WireNotice<'_>,
        mut send: impl FnMut(FrameRef<'_>),
    ) {
        send(self.answer.text(|out| write_notice(out, notice)));
        if let Some(ack) = ack {
            let write = |out: &mut Vec<u8>| write_ack(out, ack, |out| notice.write_payload(out));
            send(self.answer.text(write));
        }
    }

    fn encode(&mut self, delivery: &Delivery) {
        let message = &*delivery.message;
        let small = message.attachments.is_empty() && message.body.len() <= SMALL_BYTES;
        match (&delivery.key, std::str::from_utf8(&message.body)) {
            (Key::Exact(key), Ok(body)) if small => {
                self.frames.clear();
                let receipt = delivery.receipt.as_ref();
                self.small
                    .text(|out| write_delivery(out, key, 0, body, receipt));
            }
            _ => self.frames = delivery_frames(delivery),
        }
    }
}

/// A smaller message is copied to each receiver's queue, a larger one is shared.
const SMALL_BYTES: usize = 8 * 1024;

fn delivery_frames(delivery: &Delivery) -> Vec<Frame> {
    let (message, receipt) = (&*delivery.message, delivery.receipt.as_ref());
    match &delivery.key {
        Key::Exact(key) => name_frames(key, message, receipt),
        Key::AllOf(producer) => {
            let mut frames = name_frames(&format!("{producer}-TM-ALL"), message, receipt);
            frames.extend(name_frames(&format!("{producer}-tm-all"), message, receipt));
            frames
        }
    }
}

/// The frames under one name: one, or several if the text is long.
fn name_frames(key: &str, message: &Message, receipt: Option<&Receipt>) -> Vec<Frame> {
    // Only an embedder can publish what is no text.
    let body = std::str::from_utf8(&message.body)
        .map_or_else(|_| String::from_utf8_lossy(&message.body), Cow::Borrowed);
    if message.body.len() > CHUNK_CHECK_BYTES {
        let text = payload_text(&body, message, receipt);
        if needs_chunks(&text) {
            return chunk_frames(&[CONSUME_PREFIX, key].concat(), &text);
        }
    }
    let room = key.len() + body.len() + RECEIPT_ROOM;
    let frame = Frame::text_with_capacity(room, |out| {
        write_delivery(out, key, message.attachments.len(), &body, receipt);
    });
    vec![if message.attachments.is_empty() {
        frame
    } else {
        frame.with_attachments(message.attachments.to_vec())
    }]
}

fn write_delivery(
    out: &mut Vec<u8>,
    key: &str,
    attachments: usize,
    body: &str,
    receipt: Option<&Receipt>,
) {
    write_consume_start(out, attachments, key);
    out.extend_from_slice(body.as_bytes());
    if let Some(receipt) = receipt {
        write_receipt(out, receipt.id.as_str(), receipt.attempt);
    }
    out.extend_from_slice(b"}]");
}

fn write_consume_start(out: &mut Vec<u8>, attachments: usize, key: &str) {
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if attachments == 0 && key.bytes().all(plain) {
        out.extend_from_slice(b"2[\"CONSUME-");
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\",");
    } else {
        write_event_start(
            out,
            ROOT,
            None,
            attachments,
            &[CONSUME_PREFIX, key].concat(),
        );
    }
}

/// The whole payload as text, binary content in its JSON form.
fn payload_text(body: &str, message: &Message, receipt: Option<&Receipt>) -> String {
    let mut text = body.as_bytes().to_vec();
    if let Some(receipt) = receipt {
        write_receipt(&mut text, receipt.id.as_str(), receipt.attempt);
    }
    text.push(b'}');
    let text = String::from_utf8(text).expect("texts put together are text");
    if message.attachments.is_empty() {
        return text;
    }
    placeholders_to_buffers(&text, &message.attachments)
}

fn chunk_frames(event: &str, text: &str) -> Vec<Frame> {
    let transfer_id = transfer_id();
    let pieces = cut_chunks(text);
    let total = pieces.len();
    let frame = |(index, piece): (usize, &str)| {
        Frame::text_with_capacity(piece.len() + event.len() + RECEIPT_ROOM, |out| {
            write_event_start(out, ROOT, None, 0, CONSUME_CHUNK);
            write_consume_chunk(out, &transfer_id, event, (index, total), piece);
            out.push(b']');
        })
    };
    pieces.into_iter().enumerate().map(frame).collect()
}

/// An id that no other transfer has, of this broker or of one that a client was connected to before: it may still hold
/// pieces from there.
fn transfer_id() -> String {
    static BROKER: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
    static TRANSFERS: AtomicU64 = AtomicU64::new(1);
    let number = TRANSFERS.fetch_add(1, Ordering::Relaxed);
    format!("{:08x}-{number:06x}", *BROKER as u32)
}

/// Room for what stands around a body.
const RECEIPT_ROOM: usize = 160;

/// A shorter body never makes a text that must be cut.
const CHUNK_CHECK_BYTES: usize = 200 * 1024;

/// An event of the broker's own.
pub(super) fn notice_frame(notice: &WireNotice<'_>) -> Frame {
    Frame::text(|out| write_notice(out, notice))
}

fn write_notice(out: &mut Vec<u8>, notice: &WireNotice<'_>) {
    write_event_start(out, ROOT, None, 0, &notice.event_name());
    notice.write_payload(out);
    out.push(b']');
}

/// An event whose payload is JSON text.
pub(crate) fn event_frame(event: &str, payload: &str) -> Frame {
    Frame::text(|out| {
        write_event_start(out, ROOT, None, 0, event);
        out.extend_from_slice(payload.as_bytes());
        out.push(b']');
    })
}

/// An answer to a Socket.IO ack.
pub(super) fn confirm_frame(ack: u64, confirm: &Confirm<'_>) -> Frame {
    ack_frame(ack, |out| confirm.write_payload(out))
}

/// An answer to a Socket.IO ack, with one argument.
pub(crate) fn ack_frame(ack: u64, write: impl FnOnce(&mut Vec<u8>)) -> Frame {
    Frame::text(|out| write_ack(out, ack, write))
}

fn write_ack(out: &mut Vec<u8>, ack: u64, write: impl FnOnce(&mut Vec<u8>)) {
    write_ack_start(out, ROOT, ack, 0);
    write(out);
    out.push(b']');
}

/// What a session is told of others.
pub(super) fn core_notice_frame(notice: &Notice) -> Frame {
    match notice {
        Notice::SubscribeTo {
            producer_id,
            name,
            id,
            socket,
            events,
        } => {
            let events: Vec<&str> = events.iter().map(|key| &**key).collect();
            notice_frame(&WireNotice::SubscribeTo {
                producer_id: producer_id.as_deref(),
                name,
                id,
                socket: socket.as_deref(),
                events: &events,
                online: socket.is_some(),
            })
        }
        Notice::ProducerReplaced { producer } => {
            let text =
                format!("producer \"{producer}\" was registered again by another connection");
            notice_frame(&WireNotice::ErrorText(&text))
        }
        Notice::Refused(reason) => refused_frame(reason),
        Notice::SubscribeRefused(limit) => notice_frame(&WireNotice::ErrorText(&limit.to_string())),
        Notice::ProducerConnected { .. }
        | Notice::ConsumerConnected { .. }
        | Notice::ProducerDisconnected { .. }
        | Notice::ConsumerDisconnected { .. } => {
            let arrival = arrival(notice).or_else(|| departure(notice));
            notice_frame(&arrival.expect("these four are one or the other"))
        }
    }
}

fn arrival(notice: &Notice) -> Option<WireNotice<'_>> {
    Some(match notice {
        Notice::ProducerConnected {
            consumer_id,
            socket,
            producer,
        } => WireNotice::ProducerConnected {
            consumer_id,
            socket,
            producer,
        },
        Notice::ConsumerConnected {
            producer_id,
            socket,
            id,
            consumer,
        } => WireNotice::ConsumerConnected {
            producer_id,
            socket,
            id,
            consumer,
        },
        _ => return None,
    })
}

fn departure(notice: &Notice) -> Option<WireNotice<'_>> {
    Some(match notice {
        Notice::ProducerDisconnected {
            consumer_id,
            socket,
            producer,
        } => WireNotice::ProducerDisconnected {
            consumer_id,
            socket,
            producer,
        },
        Notice::ConsumerDisconnected {
            producer_id,
            socket,
            consumer,
        } => WireNotice::ConsumerDisconnected {
            producer_id,
            socket,
            consumer,
        },
        _ => return None,
    })
}

fn refused_frame(reason: &RefusedRegistration) -> Frame {
    let code = match reason {
        RefusedRegistration::DuplicateConsumer(_) => ErrorCode::DuplicateConsumer,
        RefusedRegistration::AnonymousNotAllowed => ErrorCode::AnonymousNotAllowed,
        _ => ErrorCode::BadName,
    };
    notice_frame(&WireNotice::Error {
        code,
        message: &reason.to_string(),
    })
}

/// The answer to the ack of an event that was refused; none if the notice refuses nothing.
pub(super) fn refusal_frame(ack: u64, notice: &Notice) -> Option<Frame> {
    let (code, message) = match notice {
        Notice::Refused(reason @ RefusedRegistration::Limit(_)) => {
            (Status::RateLimited, reason.to_string())
        }
        Notice::Refused(reason) => (Status::Forbidden, reason.to_string()),
        Notice::SubscribeRefused(limit) => (Status::RateLimited, limit.to_string()),
        _ => return None,
    };
    let message = &message;
    Some(confirm_frame(ack, &Confirm::Refused { code, message }))
}

fn publish_status(error: &PublishError) -> Status {
    match error {
        PublishError::QueueFull(_) | PublishError::Store(StoreError::Full(_)) => Status::QueueFull,
        PublishError::Store(_) => Status::StoreDown,
        _ => Status::Malformed,
    }
}

fn ack_status(error: &AckError) -> Status {
    match error {
        AckError::Unknown => Status::NotFound,
        AckError::NotYours => Status::Forbidden,
        _ => Status::Internal,
    }
}

/// The answer to PING: its payload's fields, `pong` and `timestamp`, as a JSON string.
pub(super) fn pong_frame(ack: u64, payload: &str, epoch_ms: u64) -> Frame {
    ack_frame(ack, |out| {
        tyo_mq_protocol::write_ping_reply(out, payload, epoch_ms)
    })
}

/// An answer that says no more than that an event arrived.
pub(super) fn received_frame(ack: u64) -> Frame {
    ack_frame(ack, |out| out.extend_from_slice(b"{\"ok\":true}"))
}
