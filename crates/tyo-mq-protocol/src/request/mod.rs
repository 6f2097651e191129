//! Client events: from the JSON array of a packet to a typed request. Nothing is decided here but what the payload says.

mod call;
mod produce;
mod registration;
mod subscribe;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub use produce::{Broadcast, Produce, ProduceChunk, parse_produce};
pub use registration::{Ack, Consumer, Producer};
pub use subscribe::{Backoff, Retry, Subscribe, Unsubscribe};

use crate::events::EventKind;
use crate::json;
use crate::wtf8;
use crate::{ParseError, PayloadError, RawJson};
use call::{Call, First, Name};
use produce::PRODUCE_KEYS;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// PRODUCER.
    Producer(Producer),
    /// CONSUMER.
    Consumer(Consumer),
    /// SUBSCRIBE.
    Subscribe(Box<Subscribe>),
    /// UNSUBSCRIBE.
    Unsubscribe(Unsubscribe),
    /// PRODUCE.
    Produce(Produce<'a>),
    /// PRODUCE_CHUNK.
    ProduceChunk(ProduceChunk<'a>),
    /// ACK.
    Ack(Ack<'a>),
    /// PING with its payload; a PING without any is not answered.
    Ping(Option<RawJson<'a>>),
    /// HELLO.
    Hello,
    /// QUIT with the socket id that it names, if it names one.
    Quit(Option<Cow<'a, str>>),
    /// DEBUG.
    Debug,
    /// AUTHENTICATION with its payload, out of its string if it came in one.
    Authentication(Option<RawJson<'a>>),
    /// Any other event, with its first argument as it came.
    Other {
        /// The event's name.
        name: Cow<'a, str>,
        /// Its first argument.
        payload: Option<RawJson<'a>>,
    },
}

/// Reads the JSON array of an event packet: name and arguments. All of the text is checked to be JSON.
///
/// # Errors
/// When the text is no such array, or the payload is not what the event wants: the error knows the answer.
pub fn parse_event(args: &str) -> Result<ClientEvent<'_>, ParseError> {
    let mut fields = [None; PRODUCE_KEYS.len()];
    let Call { name, first } = Call::read(args, &mut fields)?;
    let first = match first {
        First::Fields => return Produce::from_fields(&fields).map(ClientEvent::Produce),
        First::AckFields(fields) => return Ack::from_fields(&fields).map(ClientEvent::Ack),
        First::ChunkFields(fields) => {
            return ProduceChunk::from_fields(&fields).map(ClientEvent::ProduceChunk);
        }
        First::Text(first) => first,
    };
    let kind = match name {
        Name::Known(kind) => kind,
        Name::Other(name) => {
            return Ok(ClientEvent::Other {
                name,
                payload: first.map(Cow::Borrowed),
            });
        }
    };
    match kind {
        EventKind::Produce => produce::from_payload(first),
        EventKind::ProduceChunk => produce::chunk_from_payload(first),
        EventKind::Ack => registration::ack_from_payload(first),
        EventKind::Producer => Producer::from_payload(first).map(ClientEvent::Producer),
        EventKind::Consumer => Consumer::from_payload(first).map(ClientEvent::Consumer),
        EventKind::Subscribe => {
            Subscribe::from_payload(first).map(|request| ClientEvent::Subscribe(Box::new(request)))
        }
        EventKind::Unsubscribe => Unsubscribe::from_payload(first).map(ClientEvent::Unsubscribe),
        EventKind::Authentication => authentication_from_payload(first),
        EventKind::Ping => Ok(ClientEvent::Ping(first.map(Cow::Borrowed))),
        EventKind::Quit => Ok(ClientEvent::Quit(first.and_then(quit_id))),
        EventKind::Hello => Ok(ClientEvent::Hello),
        EventKind::Debug => Ok(ClientEvent::Debug),
    }
}

fn authentication_from_payload(first: Option<&str>) -> Result<ClientEvent<'_>, ParseError> {
    let payload = match object_text(EventKind::Authentication, first) {
        Ok(text) => Some(text),
        Err(ParseError::Payload {
            reason: PayloadError::Missing,
            ..
        }) => None,
        Err(error) => return Err(error),
    };
    Ok(ClientEvent::Authentication(payload))
}

fn quit_id(raw: &str) -> Option<Cow<'_, str>> {
    if raw.starts_with('"') {
        return json::string(raw);
    }
    let [id] = json::fields(raw, &["id"])?;
    id.and_then(json::string)
}

/// The payload as an object's text: itself, or the content of the string that it came in.
fn object_text(event: EventKind, first: Option<&str>) -> Result<Cow<'_, str>, ParseError> {
    let error = |reason| ParseError::Payload { event, reason };
    let raw = json::present(first).ok_or(error(PayloadError::Missing))?;
    if !raw.starts_with('"') {
        return Ok(Cow::Borrowed(raw));
    }
    let text = wtf8::unescape(raw)
        .and_then(|bytes| wtf8::into_json_text(bytes.into_owned()))
        .ok_or(error(PayloadError::NotJson))?;
    match serde_json::from_str::<&RawValue>(&text) {
        Ok(value) if value.get() == "null" => Err(error(PayloadError::Missing)),
        Ok(_) => Ok(Cow::Owned(text)),
        Err(_) => Err(error(PayloadError::NotJson)),
    }
}

fn field_error(event: EventKind, field: &'static str) -> ParseError {
    ParseError::Payload {
        event,
        reason: PayloadError::Field(field),
    }
}

fn not_an_object(event: EventKind) -> ParseError {
    ParseError::Payload {
        event,
        reason: PayloadError::NotAnObject,
    }
}

fn own(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
