//! Requests, what managers see of them, and how they are decided.

use proptest::prelude::*;

use super::*;
use crate::document::RowChange;
use crate::secret::SecretHash;
use crate::testing::{
    ADMIN, NOW, PEER, at, authenticate, code, object, settings_with, short, signed, state,
    state_with,
};

const REQUEST: &str = r#"{"realm":"acme","role":"consumer","client_id":"cid","client_name":"Client","client_token":"my-token"}"#;

fn submit(state: &mut AuthState, payload: &str) -> Object {
    let handled = state.request_admission(Some(payload), "socket-1", PEER, NOW);
    assert!(handled.reply.is_always_event);
    object(&handled.reply.payload)
}

fn id_of(answer: &Object) -> String {
    answer.non_empty_str("request_id").unwrap().to_owned()
}

fn ask(
    state: &mut AuthState,
    secret: &str,
    event: SignedEvent,
    body: &str,
) -> (Object, Vec<Effect>) {
    let nonce = format!("n{}", state.nonces.len());
    let payload = signed(secret, event, body, &nonce);
    match state.verify(event, Some(&payload), PEER, NOW + 1) {
        Ok(verified) => {
            let handled = state.handle_authorization(verified, NOW + 1);
            (object(&handled.reply.payload), handled.effects)
        }
        Err(refusal) => (object(&event.refuse(&refusal).payload), Vec::new()),
    }
}

fn decide(state: &mut AuthState, secret: &str, body: &str) -> (Object, Vec<Effect>) {
    ask(state, secret, SignedEvent::Decide, body)
}

