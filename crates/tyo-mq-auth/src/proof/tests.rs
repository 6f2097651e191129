//! The published vectors, and proofs that were tampered with.

use proptest::prelude::*;

use super::*;

fn object(json: &str) -> Object {
    Value::parse(json).unwrap().as_object().unwrap().clone()
}

fn check_signature(
    key: &str,
    action: &str,
    timestamp: u64,
    nonce: &str,
    body: &str,
    expected: &str,
) {
    let secret = Secret::new(key);
    let payload = Value::from(sign(&secret, action, timestamp, nonce, &object(body))).to_json();
    assert!(payload.contains(expected), "{payload}");
    let raw = format!(
        r#"{{"proof":{{"signature":"{}","nonce":"{nonce}","timestamp":"{timestamp}"}},"body":{body}}}"#,
        expected.to_uppercase()
    );
    let signed = SignedPayload::parse(Some(&raw)).unwrap();
    let others = [Secret::new("x"), secret.clone()];
    assert_eq!(signed.signer(action, &others), Some(secret.hash()));
    assert_eq!(signed.signer("AUTHENTICATION", &others), None);
    assert_eq!(signed.signer(action, &others[..1]), None);
}

#[test]
fn vectors() {
    check_signature(
        "secret-admin",
        "AUTH_MANAGEMENT_COMMAND",
        1_760_000_000_000,
        "00112233445566778899aabbccddeeff",
        r#"{"command":"get"}"#,
        "178e256275b480c5b981e1effcfa5908a3ac78b009396cf252b4396d996294fc",
    );
    check_signature(
        "room-manager-key",
        "AUTHORIZATION_DECIDE",
        1_760_000_000_123,
        "n-2",
        r#"{"request_id":"authreq-mgf0abcd-0123456789ab","approved":true,"role":"consumer","reason":null}"#,
        "b8be83c402c04a23029eddc5a7543769a1bdec63dcc29112523a6c6c862713e8",
    );
    check_signature(
        "kłucz",
        "AUTH_MANAGEMENT_COMMAND",
        1_760_000_000_456,
        "nonce-3",
        V3_BODY,
        V3_SIGNATURE,
    );
    check_signature(
        "secret-admin",
        "AUTHORIZATION_NEXT",
        1_760_000_000_789,
        "abc",
        "{}",
        "77079c0f02fc97da93ef64a8611a8e613a7ef7fec2b6142ca149547cbe926230",
    );
}

const V3_SIGNATURE: &str = "5e7a81ae3dd9762d4c60ec1a19579a0b67afdaeaf8cf0f56a561fac2ac61f04c";
const V3_BODY: &str = r#"{"z":[3,null,{"b":1,"a":"x/y\u2028<&>"}],"realm":"org:zo\u00eb\ud83d\ude80","ttl":1.0,"n":[1e21,1e-7,-0,0.1,12345678901234567890,1.5e300],"ctl":"a\u0001\b\t\n\f\r\u001f\"\\\u007f","10":1,"9":2,"\ud83d\ude00":"astral","\uffee":"bmp-high","command":"add_realm","e":{},"l":[]}"#;
const V3_CANONICAL: &str = "7b223130223a312c2239223a322c22636f6d6d616e64223a226164645f7265616c6d222c2263746c223a22615c75303030315c625c745c6e5c665c725c75303031665c225c5c7f222c2265223a7b7d2c226c223a5b5d2c226e223a5b31652b32312c31652d372c302c302e312c31323334353637383930313233343536373030302c312e35652b3330305d2c227265616c6d223a226f72673a7a6fc3abf09f9a80222c2274746c223a312c227a223a5b332c6e756c6c2c7b2261223a22782f79e280a83c263e222c2262223a317d5d2c22f09f9880223a2261737472616c222c22efbfae223a22626d702d68696768227d";

#[test]
fn canonical_vector() {
    let mut out = Vec::new();
    Value::parse(V3_BODY)
        .unwrap()
        .write_canonical(&mut out, Style::JavaScript);
    assert_eq!(encode_hex(&out), V3_CANONICAL);
    let base = base(
        "AUTH_MANAGEMENT_COMMAND",
        1_760_000_000_456.0,
        "nonce-3",
        &Value::parse(V3_BODY).unwrap(),
        Style::JavaScript,
    );
    let digest = ring::digest::digest(&ring::digest::SHA256, &base);
    assert_eq!(
        encode_hex(digest.as_ref()),
        "a91b4949076bbceeea54fc09e9bc48a66d17ba49e446231646b7e2329938a6d4"
    );
}

#[test]
fn body_signed_in_go() {
    let secret = Secret::new("k");
    let body = r#"{"reason":"a<b & c","realm":"r"}"#;
    let canonical = r#"{"realm":"r","reason":"a\u003cb \u0026 c"}"#;
    let tag = hmac::sign(
        &secret.hmac_key(),
        format!("AUTHORIZATION_DECIDE\n5\nn\n{canonical}").as_bytes(),
    );
    let raw = format!(
        r#"{{"body":{body},"proof":{{"timestamp":5,"nonce":"n","signature":"{}"}}}}"#,
        encode_hex(tag.as_ref())
    );
    let signed = SignedPayload::parse(Some(&raw)).unwrap();
    assert_eq!(
        signed.signer("AUTHORIZATION_DECIDE", [&secret]),
        Some(secret.hash())
    );
}

