//! What a socket may send before and after it authenticated, and whether it may stay when settings change.

use super::*;
use crate::document::Mutation;
use crate::secret::Secret;
use crate::state::AuthState;
use crate::testing::{NOW, authenticate, settings_with, short, state, state_with};
use crate::{json::Object, jwt};

fn decide(state: &AuthState, socket: &mut SocketAuth, event: &str) -> String {
    match socket.authorize(event, state.document(), NOW) {
        Decision::Allowed => "allowed".to_owned(),
        Decision::Granted => {
            let grant = socket.grant().unwrap();
            format!("{} {}", grant.realm, grant.role)
        }
        Decision::Refused(refusal) => refusal.code.to_string(),
    }
}

fn check_first(settings: &str, event: &str, expected: &str) {
    let state = state_with(settings);
    let mut socket = SocketAuth::new(state.document());
    assert_eq!(
        decide(&state, &mut socket, event),
        expected,
        "{event} in {settings}"
    );
}

fn check_with_token(token: &str, event: &str, expected: &str) {
    let mut state = state();
    let (mut socket, _) = authenticate(&mut state, &format!(r#"{{"token":"{token}"}}"#));
    assert_eq!(
        decide(&state, &mut socket, event),
        expected,
        "{event} with {token}"
    );
}

#[test]
fn before_authentication() {
    let closed = r#"{"enabled":true}"#;
    for event in [
        "AUTHENTICATION",
        "AUTHORIZATION_REQUEST",
        "AUTHORIZATION_NEXT",
        "AUTHORIZATION_DECIDE",
        "AUTH_MANAGEMENT_COMMAND",
    ] {
        check_first(closed, event, "allowed");
    }
    for event in [
        "PRODUCE",
        "PRODUCER",
        "PRODUCE_CHUNK",
        "PING",
        "HELLO",
        "QUIT",
        "DEBUG",
        "KEY_LOOKUP",
        "REMOTE_TICKET_REQUEST",
        "made-up",
    ] {
        check_first(closed, event, "401");
    }
    for event in ["CONSUMER", "SUBSCRIBE", "UNSUBSCRIBE", "ACK"] {
        check_first(closed, event, "default consumer");
        check_first(r#"{"enabled":true,"strict":true}"#, event, "401");
    }
}

#[test]
fn implicit_grants() {
    check_first("{}", "PRODUCE", "allowed");
    let open = r#"{"enabled":true,"realms":{"default":{"required":false}}}"#;
    check_first(open, "PING", "default both");
    check_first(open, "PRODUCE", "default both");
    let keyed = r#"{"enabled":true,"realms":{"default":{"key":"k"}}}"#;
    check_first(keyed, "SUBSCRIBE", "401");
    let waived = r#"{"enabled":true,"realms":{"default":{"require_acceptance":false}}}"#;
    check_first(waived, "PRODUCE", "default producer");
    check_first(waived, "PING", "401");
    let gone = r#"{"enabled":true,"realms":{"default":{"required":false,"ephemeral":true,"expires_at":5}}}"#;
    for event in ["PING", "SUBSCRIBE", "PRODUCE"] {
        check_first(gone, event, "401");
    }
}

#[test]
fn grants_stay() {
    let mut state = state_with(r#"{"enabled":true}"#);
    let mut socket = SocketAuth::new(state.document());
    assert_eq!(decide(&state, &mut socket, "SUBSCRIBE"), "default consumer");
    assert_eq!(decide(&state, &mut socket, "SUBSCRIBE"), "allowed");
    assert_eq!(decide(&state, &mut socket, "PRODUCE"), "403");
    let outcome = crate::testing::authenticate_on(&mut state, &mut socket, r#"{"token":"x"}"#);
    assert_eq!(short(&outcome), "403");
}

/// The realm of a failed attempt is the realm of what comes next.
#[test]
fn the_realm_that_was_meant() {
    let mut state = state();
    for (realm, event, expected) in [
        ("beta", "SUBSCRIBE", "beta consumer"),
        ("beta", "PRODUCE", "401"),
        ("open", "PRODUCE", "open both"),
        ("free", "PRODUCE", "free producer"),
        ("shop", "SUBSCRIBE", "401"),
        ("gone", "SUBSCRIBE", "401"),
        ("*", "SUBSCRIBE", "401"),
        ("*", "PRODUCE", "401"),
    ] {
        let (mut socket, outcome) = authenticate(
            &mut state,
            &format!(r#"{{"realm":"{realm}","token":"bad"}}"#),
        );
        assert!(outcome.is_err());
        assert_eq!(
            decide(&state, &mut socket, event),
            expected,
            "{realm} {event}"
        );
    }
}

#[test]
fn roles() {
    check_with_token("t-acme-prod", "PRODUCE", "allowed");
    check_with_token("t-acme-prod", "SUBSCRIBE", "403");
    check_with_token("t-acme-cons", "SUBSCRIBE", "allowed");
    check_with_token("t-acme-cons", "PRODUCER", "403");
    check_with_token("t-acme-cons", "PING", "allowed");
    check_with_token("t-wizard", "KEY_LOOKUP", "403");
    check_with_token("t-wizard", "PING", "allowed");
    check_with_token("t-admin", "PRODUCE", "allowed");
}

/// In an open realm the role is advice.
#[test]
fn roles_in_open_realms() {
    let mut state = state();
    let (mut socket, _) = authenticate(&mut state, r#"{"realm":"open","role":"consumer"}"#);
    assert_eq!(decide(&state, &mut socket, "PRODUCE"), "allowed");
}

fn recheck_after(settings: &str, payload: &str, mutation: Mutation) -> bool {
    let mut state = state_with(settings);
    let (socket, outcome) = authenticate(&mut state, payload);
    assert!(outcome.is_ok(), "{payload}");
    assert!(socket.recheck(state.document(), NOW).is_ok());
    let applied = state.document.apply([mutation]).unwrap();
    assert!(
        applied
            .changes
            .iter()
            .any(|change| socket.is_concerned(change))
    );
    socket.recheck(state.document(), NOW).is_ok()
}

fn put(name: &str, config: &str) -> Mutation {
    let config = crate::document::RealmConfig::parse(config).unwrap();
    Mutation::PutRealm(RealmName::new(name).unwrap(), config)
}

#[test]
fn sessions_are_checked_when_settings_change() {
    let settings = crate::testing::SETTINGS;
    let realm = |name: &str| RealmName::new(name).unwrap();
    let remove = |token: &str| Mutation::RemoveToken(SecretHash::of(token));
    assert!(!recheck_after(
        settings,
        r#"{"token":"t-acme-both"}"#,
        remove("t-acme-both")
    ));
    assert!(!recheck_after(
        settings,
        r#"{"token":"t-acme-both"}"#,
        Mutation::RemoveRealm(realm("acme"))
    ));
    assert!(!recheck_after(
        settings,
        r#"{"realm":"open"}"#,
        put("open", "{}")
    ));
    assert!(recheck_after(
        settings,
        r#"{"realm":"open"}"#,
        put("open", r#"{"required":false,"key":"k"}"#)
    ));
    let consumer = r#"{"realm":"acme","role":"consumer"}"#;
    assert!(!recheck_after(
        settings,
        consumer,
        put("acme", r#"{"key":"new"}"#)
    ));
    assert!(recheck_after(
        settings,
        consumer,
        put("acme", r#"{"e2ee":"required"}"#)
    ));
    let strict = Mutation::SetField("strict", Some(true.into()));
    assert!(!recheck_after(settings, consumer, strict));
    let keyed = r#"{"realm":"shop","role":"consumer","key":"shop-key"}"#;
    assert!(!recheck_after(
        settings,
        keyed,
        put("shop", r#"{"key":"other"}"#)
    ));
    assert!(recheck_after(
        settings,
        keyed,
        put("shop", r#"{"key":"shop-key","e2ee":"required"}"#)
    ));
    let token = |key: &str| {
        let claims = Object::new().with("realm", "acme").with("role", "both");
        format!(r#"{{"token":"{}"}}"#, jwt::mint(&Secret::new(key), &claims))
    };
    assert!(!recheck_after(
        settings,
        &token("mk-acme"),
        put("acme", r#"{"manager_key":"other"}"#)
    ));
    assert!(recheck_after(
        settings,
        &token("mk-acme"),
        put("acme", r#"{"manager_key":"mk-acme","required":false}"#)
    ));
    let secret = Mutation::SetField("jwt_secret", Some("other".into()));
    assert!(!recheck_after(
        settings,
        &token("global-jwt-secret"),
        secret
    ));
    let enabled = || Mutation::SetField("enabled", Some(true.into()));
    assert!(!recheck_after("{}", "{}", enabled()));
    assert!(recheck_after(
        r#"{"realms":{"default":{"required":false}}}"#,
        "{}",
        enabled()
    ));
}

#[test]
fn a_realm_ends_at_its_moment() {
    let mut state = state();
    let claims = Object::new()
        .with("realm", "apps:live")
        .with("role", "both");
    let token = jwt::mint(&Secret::new("mk-live"), &claims);
    let (mut socket, outcome) = authenticate(&mut state, &format!(r#"{{"token":"{token}"}}"#));
    assert!(outcome.is_ok());
    let mut at = |now| socket.authorize("PRODUCE", state.document(), now);
    assert_eq!(at(NOW + 59_999), Decision::Allowed);
    assert!(matches!(
        at(NOW + 60_000),
        Decision::Refused(Refusal { code: 401, .. })
    ));
    assert!(socket.recheck(state.document(), NOW + 60_000).is_err());
}

#[test]
fn a_realm_with_another_name() {
    let mut state = state_with(&settings_with("strict", "false"));
    let (mut socket, _) = authenticate(&mut state, r#"{"token":"t-acme-both"}"#);
    let [from, to] = ["acme", "acme2"].map(|name| RealmName::new(name).unwrap());
    let rename = Mutation::RenameRealm {
        from: from.clone(),
        to: to.clone(),
    };
    let applied = state.document.apply([rename]).unwrap();
    assert!(
        applied
            .changes
            .iter()
            .any(|change| socket.is_concerned(change))
    );
    socket.rename_realm(&from, &to);
    assert_eq!(socket.grant().unwrap().realm, to);
    assert!(socket.recheck(state.document(), NOW).is_ok());
}
