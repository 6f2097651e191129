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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text inside the answer, without the fields that every answer has.
    fn echoed(payload: &str) -> String {
        let mut out = Vec::new();
        write_ping_reply(&mut out, payload, 0);
        let text: String = serde_json::from_slice(&out).unwrap();
        let tail = r#""pong":"PONG","timestamp":"1970-01-01T00:00:00.000Z"}"#;
        text.strip_suffix(tail)
            .expect("every answer ends so")
            .to_owned()
    }

    fn check(payload: &str, expected: &str) {
        assert_eq!(echoed(payload), expected, "{payload}");
    }

    #[test]
    fn payloads_come_back() {
        check("null", "{");
        check("5", "{");
        check("true", "{");
        check("{}", "{");
        check(r#"{"app_id":"x","n":1.0}"#, r#"{"app_id":"x","n":1.0,"#);
        check(r#"{"\ud800":"\ud800"}"#, r#"{"\ud800":"\ud800","#);
        check(r#"["a",[1]]"#, r#"{"0":"a","1":[1],"#);
        check(
            r#""s\"😀""#,
            r#"{"0":"s","1":"\"","2":"\ud83d","3":"\ude00","#,
        );
        check(r#""\ud800é""#, r#"{"0":"\ud800","1":"é","#);
    }

    #[test]
    fn the_brokers_own_fields_win() {
        check(r#"{"pong":1,"timest\u0061mp":2,"x":3}"#, r#"{"x":3,"#);
    }

    #[test]
    fn long_ones_are_not_spread() {
        check(&format!("\"{}\"", "x".repeat(MAX_SPREAD + 1)), "{");
        check(&format!("[{}0]", "0,".repeat(MAX_SPREAD)), "{");
        assert_ne!(echoed(&format!("\"{}\"", "x".repeat(MAX_SPREAD))), "{");
    }

    proptest! {
        #[test]
        fn answers_are_json(payload in ".*") {
            let raw = serde_json::to_string(&payload).unwrap();
            let text = echoed(&raw) + "\"end\":0}";
            let fields: serde_json::Value = serde_json::from_str(&text.replace("\\ud", "\\u00")).unwrap();
            prop_assert_eq!(fields.as_object().unwrap().len(), payload.encode_utf16().count() + 1);
        }

        #[test]
        fn nothing_panics(payload in ".*") {
            write_ping_reply(&mut Vec::new(), &payload, u64::MAX);
        }
    }
}
