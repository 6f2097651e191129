//! Which validator is asked, and which answers let in.

use super::*;
use crate::attempt::{PendingAttempt, Step};
use crate::session::SocketAuth;
use crate::state::AuthState;
use crate::testing::{NOW, PEER, short, state_with};

const SETTINGS: &str = r#"{
    "enabled": true, "auth_url": "http://global/", "auth_secret": "global-secret",
    "external_validators": [
        {"realm_prefix": "org:", "auth_url": "http://org/"},
        {"realm_prefix": "org:x:", "auth_url": "http://org-x/", "auth_secret": "x-secret"},
        {"realmPrefix": "camel:", "authUrl": "http://camel/"}
    ],
    "realms": {"own": {"auth_url": "http://own/", "auth_secret": "own-secret"}, "camel2": {"authUrl": "http://camel2/"}}
}"#;

fn ask(state: &mut AuthState, payload: &str) -> (SocketAuth, ExternalRequest, PendingAttempt) {
    let mut socket = SocketAuth::new(state.document());
    match state.authenticate(&mut socket, Some(payload), PEER, NOW) {
        Step::AskExternal(request, pending) => (socket, request, pending),
        Step::Done(outcome) => panic!("{outcome:?}"),
    }
}

fn check_choice(realm: &str, url: &str, secret: &str) {
    let payload = format!(r#"{{"token":"t","realm":"{realm}"}}"#);
    let (_, request, _) = ask(&mut state_with(SETTINGS), &payload);
    assert_eq!(request.url, url);
    assert_eq!(request.secret.unwrap().expose(), secret);
    assert_eq!(
        request.body.expose(),
        format!(r#"{{"token":"t","realm":"{realm}"}}"#)
    );
}

#[test]
fn choice() {
    check_choice("own", "http://own/", "own-secret");
    check_choice("camel2", "http://camel2/", "global-secret");
    check_choice("org:a", "http://org/", "global-secret");
    check_choice("org:x:a", "http://org-x/", "x-secret");
    check_choice("camel:a", "http://camel/", "global-secret");
    check_choice("org:", "http://global/", "global-secret");
    check_choice("else", "http://global/", "global-secret");
    let (_, request, _) = ask(&mut state_with(SETTINGS), r#"{"token":"t"}"#);
    assert_eq!(
        (&*request.url, request.body.expose()),
        ("http://global/", r#"{"token":"t"}"#)
    );
    assert!(!format!("{request:?}").contains("secret\""));
}

fn check_answer(realm: &str, status: u16, body: &str, expected: &str) {
    let mut state = state_with(SETTINGS);
    let payload = format!(r#"{{"token":"t","realm":"{realm}"}}"#);
    let (mut socket, _, pending) = ask(&mut state, &payload);
    let response = ExternalResponse {
        status,
        body: body.as_bytes().to_vec(),
    };
    let outcome = state.finish_authentication(&mut socket, pending, Ok(response), NOW);
    assert_eq!(short(&outcome), expected, "{body}");
    assert_eq!(socket.grant().is_some(), outcome.is_ok());
}

#[test]
fn answers() {
    let good = |realm: &str| format!(r#"{{"realm":"{realm}","role":"consumer"}}"#);
    check_answer("own", 200, &good("own"), "own consumer");
    check_answer("own", 204, &good("own"), "own consumer");
    check_answer("own", 200, &good("other"), "401");
    check_answer("own", 200, &good("*"), "401");
    check_answer("org:a", 200, &good("org:b"), "org:b consumer");
    check_answer("org:a", 200, &good("org:"), "401");
    check_answer("org:a", 200, &good("other"), "401");
    check_answer("else", 200, &good("*"), "* consumer");
    for status in [199, 300, 301, 401, 500] {
        check_answer("own", status, &good("own"), "401");
    }
    for body in [
        "",
        " ",
        "null",
        "[]",
        "1",
        "nonsense",
        "{}",
        r#"{"valid":false,"realm":"own","role":"both"}"#,
        r#"{"ok":false,"realm":"own","role":"both"}"#,
        r#"{"realm":"own"}"#,
        r#"{"role":"both"}"#,
        r#"{"realm":["own"],"role":"both"}"#,
        r#"{"realm":"own","role":{}}"#,
    ] {
        check_answer("own", 200, body, "401");
    }
    let huge = format!(
        r#"{{"realm":"own","role":"both","x":"{}"}}"#,
        "x".repeat(MAX_RESPONSE_BYTES)
    );
    check_answer("own", 200, &huge, "401");
}

#[test]
fn no_answer() {
    let mut state = state_with(SETTINGS);
    let (mut socket, _, pending) = ask(&mut state, r#"{"token":"t"}"#);
    let outcome = state.finish_authentication(&mut socket, pending, Err(ExternalUnavailable), NOW);
    assert_eq!(short(&outcome), "401");
    // It was not found invalid, so it may be asked about again.
    let _ = ask(&mut state, r#"{"token":"t"}"#);
}

#[test]
fn one_attempt_at_a_time() {
    let mut state = state_with(SETTINGS);
    let (mut socket, _, pending) = ask(&mut state, r#"{"token":"t"}"#);
    let step = state.authenticate(&mut socket, Some(r#"{"token":"u"}"#), PEER, NOW);
    assert!(matches!(step, Step::Done(Err(refusal)) if refusal.code == 403));
    let response = ExternalResponse {
        status: 200,
        body: br#"{"realm":"r","role":"both"}"#.to_vec(),
    };
    assert!(
        state
            .finish_authentication(&mut socket, pending, Ok(response), NOW)
            .is_ok()
    );
}

#[test]
fn invalid_tokens_are_remembered_for_a_while() {
    let mut state = state_with(SETTINGS);
    let payload = r#"{"token":"t"}"#;
    let (mut socket, _, pending) = ask(&mut state, payload);
    let response = ExternalResponse {
        status: 401,
        body: Vec::new(),
    };
    let _ = state.finish_authentication(&mut socket, pending, Ok(response), NOW);
    let step = state.authenticate(&mut socket, Some(payload), PEER, NOW + NEGATIVE_TTL_MS - 1);
    assert!(matches!(step, Step::Done(Err(refusal)) if refusal.code == 401));
    let step = state.authenticate(&mut socket, Some(payload), PEER, NOW + NEGATIVE_TTL_MS);
    assert!(matches!(step, Step::AskExternal(..)));
}

#[test]
fn validations_are_bounded() {
    let mut state = state_with(SETTINGS);
    let pending: Vec<_> = (0..MAX_CALLS)
        .map(|n| ask(&mut state, &format!(r#"{{"token":"t{n}"}}"#)))
        .collect();
    let mut socket = SocketAuth::new(state.document());
    let step = state.authenticate(&mut socket, Some(r#"{"token":"more"}"#), PEER, NOW);
    assert!(matches!(step, Step::Done(Err(refusal)) if refusal.code == 429));
    drop(pending);
    let _ = ask(&mut state, r#"{"token":"more"}"#);
    let mut validations = Validations::default();
    for n in 0..MAX_NEGATIVE + 10 {
        validations.remember_invalid(SecretHash::of(&n.to_string()), NOW);
    }
    assert_eq!(validations.negative.len(), MAX_NEGATIVE);
    assert!(!validations.is_known_invalid(SecretHash::of("0"), NOW));
    assert!(validations.is_known_invalid(SecretHash::of("10"), NOW));
    assert!(!validations.is_known_invalid(SecretHash::of("10"), NOW + NEGATIVE_TTL_MS));
    assert!(validations.negative.is_empty());
}

/// A token that the settings know is not told to anyone.
#[test]
fn local_tokens_come_first() {
    let settings = SETTINGS.replacen('{', r#"{"tokens":[{"token":"local","realm":"own"}],"#, 1);
    let mut state = state_with(&settings);
    let (_, outcome) = crate::testing::authenticate(&mut state, r#"{"token":"local"}"#);
    assert_eq!(short(&outcome), "own both");
}

#[test]
fn a_validator_that_is_taken_away() {
    let mut state = state_with(SETTINGS);
    let (mut socket, _, pending) = ask(&mut state, r#"{"token":"t","realm":"own"}"#);
    let response = ExternalResponse {
        status: 200,
        body: br#"{"realm":"own","role":"both"}"#.to_vec(),
    };
    state
        .finish_authentication(&mut socket, pending, Ok(response), NOW)
        .unwrap();
    assert!(socket.recheck(state.document(), NOW).is_ok());
    let config = crate::document::RealmConfig::parse("{}").unwrap();
    let own = RealmName::new("own").unwrap();
    state
        .document
        .apply([crate::document::Mutation::PutRealm(own, config)])
        .unwrap();
    assert!(socket.recheck(state.document(), NOW).is_err());
}
