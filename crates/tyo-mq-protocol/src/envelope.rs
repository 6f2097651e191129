//! What consumers receive and stores keep: `{"event":…,"message":…,"from":…}` and, when there are any, `enc`, `to`, `content_type` and the receipt.

use std::borrow::Cow;

use crate::json::{self, write_json_string};
use crate::{ANONYMOUS, Produce, RawJson};

/// A message as it is delivered, without its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The event as produced, case kept.
    pub event: Cow<'a, str>,
    /// The payload, if there is one.
    pub message: Option<RawJson<'a>>,
    /// The producer.
    pub from: Cow<'a, str>,
    /// The encryption envelope.
    pub enc: Option<RawJson<'a>>,
    /// Passed through.
    pub to: Option<RawJson<'a>>,
    /// What the producer calls `contentType`.
    pub content_type: Option<RawJson<'a>>,
}

/// A stored text that is no envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("text is no message envelope")]
pub struct EnvelopeError;

impl<'a> Envelope<'a> {
    /// Reads an envelope from its text, for instance a stored row. A receipt in it is left out.
    ///
    /// # Errors
    /// When it is no JSON object or has no event name.
    pub fn parse(text: &'a str) -> Result<Self, EnvelopeError> {
        let keys = &["event", "message", "from", "enc", "to", "content_type"];
        let [event, message, from, enc, to, content_type] =
            json::fields(text, keys).ok_or(EnvelopeError)?;
        let raw = |value| json::truthy(value).map(Cow::Borrowed);
        Ok(Self {
            event: event.and_then(json::string).ok_or(EnvelopeError)?,
            message: message.map(Cow::Borrowed),
            from: from
                .and_then(json::string)
                .unwrap_or(Cow::Borrowed(ANONYMOUS)),
            enc: raw(enc),
            to: raw(to),
            content_type: raw(content_type),
        })
    }

    /// Writes the envelope without its closing brace, so that a receipt can follow.
    pub fn write_open(&self, out: &mut Vec<u8>) {
        let fields = [&self.enc, &self.to, &self.content_type].map(Option::as_deref);
        write_fields(
            out,
            &self.event,
            self.message.as_deref(),
            &self.from,
            fields,
        );
    }
}

/// Writes the envelope of a message without its closing brace, so that a receipt can follow.
pub fn encode_envelope(produce: &Produce<'_>, out: &mut Vec<u8>) {
    let fields = [&produce.enc, &produce.to, &produce.content_type].map(Option::as_deref);
    write_fields(
        out,
        &produce.event,
        produce.message.as_deref(),
        produce.producer(),
        fields,
    );
}

/// Writes what a delivery that wants an ACK has besides, behind an open envelope.
pub fn write_receipt(out: &mut Vec<u8>, msg_id: &str, attempt: u32) {
    out.extend_from_slice(b",\"msgId\":");
    let id_at = out.len();
    write_json_string(out, msg_id);
    let id_end = out.len();
    out.extend_from_slice(b",\"msg_id\":");
    out.extend_from_within(id_at..id_end);
    out.extend_from_slice(b",\"delivery_attempt\":");
    serde_json::to_writer(out, &attempt).expect("a number goes into memory");
}

fn write_fields(
    out: &mut Vec<u8>,
    event: &str,
    message: Option<&str>,
    from: &str,
    [enc, to, content_type]: [Option<&str>; 3],
) {
    out.extend_from_slice(b"{\"event\":");
    write_json_string(out, event);
    write_raw(out, b",\"message\":", message);
    out.extend_from_slice(b",\"from\":");
    write_json_string(out, from);
    write_raw(out, b",\"enc\":", enc);
    write_raw(out, b",\"to\":", to);
    write_raw(out, b",\"content_type\":", content_type);
}

fn write_raw(out: &mut Vec<u8>, key: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        out.extend_from_slice(value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse_produce;

    fn encode(produce: &str) -> String {
        let mut out = Vec::new();
        encode_envelope(&parse_produce(produce).unwrap(), &mut out);
        out.push(b'}');
        String::from_utf8(out).unwrap()
    }

    fn check(produce: &str, expected: &str) {
        let text = encode(produce);
        assert_eq!(text, expected);
        let mut again = Vec::new();
        Envelope::parse(&text).unwrap().write_open(&mut again);
        again.push(b'}');
        assert_eq!(
            String::from_utf8(again).unwrap(),
            expected,
            "parsed and written again"
        );
    }

    #[test]
    fn envelopes() {
        check(r#"{"event":"e"}"#, r#"{"event":"e","from":"ANONYMOUS"}"#);
        check(
            r#"{"from":"P","message":null,"event":"E"}"#,
            r#"{"event":"E","message":null,"from":"P"}"#,
        );
        check(
            r#"{"event":"\u0065\n","message":{"a": 1e400,"b":"\ud800"},"from":"Ü\"","to":"bob","enc":{"x":[]},"contentType":"t","ttl":5}"#,
            r#"{"event":"e\n","message":{"a": 1e400,"b":"\ud800"},"from":"Ü\"","enc":{"x":[]},"to":"bob","content_type":"t"}"#,
        );
    }

    #[test]
    fn receipts() {
        let mut out = b"{\"event\":\"e\"".to_vec();
        write_receipt(&mut out, "m-1", 2);
        out.push(b'}');
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"event":"e","msgId":"m-1","msg_id":"m-1","delivery_attempt":2}"#
        );
    }

    #[test]
    fn what_is_no_envelope() {
        for text in [
            "",
            "5",
            "null",
            "[]",
            "{}",
            r#"{"event":7}"#,
            r#"{"event":"e""#,
            r#"{"event":"e"}x"#,
        ] {
            assert_eq!(Envelope::parse(text), Err(EnvelopeError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn names_survive(event in ".*", from in ".+", message in ".*") {
            let produce = serde_json::json!({ "event": event, "from": from, "message": message }).to_string();
            let text = encode(&produce);
            let envelope = Envelope::parse(&text).unwrap();
            prop_assert_eq!(envelope.event.as_ref(), event);
            prop_assert_eq!(envelope.from.as_ref(), from);
            let message = serde_json::to_string(&message).unwrap();
            prop_assert_eq!(envelope.message.as_deref(), Some(message.as_str()));
        }
    }
}