#[test]
fn what_a_request_needs() {
    for payload in [
        "{}",
        "null",
        "5",
        "[]",
        r#""{bad""#,
        "{",
        r#"{"realm":"r","client_id":"c","client_name":"n"}"#,
        r#"{"realm":"r","client_id":"c","client_name":"n","client_token":""}"#,
        r#"{"realm":"","client_id":"c","client_name":"n","client_token":"t"}"#,
        r#"{"realm":"r","client_id":5,"client_name":"n","client_token":"t"}"#,
        r#"{"realm":{},"client_id":"c","client_name":"n","client_token":"t"}"#,
        r#"{"realm":"r","client_id":"c\u0000","client_name":"n","client_token":"t"}"#,
        &format!(
            r#"{{"realm":"{}","client_id":"c","client_name":"n","client_token":"t"}}"#,
            "r".repeat(257)
        ),
        &format!(
            r#"{{"realm":"r","client_id":"c","client_name":"{}","client_token":"t"}}"#,
            "n".repeat(1025)
        ),
        &format!(
            r#"{{"realm":"r","client_id":"c","client_name":"n","client_token":"{}"}}"#,
            "t".repeat(MAX_REQUEST_BYTES)
        ),
    ] {
        let mut state = state();
        let handled = state.request_admission(Some(payload), "s", PEER, NOW);
        assert_eq!(handled.reply.event, "AUTHORIZATION_REQUEST_FAIL");
        assert_eq!(code(&object(&handled.reply.payload)), 400, "{payload}");
        assert!(state.requests.is_empty());
    }
    let mut state = state();
    let answer = submit(&mut state, &Value::from(REQUEST).to_json());
    assert_eq!(at(&answer, "status"), r#""pending""#);
    let id = id_of(&answer);
    let (prefix, suffix) = id.rsplit_once('-').unwrap();
    assert_eq!((prefix, suffix.len()), ("authreq-mgj6k3cw", 12));
    assert_eq!(answer.len(), 3);
}

#[test]
fn what_managers_see() {
    let mut state = state();
    let request = REQUEST.replace(
        '}',
        r#","challengeResponse":{"ticket":1e3},"role":"emperor"}"#,
    );
    let id = id_of(&submit(&mut state, &request));
    let (answer, _) = ask(&mut state, ADMIN, SignedEvent::Next, "{}");
    assert_eq!(
        Value::from(answer).to_json(),
        format!(
            r#"{{"ok":true,"request":{{"request_id":"{id}","status":"pending","realm":"acme","role":"both","client_id":"cid","client_name":"Client","client_token_hash":"{}","challenge_response":{{"ticket":1e3}},"created_at":"2025-10-09T08:53:20.000Z","decided_at":null,"decision_reason":null}}}}"#,
            SecretHash::of("my-token").to_hex()
        )
    );
}

#[test]
fn next_by_realm() {
    let mut state = state();
    let first = id_of(&submit(&mut state, REQUEST));
    let second = id_of(&submit(&mut state, &REQUEST.replace("acme", "beta")));
    let mut next = |secret: &str, body: &str| {
        at(
            &ask(&mut state, secret, SignedEvent::Next, body).0,
            "request.request_id",
        )
    };
    assert_eq!(next(ADMIN, "{}"), format!("\"{first}\""));
    assert_eq!(
        next(ADMIN, "{}"),
        format!("\"{first}\""),
        "looking takes nothing away"
    );
    assert_eq!(next(ADMIN, r#"{"realm":"beta"}"#), format!("\"{second}\""));
    assert_eq!(next(ADMIN, r#"{"realm":"none"}"#), "null");
    assert_eq!(
        next("mk-acme", r#"{"realm":"acme"}"#),
        format!("\"{first}\"")
    );
    assert_eq!(
        code(
            &ask(
                &mut state,
                "mk-acme",
                SignedEvent::Next,
                r#"{"realm":"beta"}"#
            )
            .0
        ),
        401
    );
    assert_eq!(
        code(
            &ask(
                &mut state,
                ADMIN,
                SignedEvent::Next,
                r#"{"realm":["beta"]}"#
            )
            .0
        ),
        400
    );
}

#[test]
fn approval() {
    let mut state = state();
    let id = id_of(&submit(&mut state, REQUEST));
    let token = r#"{"token":"my-token"}"#;
    assert_eq!(short(&authenticate(&mut state, token).1), "401");
    let (answer, effects) = decide(
        &mut state,
        "mk-acme",
        &format!(r#"{{"request_id":"{id}","approved":true}}"#),
    );
    assert_eq!(at(&answer, "request.status"), r#""approved""#);
    assert_eq!(
        at(&answer, "request.role"),
        r#""consumer""#,
        "what was asked for"
    );
    assert_eq!(
        at(&answer, "request.decided_at"),
        r#""2025-10-09T08:53:20.001Z""#
    );
    assert_eq!(short(&authenticate(&mut state, token).1), "acme consumer");
    let notice = Effect::Notify {
        socket: "socket-1".to_owned(),
        event: "AUTHORIZATION_APPROVED",
        payload: format!(r#"{{"request_id":"{id}","realm":"acme","role":"consumer"}}"#),
    };
    assert!(effects.contains(&notice) && effects.contains(&Effect::DropRequest { id: id.clone() }));
    let Some(Effect::Persist(rows)) = effects
        .iter()
        .find(|effect| matches!(effect, Effect::Persist(_)))
    else {
        panic!("{effects:?}");
    };
    let [RowChange::Put { value, .. }] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert!(!value.contains("my-token"));
    assert!(
        value.contains(r#""client_id":"cid","client_name":"Client""#)
            && value.contains("approved_at")
    );
    let (answer, _) = decide(
        &mut state,
        ADMIN,
        &format!(r#"{{"request_id":"{id}","approved":true}}"#),
    );
    assert_eq!(code(&answer), 404);
}

#[test]
fn tokens_as_they_are_where_settings_want_them() {
    let mut state = state_with(&settings_with("token_storage", r#""plain""#));
    let id = id_of(&submit(&mut state, REQUEST));
    let _ = decide(
        &mut state,
        ADMIN,
        &format!(r#"{{"request_id":"{id}","approved":true}}"#),
    );
    let settings = Value::from(state.document.to_settings(false)).to_json();
    assert!(settings.contains(r#"{"client_id":"cid","client_name":"Client","token":"my-token","realm":"acme","role":"consumer","approved_at":"2025-10-09T08:53:20.001Z"}"#));
}

#[test]
fn rejection() {
    let mut state = state();
    let id = id_of(&submit(&mut state, REQUEST));
    let (answer, effects) = decide(
        &mut state,
        ADMIN,
        &format!(r#"{{"request_id":"{id}","approved":false,"reason":"no <b>"}}"#),
    );
    assert_eq!(at(&answer, "request.status"), r#""rejected""#);
    assert_eq!(at(&answer, "request.decision_reason"), r#""no <b>""#);
    let notice = Effect::Notify {
        socket: "socket-1".to_owned(),
        event: "AUTHORIZATION_REJECTED",
        payload: format!(r#"{{"request_id":"{id}","reason":"no <b>"}}"#),
    };
    assert!(effects.contains(&notice));
    assert_eq!(
        short(&authenticate(&mut state, r#"{"token":"my-token"}"#).1),
        "401"
    );
}

fn check_decision(secret: &str, more: &str, expected: u64) {
    let mut state = state();
    let id = id_of(&submit(&mut state, REQUEST));
    let (answer, _) = decide(
        &mut state,
        secret,
        &format!(r#"{{"request_id":"{id}"{more}}}"#),
    );
    assert_eq!(code(&answer), expected, "{secret} {more}");
    assert_eq!(state.requests.is_empty(), expected == 200);
}

#[test]
fn decisions() {
    for more in [
        "",
        r#","approved":"false""#,
        r#","approved":1"#,
        r#","approved":null"#,
        r#","approved":true,"role":"emperor""#,
        r#","approved":true,"role":["both"]"#,
        r#","approved":false,"reason":{}"#,
    ] {
        check_decision(ADMIN, more, 400);
    }
    for role in ["producer", "consumer", "both", "manager", "admin", ""] {
        check_decision(ADMIN, &format!(r#","approved":true,"role":"{role}""#), 200);
    }
    for role in ["manager", "admin"] {
        check_decision(
            "mk-acme",
            &format!(r#","approved":true,"role":"{role}""#),
            403,
        );
    }
    check_decision("mk-beta", r#","approved":true"#, 401);
    check_decision("mk-beta", r#","approved":true,"realm":"beta""#, 401);
    let mut state = state();
    for body in [
        "{}",
        r#"{"request_id":"none","approved":true}"#,
        r#"{"request_id":["x"],"approved":true}"#,
    ] {
        assert_eq!(code(&decide(&mut state, ADMIN, body).0), 404);
        assert_eq!(code(&decide(&mut state, "mk-acme", body).0), 401);
    }
}

#[test]
fn the_newest_request_of_a_client_counts() {
    let mut state = state();
    let old = id_of(&submit(&mut state, REQUEST));
    let handled = state.request_admission(Some(REQUEST), "s", PEER, NOW);
    assert!(
        handled
            .effects
            .contains(&Effect::DropRequest { id: old.clone() })
    );
    assert_eq!(state.requests.len(), 1);
    let (answer, _) = decide(
        &mut state,
        ADMIN,
        &format!(r#"{{"request_id":"{old}","approved":true}}"#),
    );
    assert_eq!(code(&answer), 404);
    let (answer, _) = decide(
        &mut state,
        "mk-acme",
        &format!(r#"{{"request_id":"{old}","approved":true}}"#),
    );
    assert_eq!(code(&answer), 401);
}

/// A token that means something already does not silently keep its old meaning.
#[test]
fn tokens_in_use() {
    for (token, expected) in [("t-acme-cons", 200), ("t-acme-both", 409), ("t-admin", 409)] {
        let mut state = state();
        let id = id_of(&submit(&mut state, &REQUEST.replace("my-token", token)));
        let (answer, _) = decide(
            &mut state,
            ADMIN,
            &format!(r#"{{"request_id":"{id}","approved":true}}"#),
        );
        assert_eq!(code(&answer), expected, "{token}");
    }
}

#[test]
fn another_admin() {
    let mut state = state();
    let request = REQUEST.replace("acme", "*").replace("consumer", "admin");
    let id = id_of(&submit(&mut state, &request));
    let (answer, _) = decide(
        &mut state,
        ADMIN,
        &format!(r#"{{"request_id":"{id}","approved":true}}"#),
    );
    assert_eq!(code(&answer), 200);
    let (answer, _) = ask(&mut state, "my-token", SignedEvent::Next, "{}");
    assert_eq!(code(&answer), 200, "the new admin signs");
    let id = id_of(&submit(
        &mut state,
        &REQUEST.replace("acme", "*").replace("my-token", "t2"),
    ));
    let (answer, _) = decide(
        &mut state,
        ADMIN,
        &format!(r#"{{"request_id":"{id}","approved":true,"role":"admin"}}"#),
    );
    assert_eq!(code(&answer), 409, "of this token only the digest is known");
}

#[test]
fn requests_are_bounded() {
    let mut state = state();
    state.requests_mut().set_max(2);
    for client in ["a", "b"] {
        assert_eq!(
            code(&submit(&mut state, &REQUEST.replace("cid", client))),
            200
        );
    }
    assert_eq!(code(&submit(&mut state, &REQUEST.replace("cid", "c"))), 429);
    assert_eq!(
        code(&submit(&mut state, &REQUEST.replace("cid", "b"))),
        200,
        "in the place of its older one"
    );
    state.requests_mut().set_max(usize::MAX);
    for n in 0..MAX_PENDING_PER_PEER - 2 {
        assert_eq!(
            code(&submit(&mut state, &REQUEST.replace("cid", &n.to_string()))),
            200
        );
    }
    assert_eq!(code(&submit(&mut state, &REQUEST.replace("cid", "c"))), 429);
    let other = "198.51.100.7".parse().unwrap();
    let handled = state.request_admission(Some(&REQUEST.replace("cid", "c")), "s", other, NOW);
    assert!(handled.reply.is_ok);
}

#[test]
fn requests_are_forgotten() {
    let mut state = state();
    let id = id_of(&submit(&mut state, REQUEST));
    let end = NOW + PENDING_TTL_MS;
    assert!(state.requests.get(&id, end - 1).is_some());
    assert!(state.requests.get(&id, end).is_none());
    assert!(state.requests.pending(None, end).next().is_none());
    assert_eq!(state.requests.next_expiry_ms(), Some(end));
    assert!(state.on_deadline(end).contains(&Effect::DropRequest { id }));
    assert!(state.requests.is_empty());
}

#[test]
fn requests_outlive_a_restart() {
    for settings in [
        settings_with("token_storage", r#""plain""#),
        settings_with("strict", "false"),
    ] {
        let mut before = state_with(&settings);
        let handled = before.request_admission(Some(REQUEST), "s", PEER, NOW);
        let Some(Effect::KeepRequest { id, json }) = handled.effects.last() else {
            panic!()
        };
        assert_eq!(
            json.expose().contains("my-token"),
            settings.contains(r#""plain""#)
        );
        let mut after = state_with(&settings);
        let restored = EnrolmentRequest::from_stored(json.expose()).unwrap();
        assert_eq!(after.requests_mut().insert(restored).unwrap().count(), 0);
        let (answer, _) = decide(
            &mut after,
            ADMIN,
            &format!(r#"{{"request_id":"{id}","approved":true}}"#),
        );
        assert_eq!(code(&answer), 200);
        assert_eq!(
            short(&authenticate(&mut after, r#"{"token":"my-token"}"#).1),
            "acme consumer"
        );
    }
    for bad in [
        "",
        "{}",
        "[]",
        r#"{"request_id":"x","realm":"","role":"both"}"#,
    ] {
        assert!(EnrolmentRequest::from_stored(bad).is_none());
    }
}

#[test]
fn effects_do_not_show_tokens() {
    let mut state = state_with(&settings_with("token_storage", r#""plain""#));
    let handled = state.request_admission(Some(REQUEST), "s", PEER, NOW);
    let id = id_of(&object(&handled.reply.payload));
    let body = format!(r#"{{"request_id":"{id}","approved":true}}"#);
    let (_, effects) = decide(&mut state, ADMIN, &body);
    let shown = format!("{handled:?} {effects:?} {state:?} {:?}", state.requests());
    assert!(!shown.contains("my-token"));
}

#[test]
fn decisions_are_audited() {
    let mut state = state();
    let id = id_of(&submit(&mut state, REQUEST));
    let (_, effects) = decide(
        &mut state,
        "mk-acme",
        &format!(r#"{{"request_id":"{id}","approved":true,"role":"admin"}}"#),
    );
    let entry = state.audit().iter().next_back().unwrap();
    assert_eq!(
        (entry.refused, entry.target.as_deref()),
        (Some(403), Some(&*id))
    );
    assert!(effects.contains(&Effect::Audit(entry.clone())));
    assert!(entry.to_json().contains("manager of acme"));
}

proptest! {
    #[test]
    fn any_request(payload in ".*") {
        let handled = state().request_admission(Some(&payload), "s", PEER, NOW);
        prop_assert!(!handled.reply.is_ok);
    }

    #[test]
    fn any_fields(realm in ".{0,300}", id in ".{0,20}", name in ".{0,20}", token in ".{0,20}") {
        let payload = Object::new().with("realm", realm).with("client_id", id).with("client_name", name).with("client_token", token.as_str());
        let mut state = state();
        let handled = state.request_admission(Some(&Value::from(payload).to_json()), "s", PEER, NOW);
        if handled.reply.is_ok {
            prop_assert_eq!(state.requests.len(), 1);
            let Some(Effect::KeepRequest { json, .. }) = handled.effects.last() else { panic!() };
            prop_assert!(EnrolmentRequest::from_stored(json.expose()).is_some());
        }
    }
}
