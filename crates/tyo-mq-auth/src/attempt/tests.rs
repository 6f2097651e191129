//! Who gets in: the rows of the specification, and much that must not get in.

use proptest::prelude::*;

use super::*;
use crate::jwt;
use crate::testing::{
    NOW, PEER, SETTINGS, authenticate, authenticate_on, object, settings_with, short, state,
    state_with,
};

fn check(payload: &str, expected: &str) {
    let mut state = state();
    let (_, outcome) = authenticate(&mut state, payload);
    assert_eq!(short(&outcome), expected, "{payload}");
}

fn check_in(settings: &str, payload: &str, expected: &str) {
    let (_, outcome) = authenticate(&mut state_with(settings), payload);
    assert_eq!(short(&outcome), expected, "{payload} in {settings}");
}

#[test]
fn unreadable_payloads() {
    for payload in [r#""{nope""#, r#""""#, r#""x""#] {
        check(payload, "401");
        check_in("{}", payload, "401");
    }
    check(r#""{\"token\":\"t-acme-both\"}""#, "acme both");
    check(
        &format!(
            r#"{{"token":"t-acme-both","x":"{}"}}"#,
            "x".repeat(MAX_PAYLOAD_BYTES)
        ),
        "401",
    );
}

#[test]
fn without_auth_everyone_is_in_default() {
    for payload in [
        "{}",
        "null",
        "5",
        r#"{"token":"bad"}"#,
        r#"{"realm":"acme","role":"manager"}"#,
    ] {
        check_in("{}", payload, "default both");
        check_in(r#"{"enabled":false}"#, payload, "default both");
    }
    let mut state = state_with("{}");
    let mut socket = SocketAuth::new(state.document());
    assert_eq!(socket.grant().unwrap().via, Via::AuthOff);
    for _ in 0..2 {
        assert_eq!(
            short(&authenticate_on(&mut state, &mut socket, "{}")),
            "default both"
        );
    }
}

#[test]
fn once_only() {
    let mut state = state();
    let (mut socket, outcome) = authenticate(&mut state, r#"{"token":"bad"}"#);
    assert_eq!(short(&outcome), "401");
    for expected in ["acme both", "403", "403"] {
        let outcome = authenticate_on(&mut state, &mut socket, r#"{"token":"t-acme-both"}"#);
        assert_eq!(short(&outcome), expected);
    }
}

#[test]
fn without_a_token() {
    for (payload, expected) in [
        (r#"{"role":"manager"}"#, "401"),
        (r#"{"realm":"open","role":"manager"}"#, "401"),
        (r#"{"realm":"open"}"#, "open both"),
        (r#"{"realm":"open","role":"consumer"}"#, "open consumer"),
        (r#"{"realm":"open","role":"producer"}"#, "open producer"),
        (r#"{"realm":"open","role":"admin"}"#, "open both"),
        (r#"{"realm":"open","token":""}"#, "open both"),
        ("{}", "401"),
        ("null", "401"),
        ("[]", "401"),
        (r#"{"token":5}"#, "401"),
        (r#"{"token":["t-acme-both"]}"#, "401"),
        (r#"{"realm":"acme"}"#, "401"),
        (r#"{"realm":"nowhere"}"#, "401"),
        (r#"{"realm":["open"]}"#, "401"),
        (r#"{"role":["both"]}"#, "401"),
    ] {
        check(payload, expected);
    }
}

#[test]
fn declared_roles() {
    for (payload, expected) in [
        (r#"{"realm":"acme","role":"consumer"}"#, "acme consumer"),
        (r#"{"realm":"acme","role":"producer"}"#, "403"),
        (r#"{"realm":"acme","role":"admin"}"#, "403"),
        (
            r#"{"realm":"nowhere","role":"consumer"}"#,
            "nowhere consumer",
        ),
        (r#"{"role":"consumer"}"#, "default consumer"),
        (r#"{"role":"both"}"#, "403"),
        (r#"{"realm":"acme","key":null}"#, "403"),
        (r#"{"realm":"shop","role":"consumer"}"#, "401"),
        (r#"{"realm":"shop","role":"consumer","key":"wrong"}"#, "401"),
        (
            r#"{"realm":"shop","role":"consumer","key":["shop-key"]}"#,
            "401",
        ),
        (
            r#"{"realm":"shop","role":"consumer","key":"shop-key"}"#,
            "shop consumer",
        ),
        (r#"{"realm":"shop","role":"both","key":"wrong"}"#, "401"),
        (r#"{"realm":"shop","role":"both","key":"shop-key"}"#, "403"),
        (
            r#"{"realm":"shop","role":"producer","key":"shop-key"}"#,
            "403",
        ),
        (r#"{"realm":"shop","key":"shop-key"}"#, "403"),
        (
            r#"{"realm":"keyed","role":"both","key":"keyed-key"}"#,
            "keyed both",
        ),
        (r#"{"realm":"keyed","role":"producer"}"#, "keyed producer"),
        (r#"{"realm":"locked","role":"consumer"}"#, "401"),
        (r#"{"realm":"locked","role":"consumer","key":""}"#, "401"),
        (r#"{"realm":"free","role":"producer"}"#, "free producer"),
    ] {
        check(payload, expected);
    }
}

/// The realm that observes all others is for holders of tokens.
#[test]
fn the_wildcard_needs_a_token() {
    let settings = settings_with(
        "realms",
        r#"{"*":{"required":false,"require_key":false,"require_acceptance":false}}"#,
    );
    for settings in [SETTINGS, &settings] {
        for payload in [
            r#"{"realm":"*"}"#,
            r#"{"realm":"*","role":"consumer"}"#,
            r#"{"realm":"*","role":"producer"}"#,
            r#"{"realm":"*","key":"x"}"#,
            r#"{"realm":"*","role":"admin"}"#,
        ] {
            check_in(settings, payload, "401");
        }
        check_in(settings, r#"{"token":"t-admin"}"#, "* admin");
    }
}

#[test]
fn strict() {
    let strict = settings_with("strict", "true");
    for (payload, expected) in [
        (r#"{"realm":"acme","role":"consumer"}"#, "401"),
        (r#"{"realm":"nowhere","role":"consumer"}"#, "401"),
        (r#"{"role":"consumer"}"#, "401"),
        (
            r#"{"realm":"shop","role":"consumer","key":"shop-key"}"#,
            "shop consumer",
        ),
        (r#"{"realm":"free","role":"producer"}"#, "free producer"),
        (r#"{"realm":"open"}"#, "open both"),
        (r#"{"token":"t-acme-both"}"#, "acme both"),
    ] {
        check_in(&strict, payload, expected);
    }
    let waived =
        r#"{"enabled":true,"strict":true,"realms":{"r":{"required":true,"require_key":false}}}"#;
    check_in(waived, r#"{"realm":"r","role":"consumer"}"#, "r consumer");
}

#[test]
fn tokens() {
    for (payload, expected) in [
        (r#"{"token":"t-acme-prod"}"#, "acme producer"),
        (r#"{"token":"t-acme-both","realm":"beta"}"#, "acme both"),
        (
            r#"{"token":"t-acme-both","realm":"acme","role":"manager"}"#,
            "acme both",
        ),
        (r#"{"token":"t-beta-both"}"#, "beta both"),
        (r#"{"token":"t-plain"}"#, "default both"),
        (r#"{"token":"t-wizard"}"#, "acme wizard"),
        (r#"{"token":"t-admin","realm":"acme"}"#, "* admin"),
        (r#"{"token":"nope"}"#, "401"),
        (r#"{"token":"nope","realm":"open"}"#, "401"),
        (r#"{"token":"T-ACME-BOTH"}"#, "401"),
        (r#"{"token":"t-acme-both "}"#, "401"),
        (r#"{"token":"t-gone"}"#, "401"),
        (r#"{"token":"t-acme-both","token":"nope"}"#, "401"),
    ] {
        check(payload, expected);
    }
}

#[test]
fn a_realm_whose_time_is_over() {
    for payload in [
        r#"{"realm":"gone"}"#,
        r#"{"realm":"gone","role":"consumer"}"#,
        r#"{"realm":"gone","role":"producer"}"#,
        r#"{"token":"t-gone"}"#,
    ] {
        check(payload, "401");
    }
    check(
        &format!(r#"{{"token":"{}"}}"#, token("mk-gone", "gone", "both")),
        "401",
    );
    check(
        &format!(
            r#"{{"token":"{}"}}"#,
            token("global-jwt-secret", "gone", "both")
        ),
        "401",
    );
}

fn token(key: &str, realm: &str, role: &str) -> String {
    jwt::mint(
        &Secret::new(key),
        &Object::new().with("realm", realm).with("role", role),
    )
}

#[test]
fn web_tokens() {
    for (key, realm, expected) in [
        ("mk-acme", "acme", "acme consumer"),
        ("global-jwt-secret", "acme", "acme consumer"),
        ("global-jwt-secret", "nowhere", "nowhere consumer"),
        ("mk-beta", "acme", "401"),
        ("t-acme-cons", "acme", "401"),
        ("shop-key", "shop", "401"),
        ("", "acme", "401"),
        ("", "__proto__", "401"),
        ("undefined", "toString", "401"),
    ] {
        let payload = format!(r#"{{"token":"{}"}}"#, token(key, realm, "consumer"));
        check(&payload, expected);
    }
    let mut state = state();
    let payload = format!(r#"{{"token":"{}"}}"#, token("mk-acme", "acme", "both"));
    let (_, outcome) = authenticate(&mut state, &payload);
    assert_eq!(
        outcome.unwrap().via,
        Via::RealmJwt(SecretHash::of("mk-acme"))
    );
}

/// What no web token can be may still be a token of the settings.
#[test]
fn web_tokens_fall_through_to_static_ones() {
    let odd = token("unknown-key", "acme", "both");
    let settings = settings_with(
        "tokens",
        &format!(r#"[{{"token":"{odd}","realm":"beta"}}]"#),
    );
    check_in(&settings, &format!(r#"{{"token":"{odd}"}}"#), "beta both");
}

#[test]
fn outcomes_on_the_wire() {
    let mut state = state();
    let (_, outcome) = authenticate(&mut state, r#"{"token":"t-acme-both"}"#);
    let (event, payload) = outcome_event(&outcome);
    assert_eq!(
        (event, &*payload),
        ("AUTH_OK", r#"{"realm":"acme","role":"both"}"#)
    );
    let (_, outcome) = authenticate(&mut state, "{}");
    let (event, payload) = outcome_event(&outcome);
    assert_eq!(event, "AUTH_FAIL");
    let payload = object(&payload);
    assert_eq!(
        (payload.len(), payload.get("code").unwrap().as_number()),
        (2, Some(401.0))
    );
}

#[test]
fn guessing_is_slowed_down() {
    let mut state = state_with(&settings_with("max_failures_per_minute", "3"));
    for expected in ["401", "401", "401", "429"] {
        let (_, outcome) = authenticate(&mut state, r#"{"token":"guess"}"#);
        assert_eq!(short(&outcome), expected);
    }
    let (mut socket, outcome) = authenticate(&mut state, r#"{"token":"t-acme-both"}"#);
    assert_eq!(short(&outcome), "429", "guesses may have been right");
    let other = "198.51.100.7".parse().unwrap();
    let step = state.authenticate(&mut socket, Some(r#"{"token":"t-acme-both"}"#), other, NOW);
    assert!(matches!(step, Step::Done(Ok(_))));
    assert_eq!(
        state
            .check_admin_bearer(Some("t-admin"), PEER, NOW)
            .unwrap_err()
            .code,
        429
    );
    assert!(
        state
            .check_admin_bearer(Some("t-admin"), PEER, NOW + 60_000)
            .is_ok()
    );
}

#[test]
fn bearers() {
    let mut state = state();
    assert!(state.check_admin_bearer(Some("t-admin"), PEER, NOW).is_ok());
    for wrong in [None, Some(""), Some("t-acme-both"), Some("m-apps")] {
        assert_eq!(
            state.check_admin_bearer(wrong, PEER, NOW).unwrap_err().code,
            401
        );
    }
    assert!(state_with("{}").check_admin_bearer(None, PEER, NOW).is_ok());
}

#[test]
fn tokens_without_a_socket() {
    for settings in [SETTINGS, &settings_with("enabled", "false")] {
        let mut state = state_with(settings);
        for (token, expected) in [
            ("t-acme-prod", "acme producer"),
            ("t-gone", "401"),
            ("", "401"),
            ("open", "401"),
        ] {
            let hint = RealmName::new("open");
            let Step::Done(outcome) = state.validate_token(token, hint, PEER, NOW) else {
                panic!("asks a validator");
            };
            assert_eq!(short(&outcome), expected, "{token}");
        }
    }
    let mut state = state_with(r#"{"auth_url":"http://x/"}"#);
    let Step::AskExternal(request, pending) = state.validate_token("t", None, PEER, NOW) else {
        panic!("asks nobody");
    };
    assert_eq!(request.url, "http://x/");
    let body = br#"{"realm":"r","role":"both"}"#.to_vec();
    let response = ExternalResponse { status: 200, body };
    let mut socket = SocketAuth::default();
    let outcome = state.finish_authentication(&mut socket, pending, Ok(response), NOW);
    assert_eq!(short(&outcome), "r both");
}

#[test]
fn hostile_names() {
    let huge = "x".repeat(1 << 20);
    for name in [
        "__proto__",
        "constructor",
        "toString",
        "a\\u0000b",
        "\\ud800",
        "\\u202e",
        &huge,
    ] {
        for field in ["realm", "role", "token", "key"] {
            let payload = format!(r#"{{"{field}":"{name}"}}"#);
            let (_, outcome) = authenticate(&mut state(), &payload);
            assert!(outcome.is_err(), "{field}");
        }
    }
    check("{\"realm\":\"a\\nb\",\"role\":\"consumer\"}", "401");
    check(
        &format!(r#"{{"realm":"{}","role":"consumer"}}"#, "x".repeat(257)),
        "401",
    );
}

proptest! {
    #[test]
    fn any_payload(payload in ".*") {
        let (_, outcome) = authenticate(&mut state(), &payload);
        prop_assert!(outcome.is_err());
    }

    #[test]
    fn any_fields(realm in ".{0,20}", role in ".{0,20}", token in ".{1,20}", key in ".{0,20}") {
        let payload = Value::from(Object::new().with("realm", realm).with("role", role).with("token", token).with("key", key));
        let (socket, outcome) = authenticate(&mut state(), &payload.to_json());
        prop_assert!(outcome.is_err() && socket.grant().is_none());
    }
}
