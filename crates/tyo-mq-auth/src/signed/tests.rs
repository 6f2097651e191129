//! Who may sign what, and that it counts once.

use proptest::prelude::*;

use super::*;
use crate::document::AuthDocument;
use crate::entropy::SeededEntropy;
use crate::json::Value;
use crate::nonce::{NonceWindow, WINDOW_MS};
use crate::testing::{ADMIN, NOW, PEER, SETTINGS, signed, state};

const EVENTS: [SignedEvent; 3] = [SignedEvent::Next, SignedEvent::Decide, SignedEvent::Manage];

fn verify(state: &mut AuthState, event: SignedEvent, payload: &str) -> Result<Actor, u16> {
    state
        .verify(event, Some(payload), PEER, NOW)
        .map(|verified| verified.actor)
        .map_err(|refusal| refusal.code)
}

fn check(secret: &str, event: SignedEvent, body: &str, expected: Option<&str>) {
    let payload = signed(secret, event, body, "n");
    let actor = verify(&mut state(), event, &payload)
        .ok()
        .map(|actor| match actor {
            Actor::Realm(realm) => realm.to_string(),
            _ => "global".to_owned(),
        });
    assert_eq!(actor.as_deref(), expected, "{secret} {body}");
}

#[test]
fn scopes() {
    use SignedEvent::{Decide, Manage, Next};
    for event in EVENTS {
        check(ADMIN, event, "{}", Some("global"));
        for secret in [
            "t-acme-both",
            "mk-acme",
            "shop-key",
            "m-apps",
            "global-jwt-secret",
            "undefined",
            "null",
        ] {
            check(secret, event, "{}", None);
        }
    }
    check("mk-acme", Next, r#"{"realm":"acme"}"#, Some("acme"));
    check("mk-acme", Next, r#"{"realm":"beta"}"#, None);
    check("mk-acme", Next, r#"{"realm":["acme"]}"#, None);
    check("mk-acme", Next, r#"{"realm":"__proto__"}"#, None);
    check(
        "mk-acme",
        Decide,
        r#"{"request_id":"none","realm":"acme"}"#,
        None,
    );
    for command in [
        "set_realm_lifetime",
        "set_realm_key",
        "set_realm_acceptance",
        "set_realm_e2ee",
        "list_requests",
    ] {
        let body = |realm: &str| format!(r#"{{"command":"{command}","realm":"{realm}"}}"#);
        check("mk-acme", Manage, &body("acme"), Some("acme"));
        check("mk-acme", Manage, &body("beta"), None);
        check("mk-gone", Manage, &body("gone"), None);
    }
    for command in [
        "get",
        "add_realm",
        "remove_realm",
        "set_realm_auth",
        "set_realm_manager_key",
        "stats",
        "add_token",
        "made_up",
    ] {
        check(
            "mk-acme",
            Manage,
            &format!(r#"{{"command":"{command}","realm":"acme"}}"#),
            None,
        );
    }
}

#[test]
fn reserved_realms_have_no_managers() {
    let settings = r#"{"realms":{"*":{"manager_key":"k"},"default":{"manager_key":"k"}},"tokens":[{"token":"t-admin","realm":"*","role":"admin"}]}"#;
    for realm in ["*", "default"] {
        let mut state = crate::testing::state_with(settings);
        let body = format!(r#"{{"command":"set_realm_key","realm":"{realm}"}}"#);
        let payload = signed("k", SignedEvent::Manage, &body, "n");
        assert_eq!(verify(&mut state, SignedEvent::Manage, &payload), Err(401));
    }
    let mut state = crate::testing::state_with(settings);
    let payload = signed("k", SignedEvent::Next, r#"{"realm":"*"}"#, "n");
    assert_eq!(verify(&mut state, SignedEvent::Next, &payload), Err(401));
    // The admin manages also while clients need not authenticate.
    let payload = signed(ADMIN, SignedEvent::Manage, "{}", "n");
    assert!(verify(&mut state, SignedEvent::Manage, &payload).is_ok());
}

#[test]
fn once_only() {
    let mut state = state();
    let payload = signed(ADMIN, SignedEvent::Manage, "{}", "n");
    assert!(verify(&mut state, SignedEvent::Manage, &payload).is_ok());
    assert_eq!(verify(&mut state, SignedEvent::Manage, &payload), Err(401));
    // The nonce in a list is another value and the same text.
    let wrapped = payload.replace(r#""nonce":"n""#, r#""nonce":["n"]"#);
    assert_eq!(verify(&mut state, SignedEvent::Manage, &wrapped), Err(401));
    let other = signed("mk-acme", SignedEvent::Next, r#"{"realm":"acme"}"#, "n");
    assert_eq!(
        verify(&mut state, SignedEvent::Next, &other),
        Err(401),
        "nonces are spent for all keys and actions"
    );
}

#[test]
fn failed_proofs_spend_nothing() {
    let mut state = state();
    let payload = signed("wrong", SignedEvent::Manage, "{}", "n");
    assert_eq!(verify(&mut state, SignedEvent::Manage, &payload), Err(401));
    let payload = signed(ADMIN, SignedEvent::Manage, "{}", "n");
    assert_eq!(
        verify(&mut state, SignedEvent::Next, &payload),
        Err(401),
        "signed for another event"
    );
    assert!(verify(&mut state, SignedEvent::Manage, &payload).is_ok());
}

fn check_time(signed_at: u64, expected: bool) {
    let body = crate::json::Object::new();
    let secret = crate::secret::Secret::new(ADMIN);
    let payload = Value::from(crate::proof::sign(
        &secret,
        "AUTHORIZATION_NEXT",
        signed_at,
        "n",
        &body,
    ))
    .to_json();
    assert_eq!(
        verify(&mut state(), SignedEvent::Next, &payload).is_ok(),
        expected,
        "{signed_at}"
    );
}

#[test]
fn time() {
    check_time(NOW - WINDOW_MS, true);
    check_time(NOW + WINDOW_MS, true);
    check_time(NOW - WINDOW_MS - 1, false);
    check_time(NOW + WINDOW_MS + 1, false);
    check_time(0, false);
}

#[test]
fn after_a_restart() {
    let mut first = state();
    let payload = signed(ADMIN, SignedEvent::Manage, "{}", "n");
    let verified = first
        .verify(SignedEvent::Manage, Some(&payload), PEER, NOW)
        .unwrap();
    let kept = [verified.used_nonce()];
    let restart = |nonces| {
        let (document, _) = AuthDocument::parse(SETTINGS).unwrap();
        AuthState::new(document, nonces, Box::new(SeededEntropy::new(1)))
    };
    let mut remembering = restart(NonceWindow::restored(kept, NOW));
    assert_eq!(
        verify(&mut remembering, SignedEvent::Manage, &payload),
        Err(401)
    );
    let fresh = signed(ADMIN, SignedEvent::Manage, "{}", "n2");
    assert!(verify(&mut remembering, SignedEvent::Manage, &fresh).is_ok());
    let mut forgetful = restart(NonceWindow::forgetful(NOW + 1));
    assert_eq!(
        verify(&mut forgetful, SignedEvent::Manage, &payload),
        Err(401)
    );
}

#[test]
fn refusals_without_an_ack() {
    let refusal = Refusal::unauthenticated("no");
    assert_eq!(
        SignedEvent::Next.refuse(&refusal).event,
        "AUTHORIZATION_FAIL"
    );
    assert_eq!(
        SignedEvent::Decide.refuse(&refusal).event,
        "AUTHORIZATION_FAIL"
    );
    let reply = SignedEvent::Manage.refuse(&refusal);
    assert_eq!(reply.event, "AUTH_MANAGEMENT_FAIL");
    assert_eq!(reply.payload, r#"{"ok":false,"code":401,"message":"no"}"#);
}

#[test]
fn guessing_is_slowed_down() {
    let mut state = crate::testing::state_with(&crate::testing::settings_with(
        "max_failures_per_minute",
        "2",
    ));
    for expected in [401, 401, 429] {
        assert_eq!(verify(&mut state, SignedEvent::Manage, "{}"), Err(expected));
    }
}

proptest! {
    #[test]
    fn any_payload(payload in ".*") {
        for event in EVENTS {
            prop_assert!(verify(&mut state(), event, &payload).is_err());
        }
    }
}
