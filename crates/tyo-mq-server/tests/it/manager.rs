//! A manager: signs what it asks, and reads the answers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tyo_mq_auth::json::Value as Json;
use tyo_mq_auth::proof::sign;
use tyo_mq_auth::secret::Secret;

use super::client::Client;
use super::server::Running;

/// The global admin's token in the settings of tests.
pub(crate) const ADMIN: &str = "t-admin";

/// The payload of a signed event, with a nonce of its own.
pub(crate) fn signed(secret: &str, event: &str, body: &Value) -> String {
    static NONCES: AtomicU64 = AtomicU64::new(0);
    let nonce = format!("nonce-{}", NONCES.fetch_add(1, Ordering::Relaxed));
    signed_at(secret, event, body, now_ms(), &nonce)
}

pub(crate) fn signed_at(
    secret: &str,
    event: &str,
    body: &Value,
    at_ms: u64,
    nonce: &str,
) -> String {
    let body = Json::parse(&body.to_string()).unwrap();
    let body = body.as_object().expect("bodies are objects");
    let payload = sign(&Secret::new(secret), event, at_ms, nonce, body);
    Json::from(payload).to_json()
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// Asks with a connection of its own, and returns the ack.
pub(crate) async fn ask(server: &Running, secret: &str, event: &str, body: Value) -> Value {
    let mut client = Client::connect(server.addr).await;
    client.call(event, &signed(secret, event, &body)).await
}

/// A management command, which must succeed.
pub(crate) async fn manage(server: &Running, body: Value) -> Value {
    let answer = ask(server, ADMIN, "AUTH_MANAGEMENT_COMMAND", body.clone()).await;
    assert_eq!(answer["ok"], true, "{body}: {answer}");
    answer
}

/// A management command, which must be refused; the code.
pub(crate) async fn refused(server: &Running, secret: &str, body: Value) -> Value {
    let answer = ask(server, secret, "AUTH_MANAGEMENT_COMMAND", body.clone()).await;
    assert_eq!(answer["ok"], false, "{body}: {answer}");
    answer["code"].clone()
}

/// Authenticates a new socket; `realm/role`, or the code of the refusal.
pub(crate) async fn authenticate(server: &Running, payload: &str) -> (Client, String) {
    let mut client = Client::connect(server.addr).await;
    let answer = authenticate_again(&mut client, payload).await;
    (client, answer)
}

pub(crate) async fn authenticate_again(client: &mut Client, payload: &str) -> String {
    client.emit("AUTHENTICATION", payload).await;
    outcome(&client.text().await)
}

/// What an AUTH_OK or AUTH_FAIL says; both have exactly two members.
fn outcome(frame: &str) -> String {
    let answer: Value = serde_json::from_str(&frame[2..]).unwrap();
    let fields = answer[1].as_object().unwrap();
    assert_eq!(fields.len(), 2, "{frame}");
    match answer[0].as_str().unwrap() {
        "AUTH_OK" => format!(
            "{}/{}",
            fields["realm"].as_str().unwrap(),
            fields["role"].as_str().unwrap()
        ),
        "AUTH_FAIL" => {
            assert!(fields["message"].is_string(), "{frame}");
            fields["code"].to_string()
        }
        _ => panic!("{frame}"),
    }
}

/// Asks again until the answer is this one.
pub(crate) async fn until_admitted(server: &Running, payload: &str, expected: &str) {
    while authenticate(server, payload).await.1 != expected {}
}

/// Realms of every kind, and tokens for them. Nobody is slowed down.
pub(crate) fn settings() -> Value {
    json!({"auth": {
        "enabled": true,
        "max_failures_per_minute": 0,
        "realms": {
            "default": {"required": true},
            "req": {"required": true, "manager_key": "mk-req"},
            "open": {"required": false},
            "keyed": {"required": true, "key": "psk", "require_acceptance": false},
            "shop": {"required": true, "key": "psk"},
            "locked": {"required": true, "require_key": true},
            "free": {"required": true, "require_acceptance": false},
        },
        "tokens": [
            {"token": ADMIN, "realm": "*", "role": "admin"},
            {"token": "t-prod", "realm": "req", "role": "producer"},
            {"token": "t-cons", "realm": "req", "role": "consumer", "client_id": "c1"},
            {"token": "t-both", "realm": "req", "role": "both"},
            {"token": "t-manager", "realm": "req", "role": "manager"},
            {"token": "t-admin-of-req", "realm": "req", "role": "admin"},
            {"token": "t-wizard", "realm": "req", "role": "wizard"},
            {"token": "t-plain"},
            {"token": "t-open", "realm": "open", "role": "producer"},
        ],
    }})
}
