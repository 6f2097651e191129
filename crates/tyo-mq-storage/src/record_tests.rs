//! Tests of rows.

use proptest::prelude::*;

use super::*;

fn message(body: &[u8], attachments: &[&[u8]]) -> Message {
    Message {
        event: "Order-Placed".into(),
        producer: "Shop".into(),
        body: Bytes::copy_from_slice(body),
        attachments: attachments
            .iter()
            .map(|part| Bytes::copy_from_slice(part))
            .collect(),
    }
}

fn read_back(message: &Message, encoded: &EncodedMessage) -> Message {
    RowReader::default().read(&MessageRow {
        key: "shop-order-placed",
        payload: &encoded.payload,
        producer: Some(&message.producer),
        produced: Some(&message.event),
        body: encoded.body.as_deref(),
        attachments: Some(&encoded.attachments),
    })
}

fn check(body: &str, attachments: &[&[u8]], payload: &str, body_kept: bool) {
    let message = message(body.as_bytes(), attachments);
    let encoded = EncodedMessage::new(&message);
    assert_eq!(encoded.payload, payload);
    assert_eq!(encoded.body.is_some(), body_kept);
    assert_eq!(read_back(&message, &encoded), message);
}

#[test]
fn an_open_envelope_needs_its_brace_only() {
    check(
        r#"{"event":"a","message":1e400,"from":"b""#,
        &[],
        r#"{"event":"a","message":1e400,"from":"b"}"#,
        false,
    );
    check(
        r#"{"message":"\ud800""#,
        &[],
        r#"{"message":"\ud800"}"#,
        false,
    );
    check("{", &[], "{}", false);
    // a text that looks binary is none of ours to convert
    check(
        r#"{"message":{"type":"Buffer","data":[1]}"#,
        &[],
        r#"{"message":{"type":"Buffer","data":[1]}}"#,
        false,
    );
}

#[test]
fn attachments_are_readable_in_the_payload() {
    check(
        r#"{"message":{"_placeholder":true,"num":0}"#,
        &[b"\x00\xff"],
        r#"{"message":{"type":"Buffer","data":[0,255]}}"#,
        true,
    );
}

#[test]
fn any_other_body_survives() {
    check("", &[], r#""""#, true);
    check("plain", &[], r#""plain""#, true);
    check(r#"{"whole":1}"#, &[], r#"{"whole":1}"#, true);
    check("[1]", &[b"x"], "[1]", true);
    check("{\"cut\":", &[], r#""{\"cut\":""#, true);
    let odd = message(b"\xff\x00", &[]);
    let encoded = EncodedMessage::new(&odd);
    assert_eq!(encoded.payload, r#""/wA=""#);
    assert_eq!(read_back(&odd, &encoded), odd);
}

#[test]
fn depth_costs_no_stack() {
    let deep = format!(
        "{{\"message\":{}{}",
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    check(&deep, &[], &format!("{deep}}}"), false);
}

fn check_foreign(payload: &str, event: &str, producer: &str, body: &str, attachments: &[&[u8]]) {
    let message = RowReader::default().read(&MessageRow {
        key: "key",
        payload,
        producer: None,
        produced: None,
        body: None,
        attachments: None,
    });
    assert_eq!(&*message.event, event);
    assert_eq!(&*message.producer, producer);
    assert_eq!(message.body, body.as_bytes());
    assert_eq!(*message.attachments, *attachments);
}

#[test]
fn rows_of_the_reference_are_read() {
    check_foreign(
        r#"{"event":"E","message":-0,"from":"P"}"#,
        "E",
        "P",
        r#"{"event":"E","message":-0,"from":"P""#,
        &[],
    );
    check_foreign(
        r#"{"event":"E","message":{"type":"Buffer","data":[1]},"from":"P"} "#,
        "E",
        "P",
        r#"{"event":"E","message":{"_placeholder":true,"num":0},"from":"P""#,
        &[b"\x01"],
    );
    check_foreign(r#"{"blob":"x"}"#, "key", ANONYMOUS, r#"{"blob":"x""#, &[]);
    check_foreign(
        "{}",
        "key",
        ANONYMOUS,
        r#"{"event":"key","message":{},"from":"ANONYMOUS""#,
        &[],
    );
    check_foreign(
        "[1]",
        "key",
        ANONYMOUS,
        r#"{"event":"key","message":[1],"from":"ANONYMOUS""#,
        &[],
    );
    check_foreign(
        "{broken",
        "key",
        ANONYMOUS,
        r#"{"event":"key","message":"{broken","from":"ANONYMOUS""#,
        &[],
    );
}

#[test]
fn a_spoilt_row_is_read_as_the_references() {
    let row = MessageRow {
        key: "key",
        payload: r#"{"event":"E"}"#,
        producer: Some("P"),
        produced: Some("E"),
        body: None,
        attachments: Some(&[9, 0, 0, 0, 0, 0, 0, 0, 1]),
    };
    assert_eq!(
        RowReader::default().read(&row).body,
        &br#"{"event":"E""#[..]
    );
}

proptest! {
    #[test]
    fn any_message_survives(body in prop::collection::vec(any::<u8>(), 0..60), parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..3)) {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let message = message(&body, &parts);
        prop_assert_eq!(read_back(&message, &EncodedMessage::new(&message)), message);
    }

    #[test]
    fn any_text_survives(body in "\\{?[\\[{}\",:a-z0-9\\\\ü]{0,60}") {
        let message = message(body.as_bytes(), &[]);
        prop_assert_eq!(read_back(&message, &EncodedMessage::new(&message)), message);
    }
}