fn check_error(payload: &str, expected: ProofError) {
    assert_eq!(
        SignedPayload::parse(Some(payload)).err(),
        Some(expected),
        "{payload}"
    );
}

#[test]
fn no_proof() {
    let signature = "00".repeat(32);
    let with = |timestamp: &str, nonce: &str, signature: &str| {
        format!(
            r#"{{"body":{{}},"proof":{{"timestamp":{timestamp},"nonce":{nonce},"signature":{signature}}}}}"#
        )
    };
    let quoted = format!("\"{signature}\"");
    assert!(SignedPayload::parse(Some(&with("1", "\"n\"", &quoted))).is_ok());
    assert_eq!(SignedPayload::parse(None).err(), Some(ProofError::Missing));
    for payload in [
        "null",
        "1",
        "[]",
        "{}",
        "\"{}\"",
        "{",
        r#"{"proof":null}"#,
        r#"{"proof":[]}"#,
        r#"{"proof":"x"}"#,
        r#"{"proof":{}}"#,
    ] {
        check_error(payload, ProofError::Missing);
    }
    for nonce in ["null", "\"\"", "0", "false"] {
        check_error(&with("1", nonce, &quoted), ProofError::Missing);
    }
    for nonce in [
        "[\"n\"]",
        "{}",
        "1",
        "true",
        &format!("\"{}\"", "n".repeat(129)),
        "\"\\ud800\"",
    ] {
        check_error(&with("1", nonce, &quoted), ProofError::Malformed);
    }
    for timestamp in [
        "null",
        "\"\"",
        "\"now\"",
        "{}",
        "[1]",
        "true",
        "1e400",
        "\"9e999\"",
        "\"-1\"",
        "\" 1\"",
        "\"0x1\"",
        "\"NaN\"",
    ] {
        check_error(&with(timestamp, "\"n\"", &quoted), ProofError::Malformed);
    }
    for bad in [
        "null",
        "\"\"",
        "\"00\"",
        "1",
        &format!("\"{signature}00\""),
        &format!("\"{signature} \""),
        &format!("[\"{signature}\"]"),
        &format!("\"{}\"", "zz".repeat(32)),
    ] {
        check_error(&with("1", "\"n\"", bad), ProofError::Malformed);
    }
    for body in ["1", "\"x\"", "[]", "true"] {
        let payload =
            with("1", "\"n\"", &quoted).replace(r#""body":{}"#, &format!(r#""body":{body}"#));
        check_error(&payload, ProofError::Malformed);
    }
    for body in ["null", "0", "\"\"", "false"] {
        let payload =
            with("1", "\"n\"", &quoted).replace(r#""body":{}"#, &format!(r#""body":{body}"#));
        assert!(
            SignedPayload::parse(Some(&payload))
                .unwrap()
                .body
                .is_empty()
        );
    }
    check_error(
        &format!(r#"{{"body":{{"x":"{}"}}}}"#, "x".repeat(MAX_PAYLOAD_BYTES)),
        ProofError::TooLarge,
    );
}

const VALID: &str = r#"{"body":{"command":"add_realm","realm":"r","n":[1,2.5]},"proof":{"timestamp":1760000000000,"nonce":"abc","signature":"SIG"}}"#;

fn valid() -> String {
    let secret = Secret::new("k");
    let body = object(r#"{"command":"add_realm","realm":"r","n":[1,2.5]}"#);
    let signed = sign(&secret, "A", 1_760_000_000_000, "abc", &body);
    let proof = signed.get("proof").unwrap().as_object().unwrap();
    VALID.replace("SIG", proof.get("signature").unwrap().as_str().unwrap())
}

fn signer(payload: &str) -> Option<SecretHash> {
    SignedPayload::parse(Some(payload))
        .ok()?
        .signer("A", [&Secret::new("k")])
}

proptest! {
    /// Whatever still verifies after a change says the same as before.
    #[test]
    fn changed_proofs(at in 0usize..300, byte in 0x20u8..0x7F) {
        let valid = valid();
        let original = SignedPayload::parse(Some(&valid)).unwrap();
        prop_assert!(signer(&valid).is_some());
        let mut bytes = valid.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let changed = String::from_utf8(bytes).unwrap();
        if signer(&changed).is_some() {
            let read = SignedPayload::parse(Some(&changed)).unwrap();
            prop_assert_eq!(read.bases("A"), original.bases("A"));
        }
    }

    #[test]
    fn cut_proofs(length in 0usize..300) {
        let valid = valid();
        prop_assert_eq!(signer(&valid[..length.min(valid.len() - 1)]), None);
    }

    #[test]
    fn any_text(text in ".*") {
        prop_assert_eq!(signer(&text), None);
    }

    #[test]
    fn any_body_verifies(command in ".{0,40}", number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
        let secret = Secret::new("k");
        let body = Object::new().with("command", command.as_str()).with("n", Value::Number(format!("{number:e}").into()));
        let payload = Value::from(sign(&secret, "A", 1, "n", &body)).to_json();
        prop_assert_eq!(signer(&payload), Some(secret.hash()));
    }
}
