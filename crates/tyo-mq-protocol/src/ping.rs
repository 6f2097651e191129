//! The answer to PING: a JSON string that holds the payload's own fields, `pong` and `timestamp`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::{self, write_json_string};
use crate::timestamp::write_iso8601;
use crate::wtf8;

/// The most characters of a string, or elements of an array, that are echoed one by one.
/// A longer payload is answered as if it were null.
pub const MAX_SPREAD: usize = 4096;

/// Writes the answer, which is a JSON string with an object's text in it. `payload` is PING's first argument.
pub fn write_ping_reply(out: &mut Vec<u8>, payload: &str, epoch_ms: u64) {
    let mut text = vec![b'{'];
    match payload.as_bytes().first() {
        Some(b'{') => spread_object(&mut text, payload),
        Some(b'[') => spread_array(&mut text, payload),
        Some(b'"') => spread_string(&mut text, payload),
        _ => {}
    }
    text.extend_from_slice(b"\"pong\":\"PONG\",\"timestamp\":\"");
    write_iso8601(&mut text, epoch_ms);
    text.extend_from_slice(b"\"}");
    let text = String::from_utf8(text).expect("JSON texts put together are text");
    write_json_string(out, &text);
}

fn spread_object(text: &mut Vec<u8>, payload: &str) {
    let Ok(Members(members)) = serde_json::from_str(payload) else {
        return;
    };
    text.extend_from_slice(&members);
}

fn spread_array(text: &mut Vec<u8>, payload: &str) {
    for (index, item) in json::items(payload, MAX_SPREAD)
        .unwrap_or_default()
        .into_iter()
        .enumerate()
    {
        push_member(text, index, item.as_bytes());
    }
}

/// A string has its UTF-16 units for fields; halves of a pair part here.
fn spread_string(text: &mut Vec<u8>, payload: &str) {
    let Some(content) = wtf8::unescape(payload) else {
        return;
    };
    if json::utf16_len(&content) > MAX_SPREAD {
        return;
    }
    for (index, unit) in wtf8::units(&content).enumerate() {
        let mut value = Vec::new();
        match char::from_u32(u32::from(unit)) {
            Some(c) => write_json_string(&mut value, c.encode_utf8(&mut [0; 4])),
            None => {
                value.push(b'"');
                wtf8::push_surrogate(&mut value, unit);
                value.push(b'"');
            }
        }
        push_member(text, index, &value);
    }
}

fn push_member(text: &mut Vec<u8>, index: usize, value: &[u8]) {
    text.push(b'"');
    text.extend_from_slice(index.to_string().as_bytes());
    text.extend_from_slice(b"\":");
    text.extend_from_slice(value);
    text.push(b',');
}

/// An object's members as text, each with a comma behind it, without those that the answer has its own of.
struct Members(Vec<u8>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut text = Vec::new();
        while let Some(key) = map.next_key::<&RawValue>()? {
            if matches!(
                json::string(key.get()).as_deref(),
                Some("pong" | "timestamp")
            ) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            text.extend_from_slice(key.get().as_bytes());
            text.push(b':');
            text.extend_from_slice(map.next_value::<&RawValue>()?.get().as_bytes());
            text.push(b',');
        }
        Ok(Members(text))
    }
}
