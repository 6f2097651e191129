//! One message as a row: the JSON that the reference broker reads, and beside it what JSON cannot hold. Knows no back end.
//!
//! - `payload` is a whole JSON value. For a message of the gateway it is the envelope with its closing brace, binary
//!   content in the form `{"type":"Buffer","data":[…]}`.
//! - `attachments` is absent in rows of the reference. Ours have it, empty for most: their payload is then taken as it is.
//! - `body` is there when the payload does not give the body back: with attachments, and for an embedder's body that is no
//!   open JSON object. The payload of the latter is the body itself if that is JSON, else a string with its text, or with
//!   its base64 form if it is no text.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::IgnoredAny;
use tyo_mq_codec::socket::{buffers_to_placeholders, placeholders_to_buffers};
use tyo_mq_core::Message;
use tyo_mq_protocol::{ANONYMOUS, Envelope, write_json_string};

/// The content of a message, encoded for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedMessage {
    /// A whole JSON value.
    pub payload: String,
    /// The body, if the payload does not give it back.
    pub body: Option<Bytes>,
    /// The attachments in one piece; empty for none.
    pub attachments: Vec<u8>,
}

impl EncodedMessage {
    /// Encodes a message.
    #[must_use]
    pub fn new(message: &Message) -> Self {
        let payload = open_object(&message.body);
        let exact = payload.is_some() && message.attachments.is_empty();
        let payload = match payload {
            Some(payload) if message.attachments.is_empty() => payload,
            Some(payload) => placeholders_to_buffers(&payload, &message.attachments),
            None => foreign_payload(&message.body),
        };
        Self {
            payload,
            body: (!exact).then(|| message.body.clone()),
            attachments: pack(&message.attachments),
        }
    }
}

/// A message's columns, as they were read.
#[derive(Debug, Clone, Copy)]
pub struct MessageRow<'a> {
    /// Subscription key, the name of an event that cannot be told otherwise.
    pub key: &'a str,
    /// A JSON value.
    pub payload: &'a str,
    /// The producer, if the row has one.
    pub producer: Option<&'a str>,
    /// The event as produced; absent in rows of the reference.
    pub produced: Option<&'a str>,
    /// See the module.
    pub body: Option<&'a [u8]>,
    /// See the module.
    pub attachments: Option<&'a [u8]>,
}

/// Reads messages from rows. Neighbours mostly share their names: it keeps the last ones.
#[derive(Debug, Default)]
pub struct RowReader {
    event: Option<Arc<str>>,
    producer: Option<Arc<str>>,
}

impl RowReader {
    /// Reads a message. Rows that are not as we write them are taken as the reference's; none is refused.
    pub fn read(&mut self, row: &MessageRow<'_>) -> Message {
        self.read_own(row).unwrap_or_else(|| self.read_foreign(row))
    }

    fn read_own(&mut self, row: &MessageRow<'_>) -> Option<Message> {
        let attachments = unpack(row.attachments?)?;
        let body = match row.body {
            Some(body) => body,
            None => row.payload.strip_suffix('}')?.as_bytes(),
        };
        Some(Message {
            event: shared(&mut self.event, row.produced?),
            producer: shared(&mut self.producer, row.producer.unwrap_or(ANONYMOUS)),
            body: Bytes::copy_from_slice(body),
            attachments,
        })
    }

    fn read_foreign(&mut self, row: &MessageRow<'_>) -> Message {
        let payload = row.payload.trim();
        let (payload, attachments) = if payload.contains("\"Buffer\"") && is_json(payload) {
            buffers_to_placeholders(payload)
        } else {
            (payload.to_owned(), Vec::new())
        };
        let envelope = Envelope::parse(&payload).ok();
        let event = envelope.as_ref().map_or(row.key, |it| &it.event);
        let from = envelope.as_ref().map_or(ANONYMOUS, |it| &it.from);
        let producer = row.producer.unwrap_or(from);
        let body = if is_spliceable(&payload) {
            payload[..payload.len() - 1].to_owned().into_bytes()
        } else {
            wrap(&payload, event, producer)
        };
        Message {
            event: shared(&mut self.event, event),
            producer: shared(&mut self.producer, producer),
            body: body.into(),
            attachments: attachments.into(),
        }
    }
}

/// The body with its closing brace, if that makes a JSON object.
fn open_object(body: &[u8]) -> Option<String> {
    let body = std::str::from_utf8(body).ok()?;
    if !body.starts_with('{') {
        return None;
    }
    let mut payload = String::with_capacity(body.len() + 1);
    payload.push_str(body);
    payload.push('}');
    is_json(&payload).then_some(payload)
}

fn foreign_payload(body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text) if is_json(text) => text.to_owned(),
        Ok(text) => json_string(text),
        Err(_) => json_string(&STANDARD.encode(body)),
    }
}

/// Nothing is built, and depth costs no stack.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// A receipt can follow the last field once the brace is off.
fn is_spliceable(payload: &str) -> bool {
    let has_field = || payload[1..].trim_start().starts_with('"');
    payload.starts_with('{') && has_field() && is_json(payload)
}

/// Makes an envelope of a payload that is none.
fn wrap(payload: &str, event: &str, producer: &str) -> Vec<u8> {
    let mut body = b"{\"event\":".to_vec();
    write_json_string(&mut body, event);
    body.extend_from_slice(b",\"message\":");
    if is_json(payload) {
        body.extend_from_slice(payload.as_bytes());
    } else {
        write_json_string(&mut body, payload);
    }
    body.extend_from_slice(b",\"from\":");
    write_json_string(&mut body, producer);
    body
}

fn json_string(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_json_string(&mut out, text);
    String::from_utf8(out).expect("JSON of a text is text")
}

/// The text as an `Arc`, the kept one if it is the same.
fn shared(kept: &mut Option<Arc<str>>, text: &str) -> Arc<str> {
    match kept {
        Some(kept) if **kept == *text => kept.clone(),
        _ => kept.insert(text.into()).clone(),
    }
}

/// Each part behind its length, eight bytes, little end first.
fn pack(parts: &[Bytes]) -> Vec<u8> {
    let size = parts.iter().map(|part| 8 + part.len()).sum();
    let mut out = Vec::with_capacity(size);
    for part in parts {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

fn unpack(mut packed: &[u8]) -> Option<Box<[Bytes]>> {
    let mut parts = Vec::new();
    while !packed.is_empty() {
        let (length, rest) = packed.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        parts.push(Bytes::copy_from_slice(part));
        packed = rest;
    }
    Some(parts.into())
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
