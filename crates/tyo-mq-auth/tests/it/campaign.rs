//! Attempts to be taken for somebody: tokens, web tokens and proofs that are twisted, and must let nobody in.

use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use ring::hmac;
use tyo_mq_auth::entropy::SeededEntropy;
use tyo_mq_auth::json::{Style, Value};
use tyo_mq_auth::nonce::NonceWindow;
use tyo_mq_auth::proof::SignedPayload;
use tyo_mq_auth::secret::SecretHash;
use tyo_mq_auth::{AuthDocument, AuthState, Outcome, SignedEvent, SocketAuth, Step};

use super::broker::{NOW, sign};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

const SETTINGS: &str = r#"{
    "enabled": true, "strict": true, "max_failures_per_minute": 0,
    "realms": {
        "acme": {"required": true, "manager_key": "mk-acme", "key": "psk-acme"},
        "beta": {"required": true, "manager_key": "mk-beta"}
    },
    "tokens": [
        {"token": "t-acme", "realm": "acme", "role": "both"},
        {"token": "t-admin", "realm": "*", "role": "admin"}
    ]
}"#;

fn state() -> AuthState {
    let (document, _) = AuthDocument::parse(SETTINGS).unwrap();
    let nonces = NonceWindow::restored([], NOW);
    AuthState::new(document, nonces, Box::new(SeededEntropy::new(1)))
}

fn authenticate(payload: &str) -> Outcome {
    let mut state = state();
    let mut socket = SocketAuth::new(state.document());
    match state.authenticate(&mut socket, Some(payload), PEER, NOW) {
        Step::Done(outcome) => {
            assert_eq!(socket.grant().is_some(), outcome.is_ok());
            outcome
        }
        Step::AskExternal(..) => panic!("there is no validator"),
    }
}

/// What comes in the place of what is meant.
fn odd() -> impl Strategy<Value = String> {
    let fixed = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1",
        "1e400",
        "-1e400",
        "1e-400",
        "99999999999999999999999999",
        r#""""#,
        r#"" ""#,
        r#""NaN""#,
        r#""Infinity""#,
        r#""undefined""#,
        r#""\ud800""#,
        r#""\u0000""#,
        r#""__proto__""#,
        r#""*""#,
        r#""admin""#,
        "[]",
        "{}",
        r#"["acme"]"#,
        r#"{"toString":"acme"}"#,
        r#"{"__proto__":{"realm":"acme"}}"#,
    ];
    let huge = [(50_000, '7'), (20_000, '[')];
    let huge = huge.map(|(length, c)| match c {
        '[' => "[".repeat(length) + &"]".repeat(length),
        digit => digit.to_string().repeat(length),
    });
    let all: Vec<String> = fixed.map(str::to_owned).into_iter().chain(huge).collect();
    select(all)
}

