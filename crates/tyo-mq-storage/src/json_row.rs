//! A message as one JSON text, for stores that keep texts: the reference broker's fields, and ours under `ext`.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{DeadLetter, Position, QueueKey, StoredMessage};
use tyo_mq_protocol::{write_iso8601, write_json_string};

use crate::record::{EncodedMessage, MessageRow, RowReader};
use crate::timestamp::parse_iso8601;

/// Writes a message; its position is the store's own affair.
#[must_use]
pub fn encode_json_row(stored: &StoredMessage) -> String {
    write_row(stored, None)
}

/// Writes a dead letter.
#[must_use]
pub fn encode_json_letter(letter: &DeadLetter) -> String {
    write_row(&letter.stored, Some(letter))
}

/// Reads a message at a position; none when the text is no row.
#[must_use]
pub fn decode_json_row(
    text: &str,
    position: Position,
    reader: &mut RowReader,
) -> Option<StoredMessage> {
    let row = serde_json::from_str(text).ok()?;
    Some(read_row(&row, position, reader))
}

/// Reads a dead letter at a position; none when the text is no row.
#[must_use]
pub fn decode_json_letter(text: &str, position: Position) -> Option<DeadLetter> {
    let row: JsonRow<'_> = serde_json::from_str(text).ok()?;
    Some(DeadLetter {
        stored: read_row(&row, position, &mut RowReader::default()),
        reason: row.reason.and_then(string).unwrap_or_default().into_owned(),
        dead_lettered_at_ms: time(row.dead_lettered_at),
    })
}

fn write_row(stored: &StoredMessage, letter: Option<&DeadLetter>) -> String {
    let (message, queue) = (&stored.message, &stored.queue);
    let content = EncodedMessage::new(message);
    let mut out = Vec::with_capacity(content.payload.len() + 256);
    let mut field = |key: &str, text: &str| {
        out.extend_from_slice(key.as_bytes());
        write_json_string(&mut out, text);
    };
    field("{\"id\":", stored.id.as_str());
    field(",\"realm\":", &queue.realm);
    field(",\"event\":", &queue.key);
    field(",\"consumer\":", &queue.consumer);
    out.extend_from_slice(b",\"message\":");
    out.extend_from_slice(content.payload.as_bytes());
    out.extend_from_slice(b",\"producer\":");
    write_json_string(&mut out, &message.producer);
    write_time(&mut out, ",\"created_at\":", stored.created_at_ms);
    out.extend_from_slice(b",\"expires_at\":");
    match stored.expires_at_ms {
        Some(at_ms) => out.extend_from_slice(at_ms.to_string().as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
    if let Some(letter) = letter {
        out.extend_from_slice(b",\"reason\":");
        write_json_string(&mut out, &letter.reason);
        write_time(
            &mut out,
            ",\"dead_lettered_at\":",
            letter.dead_lettered_at_ms,
        );
    }
    write_ext(&mut out, stored, &content);
    out.push(b'}');
    String::from_utf8(out).expect("JSON of texts is text")
}

fn write_ext(out: &mut Vec<u8>, stored: &StoredMessage, content: &EncodedMessage) {
    out.extend_from_slice(b",\"ext\":{\"event\":");
    write_json_string(out, &stored.message.event);
    if stored.attempts > 0 {
        out.extend_from_slice(format!(",\"attempts\":{}", stored.attempts).as_bytes());
    }
    let mut binary = |key: &str, bytes: &[u8]| {
        out.extend_from_slice(key.as_bytes());
        out.push(b'"');
        out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
        out.push(b'"');
    };
    binary(",\"attachments\":", &content.attachments);
    if let Some(body) = &content.body {
        binary(",\"body\":", body);
    }
    out.push(b'}');
}

fn write_time(out: &mut Vec<u8>, key: &str, epoch_ms: u64) {
    out.extend_from_slice(key.as_bytes());
    out.push(b'"');
    write_iso8601(out, epoch_ms);
    out.push(b'"');
}

/// Everything may be missing or of another kind in rows from elsewhere.
#[derive(Deserialize)]
struct JsonRow<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    realm: Option<&'a RawValue>,
    event: Option<&'a RawValue>,
    consumer: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    producer: Option<&'a RawValue>,
    created_at: Option<&'a RawValue>,
    expires_at: Option<&'a RawValue>,
    reason: Option<&'a RawValue>,
    dead_lettered_at: Option<&'a RawValue>,
    ext: Option<Ext<'a>>,
}

#[derive(Deserialize)]
struct Ext<'a> {
    #[serde(borrow)]
    event: Option<Cow<'a, str>>,
    attempts: Option<u32>,
    #[serde(borrow)]
    attachments: Option<Cow<'a, str>>,
    #[serde(borrow)]
    body: Option<Cow<'a, str>>,
}

