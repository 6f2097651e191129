//! Validators elsewhere: what they are asked, which answers let in, and what becomes of those that do not answer.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::client::Client;
use super::manager::{authenticate, authenticate_again, manage, settings};
use super::server::Running;

/// Says the same to everybody, and remembers what it was asked.
struct Validator {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Validator {
    /// `answer` is all that is sent; the connection is closed behind it, or else left open.
    async fn start(answer: String, closes: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let questions = asked.clone();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let question = read_request(&mut stream).await;
                questions.lock().unwrap().push(question);
                stream.write_all(answer.as_bytes()).await.unwrap();
                if !closes {
                    open.push(stream);
                }
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Settings with this validator for everybody, for one realm and for two prefixes.
    fn settings(&self) -> Value {
        let url = |path: &str| format!("{}{path}", self.url);
        let mut settings = settings();
        let auth = &mut settings["auth"];
        auth["auth_url"] = json!(url("/all"));
        auth["auth_secret"] = json!("for-all");
        auth["realms"]["own"] =
            json!({"required": true, "auth_url": url("/own?a=b"), "auth_secret": "for-own"});
        auth["external_validators"] = json!([
            {"realm_prefix": "org:", "auth_url": url("/org")},
            {"realmPrefix": "org:x:", "authUrl": url("/org-x"), "authSecret": "for-x"},
        ]);
        settings
    }
}

/// A request with a body of the length that it says.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
        let text = String::from_utf8_lossy(&bytes).to_string();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if body.len() >= length {
            return text;
        }
    }
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// What comes of an answer to a question about a token of `realm`; the validator is asked once.
async fn check(realm: Value, answer: String, closes: bool, expected: &str) -> String {
    let validator = Validator::start(answer.clone(), closes).await;
    let server = Running::with(validator.settings()).await;
    let payload = json!({"token": "theirs", "realm": realm}).to_string();
    let (_, outcome) = authenticate(&server, &payload).await;
    assert_eq!(outcome, expected, "{realm}: {answer:.200}");
    let asked = validator.asked();
    assert_eq!(asked.len(), 1, "{realm}: {answer:.200}");
    asked[0].clone()
}

#[tokio::test]
async fn what_is_asked_and_with_which_secret() {
    let rows = [
        (json!("own"), "own/both", "/own?a=b", "for-own"),
        (json!("org:a"), "org:a/both", "/org", "for-all"),
        (json!("org:x:a"), "org:x:a/both", "/org-x", "for-x"),
        (json!("else"), "else/both", "/all", "for-all"),
        (json!(null), "req/both", "/all", "for-all"),
        // A prefix alone is no realm under it.
        (json!("org:"), "org:/both", "/all", "for-all"),
    ];
    for (realm, expected, path, secret) in rows {
        let (name, _) = expected.split_once('/').unwrap();
        let body = json!({"realm": name, "role": "both"}).to_string();
        let asked = check(realm.clone(), answer("200 OK", &body), true, expected).await;
        let (head, body) = asked.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("POST {path} HTTP/1.1")), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        assert!(
            head.contains(&format!("x-mq-auth-secret: {secret}")),
            "{head}"
        );
        let mut question = json!({"token": "theirs"});
        if !realm.is_null() {
            question["realm"] = realm;
        }
        assert_eq!(serde_json::from_str::<Value>(body).unwrap(), question);
    }
}

