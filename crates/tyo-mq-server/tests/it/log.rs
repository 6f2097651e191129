//! What stands in the log: who administered what, and never a secret or what a message holds.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use super::client::Client;
use super::http::request;
use super::manager::{ADMIN, ask, authenticate, manage, refused, settings};
use super::server::Running;

/// All that is logged on this thread from now on: the whole server of a test is on it.
struct Log {
    lines: Lines,
    _guard: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin() -> Self {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines about administration: action, target and the code of a refusal.
    fn audit(&self) -> Vec<(String, String, Value)> {
        let text = self.text();
        let entries = text
            .lines()
            .filter_map(|line| line.split_once(" audit: "))
            .map(|(_, entry)| serde_json::from_str::<Value>(entry).unwrap());
        entries
            .map(|entry| {
                let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
                (text("action"), text("target"), entry["code"].clone())
            })
            .collect()
    }
}

fn with_api() -> Value {
    let mut settings = settings();
    settings["http_api"] = json!({"enabled": true});
    settings["auth"]["management_tokens"] = json!([{"token": "m-org", "realm_prefix": "org:"}]);
    settings
}

async fn provision(server: &Running, realm: &str) -> u16 {
    let body = json!({"realm": realm, "manager_key": "mk-secret"}).to_string();
    let bearer = "authorization: Bearer m-org\r\n";
    let answer = request(server.addr, "POST", "/api/realms", bearer, &body).await;
    answer.status
}

#[tokio::test]
async fn every_deed_of_a_manager_has_a_line_done_or_refused() {
    let log = Log::begin();
    let server = Running::with(with_api()).await;
    assert_eq!(provision(&server, "org:a").await, 200);
    assert_eq!(provision(&server, "elsewhere").await, 403);
    manage(&server, json!({"command": "add_realm", "realm": "new"})).await;
    refused(
        &server,
        ADMIN,
        json!({"command": "remove_realm", "realm": "none"}),
    )
    .await;
    let decision = json!({"request_id": "authreq-none", "approved": true});
    ask(&server, ADMIN, "AUTHORIZATION_DECIDE", decision).await;
    manage(&server, json!({"command": "get"})).await;
    let line = |action: &str, target: &str, code: Value| (action.into(), target.into(), code);
    let expected = [
        line("provision_realm", "org:a", json!(null)),
        line("provision_realm", "elsewhere", json!(403)),
        line("add_realm", "new", json!(null)),
        line("remove_realm", "none", json!(404)),
        line("AUTHORIZATION_DECIDE", "authreq-none", json!(404)),
    ];
    assert_eq!(log.audit(), expected);
}

#[tokio::test]
async fn no_secret_and_no_content_is_logged_at_any_level() {
    let log = Log::begin();
    let server = Running::with(with_api()).await;
    provision(&server, "org:a").await;
    for payload in [
        r#"{"token":"t-prod"}"#,
        r#"{"token":"secret-wrong-token"}"#,
        r#""{\"token\":\"secret-unreadable""#,
        r#"{"realm":"keyed","role":"consumer","key":"psk"}"#,
        r#"{"realm":"keyed","role":"consumer","key":"secret-wrong-key"}"#,
    ] {
        authenticate(&server, payload).await;
    }
    for body in [
        json!({"command": "add_token", "realm": "req", "token": "secret-added"}),
        json!({"command": "set_realm_key", "realm": "free", "key": "secret-realm-key"}),
        json!({"command": "set_jwt_secret", "jwt_secret": "secret-jwt"}),
        json!({"command": "revoke_token", "token": "t-both"}),
    ] {
        manage(&server, body).await;
    }
    let asked = json!({
        "realm": "req", "client_id": "c", "client_name": "n", "client_token": "secret-asked-for",
    });
    let (mut client, _) = authenticate(&server, r#"{"realm":"open"}"#).await;
    client
        .call("AUTHORIZATION_REQUEST", &asked.to_string())
        .await;
    let mut stranger = Client::connect(server.addr).await;
    for socket in [&mut client, &mut stranger] {
        let produce = r#"{"event":"e","message":"secret-content","from":"p"}"#;
        socket.call("PRODUCE", produce).await;
        socket.emit("SUBSCRIBE", r#""secret-rubbish""#).await;
        socket.fence().await;
    }
    let text = log.text();
    assert!(text.contains(" audit: "), "the log was read: {text}");
    for secret in [
        "secret-", "mk-", "t-prod", "t-both", "t-admin", "psk", "m-org",
    ] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