fn read_row(row: &JsonRow<'_>, position: Position, reader: &mut RowReader) -> StoredMessage {
    let text =
        |raw: Option<&RawValue>| -> Arc<str> { raw.and_then(string).unwrap_or_default().into() };
    let key = text(row.event);
    let producer = row.producer.and_then(string);
    let ext = row.ext.as_ref();
    let binary =
        |field: Option<&Cow<'_, str>>| field.and_then(|it| STANDARD.decode(it.as_bytes()).ok());
    let (body, attachments) = (
        binary(ext.and_then(|it| it.body.as_ref())),
        binary(ext.and_then(|it| it.attachments.as_ref())),
    );
    let message = reader.read(&MessageRow {
        key: &key,
        payload: row.message.map_or("null", RawValue::get),
        producer: producer.as_deref(),
        produced: ext.and_then(|it| it.event.as_deref()),
        body: body.as_deref(),
        attachments: attachments.as_deref(),
    });
    StoredMessage {
        id: MessageId(text(row.id)),
        queue: Arc::new(QueueKey {
            realm: text(row.realm),
            key,
            consumer: text(row.consumer),
        }),
        message: Arc::new(message),
        created_at_ms: time(row.created_at),
        expires_at_ms: row.expires_at.and_then(|it| moment(it.get())),
        attempts: ext.and_then(|it| it.attempts).unwrap_or(0),
        position,
    }
}

fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw.get()).ok()
}

fn time(raw: Option<&RawValue>) -> u64 {
    raw.and_then(string)
        .and_then(|text| parse_iso8601(&text))
        .unwrap_or_default()
}

/// Milliseconds since 1970; fractions go, what is out of range saturates.
fn moment(number: &str) -> Option<u64> {
    number
        .parse()
        .ok()
        .or_else(|| number.parse::<f64>().ok().map(|at_ms| at_ms as u64))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use tyo_mq_core::Message;

    use super::*;

    fn stored(body: &[u8], name: &str, expires_at_ms: Option<u64>, attempts: u32) -> StoredMessage {
        StoredMessage {
            id: MessageId::from("msg-1"),
            queue: Arc::new(QueueKey {
                realm: name.into(),
                key: "shop-order-placed".into(),
                consumer: name.into(),
            }),
            message: Arc::new(Message {
                event: "Order-Placed".into(),
                producer: name.into(),
                body: Bytes::copy_from_slice(body),
                attachments: Box::default(),
            }),
            created_at_ms: 1_795_975_569_147,
            expires_at_ms,
            attempts,
            position: Position(7),
        }
    }

    #[test]
    fn a_row_is_the_references_with_ours_behind() {
        let row = encode_json_row(&stored(
            br#"{"event":"Order-Placed","message":1e400"#,
            "a\"",
            None,
            0,
        ));
        assert_eq!(
            row,
            r#"{"id":"msg-1","realm":"a\"","event":"shop-order-placed","consumer":"a\"","message":{"event":"Order-Placed","message":1e400},"producer":"a\"","created_at":"2026-11-29T18:06:09.147Z","expires_at":null,"ext":{"event":"Order-Placed","attachments":""}}"#
        );
    }

    #[test]
    fn a_row_of_the_reference_is_read() {
        let text = r#"{"id":"m","realm":"default","event":"shop-e","consumer":"c","message":{"event":"E","message":{"type":"Buffer","data":[1]},"from":"P"},"producer":null,"created_at":"2026-11-29T18:26:57.314Z","expires_at":2111336817316.5,"reason":"r","dead_lettered_at":"2026-11-29T18:26:57.315Z"}"#;
        let letter = decode_json_letter(text, Position(1)).unwrap();
        assert_eq!(
            (letter.reason.as_str(), letter.dead_lettered_at_ms),
            ("r", 1_795_976_817_315)
        );
        assert_eq!(letter.stored.expires_at_ms, Some(2_111_336_817_316));
        assert_eq!(
            (
                &*letter.stored.message.event,
                &*letter.stored.message.producer
            ),
            ("E", "P")
        );
        assert_eq!(*letter.stored.message.attachments, [&b"\x01"[..]]);
    }

    #[test]
    fn odd_texts_are_none_or_harmless() {
        assert_eq!(decode_json_letter("no JSON", Position(0)), None);
        assert_eq!(decode_json_letter("[1]", Position(0)), None);
        let letter = decode_json_letter(
            r#"{"id":7,"expires_at":"x","created_at":{},"message":"m"}"#,
            Position(0),
        )
        .unwrap();
        assert_eq!(
            (
                letter.stored.id.as_str(),
                letter.stored.expires_at_ms,
                letter.stored.created_at_ms
            ),
            ("", None, 0)
        );
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(body in prop::collection::vec(any::<u8>(), 0..40), name in "\\PC{0,8}", expires in any::<Option<u64>>(), attempts in any::<u32>(), reason in "\\PC{0,8}") {
            let stored = stored(&body, &name, expires, attempts);
            let read = decode_json_row(&encode_json_row(&stored), Position(7), &mut RowReader::default());
            prop_assert_eq!(read.as_ref(), Some(&stored));
            let letter = DeadLetter { stored, reason, dead_lettered_at_ms: 1 };
            prop_assert_eq!(decode_json_letter(&encode_json_letter(&letter), Position(7)), Some(letter));
        }
    }
}