#[tokio::test]
async fn what_does_not_let_in() {
    let good = r#"{"realm":"own","role":"both"}"#;
    for status in [
        "202 Accepted",
        "401 Unauthorized",
        "404 Not Found",
        "500 Oops",
    ] {
        let expected = if status.starts_with('2') {
            "own/both"
        } else {
            "401"
        };
        check(json!("own"), answer(status, good), true, expected).await;
    }
    for body in [
        r#"{"valid":false,"realm":"own","role":"both"}"#,
        r#"{"ok":false,"realm":"own","role":"both"}"#,
        r#"{"realm":"own"}"#,
        r#"{"role":"both"}"#,
        r#"{"realm":["own"],"role":"both"}"#,
        r#"{"realm":"own","role":{}}"#,
        r#"{"realm":"own","realm":"other","role":"both"}"#,
        r#"{"realm":"own\u0000","role":"both"}"#,
        "",
        "null",
        "true",
        "not JSON",
        r#""{\"realm\":\"own\",\"role\":\"both\"}""#,
    ] {
        check(json!("own"), answer("200 OK", body), true, "401").await;
    }
    let padding = "x".repeat(70_000);
    let large = format!(r#"{{"realm":"own","role":"both","x":"{padding}"}}"#);
    check(json!("own"), answer("200 OK", &large), true, "401").await;
    // Nobody is sent elsewhere: the validator is asked once.
    let elsewhere = "HTTP/1.1 302 Found\r\nlocation: /all\r\ncontent-length: 0\r\n\r\n";
    check(json!("own"), elsewhere.to_owned(), true, "401").await;
}

/// A validator speaks for its realms; the one for everybody also for the realm that sees all.
#[tokio::test]
async fn a_validator_speaks_for_its_realms_alone() {
    let rows = [
        ("own", "org:a", "401"),
        ("own", "*", "401"),
        ("org:a", "org:b", "org:b/admin"),
        ("org:a", "org:", "401"),
        ("org:a", "own", "401"),
        ("org:a", "*", "401"),
        ("else", "*", "*/admin"),
    ];
    for (declared, told, expected) in rows {
        let body = json!({"realm": told, "role": "admin"}).to_string();
        check(json!(declared), answer("200 OK", &body), true, expected).await;
    }
}

#[tokio::test]
async fn a_validator_that_does_not_answer_lets_nobody_in() {
    let begun = format!("{}{{", answer("200 OK", "").replace(": 0", ": 100"));
    let silent = [
        (String::new(), true),
        (String::new(), false),
        (begun, false),
    ];
    let all = silent
        .into_iter()
        .map(|(said, closes)| check(json!("own"), said, closes, "401"));
    futures_util::future::join_all(all).await;
}

#[tokio::test]
async fn the_same_wrong_token_is_asked_about_once() {
    let validator = Validator::start(answer("401 Unauthorized", ""), true).await;
    let server = Running::with(validator.settings()).await;
    for (token, questions) in [("guess", 1), ("guess", 1), ("another", 2), ("guess", 2)] {
        let payload = json!({"token": token}).to_string();
        assert_eq!(authenticate(&server, &payload).await.1, "401");
        assert_eq!(validator.asked().len(), questions, "{token}");
    }
    // What the settings know is asked nobody.
    let known = authenticate(&server, r#"{"token":"t-prod"}"#).await.1;
    assert_eq!(
        (known.as_str(), validator.asked().len()),
        ("req/producer", 2)
    );
}

/// A validator that answers one request, when it is told to.
async fn validator(body: &'static str) -> (String, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/check", listener.local_addr().unwrap());
    let (go, gone) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        gone.await.unwrap();
        let answer = answer("200 OK", body);
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    (url, go)
}

#[tokio::test]
async fn a_validator_elsewhere_has_its_say_as_long_as_the_settings_give_it_one() {
    for (is_dropped, expected) in [(false, "elsewhere/producer"), (true, "401")] {
        let (url, go) = validator(r#"{"realm":"elsewhere","role":"producer"}"#).await;
        let mut asking = settings();
        asking["auth"]["auth_url"] = json!(url);
        let server = Running::with(asking).await;
        let mut client = Client::connect(server.addr).await;
        client.emit("AUTHENTICATION", r#"{"token":"theirs"}"#).await;
        client.fence().await;
        // A second attempt waits for nobody.
        assert_eq!(
            authenticate_again(&mut client, r#"{"token":"t-prod"}"#).await,
            "403"
        );
        if is_dropped {
            manage(
                &server,
                json!({"command": "set_external_auth", "auth_url": null}),
            )
            .await;
        }
        go.send(()).unwrap();
        let answer = client.text().await;
        let is_in = answer == r#"42["AUTH_OK",{"realm":"elsewhere","role":"producer"}]"#;
        assert_eq!(is_in, !is_dropped, "{expected}: {answer}");
    }
}

/// What a socket does before the validator has answered gives it a place, which ends with the answer.
#[tokio::test]
async fn who_acts_while_a_validator_is_asked_is_moved_by_its_answer() {
    let (url, go) = validator(r#"{"realm":"elsewhere","role":"producer"}"#).await;
    let mut asking = settings();
    asking["auth"]["auth_url"] = json!(url);
    asking["auth"]["realms"]["default"] = json!({"required": false});
    let server = Running::with(asking).await;
    let (mut there, _) = authenticate(&server, r#"{"realm":"elsewhere","role":"consumer"}"#).await;
    let mut here = Client::connect(server.addr).await;
    let subscription = r#"{"event":"e","producer":"p","consumer":"c"}"#;
    for consumer in [&mut there, &mut here] {
        consumer.emit("SUBSCRIBE", subscription).await;
        consumer.fence().await;
    }
    let mut client = Client::connect(server.addr).await;
    let produce = r#"{"event":"e","message":1,"from":"p"}"#;
    client.emit("AUTHENTICATION", r#"{"token":"theirs"}"#).await;
    assert_eq!(client.call("PRODUCE", produce).await["ok"], true);
    assert!(here.event("CONSUME-p-e").await.contains("\"message\":1"));
    go.send(()).unwrap();
    assert_eq!(
        client.text().await,
        r#"42["AUTH_OK",{"realm":"elsewhere","role":"producer"}]"#
    );
    assert_eq!(client.call("PRODUCE", produce).await["ok"], true);
    assert!(there.event("CONSUME-p-e").await.contains("\"message\":1"));
    assert_eq!(here.rest().await, []);
    assert_eq!(client.call("UNSUBSCRIBE", r#""x""#).await["code"], 403);
}
