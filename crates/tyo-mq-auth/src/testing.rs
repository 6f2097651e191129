//! What the tests of this crate share: a state with realms and tokens, and short ways to ask it.

use std::net::{IpAddr, Ipv4Addr};

use crate::attempt::{Outcome, Step};
use crate::document::AuthDocument;
use crate::effect::{Effect, Handled};
use crate::entropy::SeededEntropy;
use crate::json::{Object, Value};
use crate::management::{Execution, ServerView};
use crate::nonce::NonceWindow;
use crate::proof;
use crate::secret::Secret;
use crate::session::{Grant, SocketAuth};
use crate::signed::SignedEvent;
use crate::state::AuthState;

/// The time at which tests happen.
pub(crate) const NOW: u64 = 1_760_000_000_000;
pub(crate) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
pub(crate) const ADMIN: &str = "t-admin";

/// Realms of every kind, and tokens for them.
pub(crate) const SETTINGS: &str = r#"{
    "enabled": true,
    "jwt_secret": "global-jwt-secret",
    "realms": {
        "acme": {"required": true, "manager_key": "mk-acme"},
        "beta": {"required": true, "manager_key": "mk-beta"},
        "shop": {"required": true, "key": "shop-key", "require_acceptance": true},
        "keyed": {"required": true, "key": "keyed-key", "require_acceptance": false},
        "locked": {"required": true, "require_key": true},
        "free": {"required": true, "require_acceptance": false},
        "open": {"required": false},
        "gone": {"required": false, "ephemeral": true, "expires_at": 1759999999999, "manager_key": "mk-gone"},
        "apps:live": {"required": true, "ephemeral": true, "expires_at": 1760000060000, "manager_key": "mk-live"}
    },
    "tokens": [
        {"token": "t-acme-prod", "realm": "acme", "role": "producer"},
        {"token": "t-acme-cons", "realm": "acme", "role": "consumer", "client_id": "c1", "client_name": "C 1"},
        {"token": "t-acme-both", "realm": "acme", "role": "both"},
        {"token": "t-beta-both", "realm": "beta"},
        {"token": "t-plain"},
        {"token": "t-gone", "realm": "gone", "role": "both"},
        {"token": "t-wizard", "realm": "acme", "role": "wizard"},
        {"token": "t-admin", "realm": "*", "role": "admin"}
    ],
    "management_tokens": [
        {"token": "m-apps", "realm_prefix": "apps:", "ephemeral_only": true, "max_ttl": "1h"},
        {"token": "m-org", "realm_prefix": "org:"}
    ]
}"#;

pub(crate) fn state() -> AuthState {
    state_with(SETTINGS)
}

pub(crate) fn state_with(settings: &str) -> AuthState {
    let (document, _) = AuthDocument::parse(settings).unwrap();
    let nonces = NonceWindow::forgetful(0);
    AuthState::new(document, nonces, Box::new(SeededEntropy::new(1)))
}

/// The settings with a field of the block set.
pub(crate) fn settings_with(name: &str, value: &str) -> String {
    let mut block = object(SETTINGS);
    block.set(name, Value::parse(value).unwrap());
    Value::from(block).to_json()
}

pub(crate) fn object(json: &str) -> Object {
    match Value::parse(json).unwrap() {
        Value::Object(object) => object,
        _ => panic!("no object: {json}"),
    }
}

/// Authenticates a new socket.
pub(crate) fn authenticate(state: &mut AuthState, payload: &str) -> (SocketAuth, Outcome) {
    let mut socket = SocketAuth::new(state.document());
    let outcome = authenticate_on(state, &mut socket, payload);
    (socket, outcome)
}

pub(crate) fn authenticate_on(
    state: &mut AuthState,
    socket: &mut SocketAuth,
    payload: &str,
) -> Outcome {
    match state.authenticate(socket, Some(payload), PEER, NOW) {
        Step::Done(outcome) => outcome,
        Step::AskExternal(..) => panic!("asks a validator"),
    }
}

/// An outcome in short: `realm role` or the code.
pub(crate) fn short(outcome: &Outcome) -> String {
    match outcome {
        Ok(Grant { realm, role, .. }) => format!("{realm} {role}"),
        Err(refusal) => refusal.code.to_string(),
    }
}

/// A signed payload with a nonce of its own.
pub(crate) fn signed(secret: &str, event: SignedEvent, body: &str, nonce: &str) -> String {
    let secret = Secret::new(secret);
    Value::from(proof::sign(
        &secret,
        event.name(),
        NOW,
        nonce,
        &object(body),
    ))
    .to_json()
}

/// Executes a command; the code of the refusal if there is one.
pub(crate) fn execute(state: &mut AuthState, secret: &str, body: &str) -> Result<Execution, u16> {
    let nonce = format!("n{}", state.nonces.len());
    let payload = signed(secret, SignedEvent::Manage, body, &nonce);
    let verified = state
        .verify(SignedEvent::Manage, Some(&payload), PEER, NOW)
        .map_err(|refusal| refusal.code)?;
    Ok(state.execute_command(verified, &ServerView::default(), NOW))
}

/// Executes a command that the broker is not asked for: the answer and the effects.
pub(crate) fn run(state: &mut AuthState, secret: &str, body: &str) -> (Object, Vec<Effect>) {
    match execute(state, secret, body) {
        Ok(Execution::Done(Handled { reply, effects })) => (object(&reply.payload), effects),
        Ok(Execution::Ask { question, .. }) => panic!("asks {question:?}"),
        Err(code) => (
            Object::new()
                .with("ok", false)
                .with("code", u64::from(code)),
            Vec::new(),
        ),
    }
}

/// The code of an answer; 200 when it is done.
pub(crate) fn code(answer: &Object) -> u64 {
    match answer.get("ok") {
        Some(Value::Bool(true)) => 200,
        _ => answer.get("code").unwrap().as_number().unwrap() as u64,
    }
}

/// A field of an answer by its path, with dots, as JSON.
pub(crate) fn at(answer: &Object, path: &str) -> String {
    let mut value = Value::from(answer.clone());
    for name in path.split('.') {
        value = match &value {
            Value::Object(object) => object.get(name).cloned().unwrap_or(Value::Null),
            Value::List(list) => list[name.parse::<usize>().unwrap()].clone(),
            _ => Value::Null,
        };
    }
    value.to_json()
}