fn token(header: &str, claims: &str, key: &str) -> String {
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    let signed = format!("{header}.{claims}");
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let tag = hmac::sign(&key, signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

fn enter_with(token: &str) -> Outcome {
    authenticate(&format!(r#"{{"token":"{token}"}}"#))
}

const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
const CLAIMS: &str = r#"{"realm":"acme","role":"both"}"#;

#[test]
fn what_is_twisted_is_good_before() {
    let grant = enter_with(&token(HEADER, CLAIMS, "mk-acme")).unwrap();
    assert_eq!(
        (grant.realm.as_str(), grant.role.as_str()),
        ("acme", "both")
    );
    assert!(authenticate(r#"{"token":"t-acme"}"#).is_ok());
    let payload = sign("t-admin", SignedEvent::Manage, "n", BODY);
    assert!(verify(&mut state(), &payload));
}

proptest! {
    /// Another algorithm than the one is none, whatever else the header promises.
    #[test]
    fn algorithms(
        alg in select(vec![
            r#""none""#, r#""None""#, r#""NONE""#, r#""""#, r#""hs256""#, r#""HS256 ""#, r#""HS384""#, r#""HS512""#,
            r#""RS256""#, r#""ES256""#, r#""PS256""#, r#""EdDSA""#, "null", "0", "true", r#"["HS256"]"#,
            r#"{"HS256":1}"#, r#""HS256\u0000""#,
        ]),
        more in select(vec![
            "", r#","kid":"../../dev/null""#, r#","jwk":{"kty":"oct","k":""}"#, r#","jku":"http://h/""#, r#","crit":["exp"]"#,
            r#","b64":false"#, r#","typ":"JWT""#,
        ]),
        is_doubled in any::<bool>(),
        keeps_signature in any::<bool>(),
        key in select(vec!["mk-acme", "", "none", "acme"]),
    ) {
        let first = if is_doubled { r#""alg":"HS256","# } else { "" };
        let twisted = token(&format!(r#"{{{first}"alg":{alg}{more}}}"#), CLAIMS, key);
        let unsigned = twisted.rsplit_once('.').unwrap().0;
        let twisted = if keeps_signature { twisted.clone() } else { format!("{unsigned}.") };
        prop_assert!(enter_with(&twisted).is_err(), "{twisted}");
    }

    /// No other secret of the settings verifies, and nothing that is derived from the right one.
    #[test]
    fn keys(key in select(vec![
        "", "acme", "mk-beta", "mk-acm", "mk-acme ", "MK-ACME", "psk-acme", "t-acme", "t-admin", "undefined", "null", "HS256",
    ]), is_hashed in any::<bool>()) {
        let hash = SecretHash::of("mk-acme").to_hex();
        let key = if is_hashed { hash.as_str() } else { key };
        prop_assert!(enter_with(&token(HEADER, CLAIMS, key)).is_err());
    }

    /// A realm's key lets into that realm alone, and only with claims of the right kind.
    #[test]
    fn claims(
        name in select(vec!["realm", "role", "exp", "nbf"]),
        value in odd(),
        is_behind in any::<bool>(),
        is_doubled in any::<bool>(),
    ) {
        let good = match name {
            "realm" => r#""realm":"acme""#,
            "role" => r#""role":"both""#,
            _ => "",
        };
        let others: Vec<String> = [r#""realm":"acme""#, r#""role":"both""#]
            .into_iter()
            .filter(|field| *field != good)
            .map(str::to_owned)
            .collect();
        let mut fields = others;
        let twisted = format!(r#""{name}":{value}"#);
        fields.insert(if is_behind { fields.len() } else { 0 }, twisted);
        // The last of two counts: the right one before it is as if it were not there.
        if is_doubled && !good.is_empty() {
            fields.insert(0, good.to_owned());
        }
        let claims = format!("{{{}}}", fields.join(","));
        if let Ok(grant) = enter_with(&token(HEADER, &claims, "mk-acme")) {
            prop_assert_eq!(grant.realm.as_str(), "acme");
            let read = Value::parse(&claims).unwrap();
            let role = read.as_object().unwrap().get("role").and_then(Value::as_str);
            prop_assert_eq!(role, Some(grant.role.as_str()));
            prop_assert!(name != "realm", "{claims:.200}");
            prop_assert!(name == "role" || value.parse::<f64>().is_ok(), "{claims:.200}");
        }
    }

    /// Parts cut, repeated, left out, in another order or in another alphabet.
    #[test]
    fn shapes(order in prop::collection::vec(0usize..3, 0..5), at in any::<Index>(), cut in any::<Index>(), kind in 0..4) {
        let good = token(HEADER, CLAIMS, "mk-acme");
        let parts: Vec<&str> = good.split('.').collect();
        let mut twisted: Vec<String> = order.iter().map(|index| parts[*index].to_owned()).collect();
        if let Some(part) = (!twisted.is_empty()).then(|| at.index(twisted.len())) {
            let part = &mut twisted[part];
            match kind {
                0 => part.truncate(cut.index(part.len())),
                1 => part.push('='),
                2 => part.insert(cut.index(part.len()), '\u{a0}'),
                _ => {}
            }
        }
        let twisted = twisted.join(".");
        prop_assume!(twisted != good);
        prop_assert!(enter_with(&twisted).is_err(), "{twisted}");
    }

    /// A known token in other clothes is not known.
    #[test]
    fn clothes(kind in 0..9, known in select(vec!["t-acme", "t-admin"]), more in odd()) {
        let hash = SecretHash::of(known).to_hex();
        let token = match kind {
            0 => format!(r#"["{known}"]"#),
            1 => format!(r#"{{"toString":"{known}"}}"#),
            2 => format!(r#"" {known}""#),
            3 => format!(r#""{known}\u0000""#),
            4 => format!(r#""{}""#, known.to_uppercase()),
            5 => format!(r#""{hash}""#),
            6 => format!(r#""{}""#, &known[..known.len() - 1]),
            7 => format!(r#""x","token":"{known}x""#),
            _ => more,
        };
        let payload = format!(r#"{{"token":{token},"role":"both","realm":"acme"}}"#);
        prop_assert!(authenticate(&payload).is_err(), "{payload:.200}");
    }
}

const BODY: &str = r#"{"command":"remove_realm","realm":"acme"}"#;

fn verify(state: &mut AuthState, payload: &str) -> bool {
    state
        .verify(SignedEvent::Manage, Some(payload), PEER, NOW)
        .is_ok()
}

/// One change to a signed payload as text.
fn twist(payload: &str, kind: usize, field: &str, value: &str, at: usize) -> String {
    let start = format!(r#""{field}":"#);
    let Some(begin) = payload.find(&start).map(|found| found + start.len()) else {
        return payload.to_owned();
    };
    let end = payload[begin..]
        .find([',', '}'])
        .map_or(begin, |end| begin + end);
    let (before, old, after) = (&payload[..begin], &payload[begin..end], &payload[end..]);
    match kind {
        0 => format!("{before}{value}{after}"),
        1 => format!(r#"{before}{old},"{field}":{value}{after}"#),
        2 => format!(r#"{before}{value},"{field}":{old}{after}"#),
        3 => format!("{before}[{old}]{after}"),
        4 => format!(r#"{before}"{}"{after}"#, old.trim_matches('"')),
        5 => format!("{before} {old} {after}"),
        6 => payload.get(..at).unwrap_or_default().to_owned(),
        _ => format!(r#"{before}{{"valueOf":{old}}}{after}"#),
    }
}

/// What was signed, to the byte.
fn meaning(payload: &str) -> Option<(Vec<u8>, f64, String)> {
    let read = SignedPayload::parse(Some(payload)).ok()?;
    let mut body = Vec::new();
    Value::from(read.body.clone()).write_canonical(&mut body, Style::JavaScript);
    Some((body, read.timestamp_ms(), read.nonce().to_owned()))
}

proptest! {
    /// Whatever is done to a proof, it is refused unless it says what was signed; and after its use it is refused.
    #[test]
    fn proofs(twists in prop::collection::vec(
        (0usize..8, select(vec!["command", "realm", "timestamp", "nonce", "signature", "body", "proof"]), odd(), 0usize..400),
        1..4,
    )) {
        let good = sign("t-admin", SignedEvent::Manage, "n", BODY);
        let twisted = twists.iter().fold(good.clone(), |payload, (kind, field, value, at)| {
            twist(&payload, *kind, field, value, *at)
        });
        let mut fresh = state();
        if verify(&mut fresh, &twisted) {
            prop_assert_eq!(meaning(&twisted), meaning(&good));
        }
        let mut used = state();
        prop_assert!(verify(&mut used, &good));
        prop_assert!(!verify(&mut used, &twisted), "{twisted:.300}");
    }
}
