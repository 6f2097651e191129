//! Who is let in, by what they say of themselves; and what each may do then.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::client::{Came, Client};
use super::manager::{authenticate, authenticate_again, manage, settings};
use super::server::Running;

/// Each payload on a socket of its own.
async fn check(settings: Value, rows: &[(&str, &str)]) {
    let server = Running::with(settings).await;
    for (payload, expected) in rows {
        let (_, answer) = authenticate(&server, payload).await;
        assert_eq!(answer, *expected, "{payload}");
    }
}

#[tokio::test]
async fn while_authentication_is_off_everybody_is_let_in() {
    let server = Running::start().await;
    let (mut client, answer) = authenticate(&server, r#"{"token":"bad","realm":"r"}"#).await;
    assert_eq!(answer, "default/both");
    for payload in ["null", r#"{"realm":"*"}"#, r#""{\"token\":\"x\"}""#] {
        assert_eq!(
            authenticate_again(&mut client, payload).await,
            "default/both"
        );
    }
    assert_eq!(authenticate_again(&mut client, r#""no json""#).await, "401");
}

#[tokio::test]
async fn tokens_and_what_stands_beside_them() {
    let rows = [
        (r#"{"token":"t-prod"}"#, "req/producer"),
        (r#"{"token":"t-cons"}"#, "req/consumer"),
        (r#"{"token":"t-plain"}"#, "default/both"),
        (r#"{"token":"t-admin"}"#, "*/admin"),
        (r#"{"token":"t-manager"}"#, "req/manager"),
        (r#"{"token":"t-wizard"}"#, "req/wizard"),
        // The token's own realm and role count.
        (
            r#"{"token":"t-prod","realm":"open","role":"admin"}"#,
            "req/producer",
        ),
        (r#""{\"token\":\"t-prod\"}""#, "req/producer"),
        (r#"{"token":"bad"}"#, "401"),
        (r#"{"token":"bad","realm":"open"}"#, "401"),
        (r#""no json""#, "401"),
        // An empty token is none.
        (r#"{"token":"","realm":"open"}"#, "open/both"),
    ];
    check(settings(), &rows).await;
}

#[tokio::test]
async fn an_open_realm_lets_in_whoever_names_it() {
    let rows = [
        (r#"{"realm":"open"}"#, "open/both"),
        (r#"{"realm":"open","role":"producer"}"#, "open/producer"),
        (r#"{"realm":"open","role":"consumer"}"#, "open/consumer"),
        (r#"{"realm":"open","role":"admin"}"#, "open/both"),
        (r#"{"realm":"open","role":"manager"}"#, "401"),
        (r#"{"realm":"open","key":"wrong"}"#, "open/both"),
    ];
    check(settings(), &rows).await;
}

#[tokio::test]
async fn without_a_token_a_realm_that_is_not_open_wants_its_key_or_acceptance() {
    let rows = [
        ("null", "401"),
        ("7", "401"),
        ("{}", "401"),
        (r#"{"realm":"req"}"#, "401"),
        (r#"{"realm":"req","role":"manager"}"#, "401"),
        (r#"{"realm":"req","role":"consumer"}"#, "req/consumer"),
        (r#"{"realm":"req","role":"producer"}"#, "403"),
        (r#"{"realm":"req","role":"both"}"#, "403"),
        (r#"{"realm":"req","key":null}"#, "403"),
        (
            r#"{"realm":"nowhere","role":"consumer"}"#,
            "nowhere/consumer",
        ),
        (r#"{"realm":"nowhere","role":"producer"}"#, "403"),
        (r#"{"role":"consumer"}"#, "default/consumer"),
        (r#"{"realm":"keyed","role":"consumer"}"#, "401"),
        (
            r#"{"realm":"keyed","role":"consumer","key":"wrong"}"#,
            "401",
        ),
        (
            r#"{"realm":"keyed","role":"consumer","key":["psk"]}"#,
            "401",
        ),
        (
            r#"{"realm":"keyed","role":"consumer","key":"psk"}"#,
            "keyed/consumer",
        ),
        (r#"{"realm":"keyed","role":"producer"}"#, "keyed/producer"),
        (r#"{"realm":"keyed","key":"psk"}"#, "keyed/both"),
        // The key comes before acceptance.
        (r#"{"realm":"shop","role":"both","key":"wrong"}"#, "401"),
        (r#"{"realm":"shop","role":"both","key":"psk"}"#, "403"),
        (
            r#"{"realm":"shop","role":"consumer","key":"psk"}"#,
            "shop/consumer",
        ),
        (r#"{"realm":"locked","role":"consumer","key":""}"#, "401"),
        (r#"{"realm":"free","role":"both"}"#, "free/both"),
    ];
    check(settings(), &rows).await;
}

#[tokio::test]
async fn a_strict_broker_wants_a_token_or_a_key_of_consumers_too() {
    let mut strict = settings();
    strict["auth"]["strict"] = json!(true);
    strict["auth"]["realms"]["waived"] = json!({"required": true, "require_key": false});
    let rows = [
        (r#"{"realm":"req","role":"consumer"}"#, "401"),
        (r#"{"realm":"nowhere","role":"consumer"}"#, "401"),
        (r#"{"role":"consumer"}"#, "401"),
        (r#"{"realm":"waived","role":"consumer"}"#, "waived/consumer"),
        (
            r#"{"realm":"keyed","role":"consumer","key":"psk"}"#,
            "keyed/consumer",
        ),
        (r#"{"realm":"open","role":"consumer"}"#, "open/consumer"),
        (r#"{"token":"t-cons"}"#, "req/consumer"),
    ];
    check(strict, &rows).await;
}

#[tokio::test]
async fn nobody_enters_the_realm_that_sees_all_without_a_token() {
    let server = Running::with(settings()).await;
    for payload in [
        r#"{"realm":"*"}"#,
        r#"{"realm":"*","role":"consumer"}"#,
        r#"{"realm":"*","key":null}"#,
    ] {
        let (mut client, answer) = authenticate(&server, payload).await;
        assert_eq!(answer, "401", "{payload}");
        // Nor by what they do next.
        client.emit("CONSUMER", r#"{"name":"spy"}"#).await;
        assert!(client.event("AUTH_FAIL").await.contains("401"), "{payload}");
    }
}

#[tokio::test]
async fn a_socket_authenticates_once_and_may_fail_before() {
    let server = Running::with(settings()).await;
    let (mut client, answer) = authenticate(&server, r#"{"token":"bad"}"#).await;
    assert_eq!(answer, "401");
    assert_eq!(
        authenticate_again(&mut client, r#"{"token":"t-prod"}"#).await,
        "req/producer"
    );
    assert_eq!(
        authenticate_again(&mut client, r#"{"token":"t-prod"}"#).await,
        "403"
    );
    assert_eq!(authenticate_again(&mut client, "{}").await, "403");
}

#[tokio::test]
async fn too_many_failures_of_an_address_make_it_wait() {
    let mut slow = settings();
    slow["auth"]["max_failures_per_minute"] = json!(2);
    let server = Running::with(slow).await;
    for expected in ["401", "401", "429"] {
        let (_, answer) = authenticate(&server, r#"{"token":"bad"}"#).await;
        assert_eq!(answer, expected);
    }
    assert_eq!(
        authenticate(&server, r#"{"token":"t-prod"}"#).await.1,
        "429"
    );
}

/// Every event that a role may send, or not: `.` is yes, `x` is 403. The order is that of [`EVENTS`].
#[tokio::test]
async fn what_each_role_may_do() {
    let rows = [
        ("t-prod", "...xxxx..."),
        ("t-cons", "xxx......."),
        ("t-both", ".........."),
        ("t-manager", ".........."),
        ("t-admin-of-req", ".........."),
        ("t-wizard", "xxxxxxx..."),
        ("t-admin", ".........."),
        // In an open realm the role is advice.
        ("t-open", ".........."),
    ];
    let server = Running::with(settings()).await;
    for (token, expected) in rows {
        let mut told = String::new();
        for (event, payload) in EVENTS {
            let (mut client, _) = authenticate(&server, &json!({"token": token}).to_string()).await;
            client.emit(event, payload).await;
            let came = client.rest().await;
            let is_refused = came.iter().any(
                |came| matches!(came, Came::Text(text) if text.starts_with(r#"42["AUTH_FAIL",{"code":403"#)),
            );
            told.push(if is_refused { 'x' } else { '.' });
        }
        assert_eq!(told, expected, "{token}");
    }
}

const EVENTS: [(&str, &str); 10] = [
    ("PRODUCER", r#"{"name":"p"}"#),
    ("PRODUCE", r#"{"event":"e","message":1,"from":"p"}"#),
    (
        "PRODUCE_CHUNK",
        r#"{"transferId":"t","index":0,"total":2,"data":"x"}"#,
    ),
    ("CONSUMER", r#"{"name":"c"}"#),
    (
        "SUBSCRIBE",
        r#"{"event":"e","producer":"p","consumer":"c"}"#,
    ),
    ("UNSUBSCRIBE", r#""p-e""#),
    ("ACK", r#"{"msgId":"none"}"#),
    ("PING", "null"),
    ("HELLO", r#""x""#),
    ("DEBUG", r#""x""#),
];

#[tokio::test]
async fn a_refused_event_has_its_ack_answered_and_no_effect() {
    let server = Running::with(settings()).await;
    let (mut consumer, _) = authenticate(&server, r#"{"token":"t-cons"}"#).await;
    let subscription = r#"{"event":"e","producer":"p","consumer":"c"}"#;
    consumer.emit("SUBSCRIBE", subscription).await;
    consumer.fence().await;
    let produce = r#"{"event":"e","message":1,"from":"p"}"#;
    let answer = consumer.call("PRODUCE", produce).await;
    assert_eq!(
        (&answer["ok"], &answer["code"]),
        (&json!(false), &json!(403))
    );
    assert!(consumer.event("AUTH_FAIL").await.contains("403"));
    assert_eq!(consumer.rest().await, []);
}

#[tokio::test]
async fn whoever_says_nothing_is_placed_by_what_they_do() {
    let mut open = settings();
    open["auth"]["realms"]["default"] = json!({"required": false});
    let server = Running::with(open).await;
    let mut client = Client::connect(server.addr).await;
    assert_eq!(
        client.call("PRODUCE", r#"{"event":"e","message":1}"#).await["ok"],
        true
    );
    // The place stays.
    assert_eq!(
        authenticate_again(&mut client, r#"{"token":"t-prod"}"#).await,
        "403"
    );

    let server = Running::with(settings()).await;
    let mut client = Client::connect(server.addr).await;
    assert_eq!(
        client.call("PRODUCE", r#"{"event":"e","message":1}"#).await["code"],
        401
    );
    assert_eq!(client.call("UNSUBSCRIBE", r#""x""#).await["ok"], true);
    assert_eq!(
        client.call("PRODUCE", r#"{"event":"e","message":1}"#).await["code"],
        403
    );
    // The realm of a failed attempt is where they mean to go.
    let (mut client, answer) = authenticate(&server, r#"{"realm":"free","token":"bad"}"#).await;
    assert_eq!(answer, "401");
    assert_eq!(
        client.call("PRODUCE", r#"{"event":"e","message":1}"#).await["ok"],
        true
    );
}

#[tokio::test]
async fn realms_do_not_see_each_other_and_the_admin_sees_all() {
    let server = Running::with(settings()).await;
    let subscription = r#"{"event":"e","producer":"p","consumer":"c"}"#;
    let mut consumers = Vec::new();
    for payload in [
        r#"{"token":"t-cons"}"#,
        r#"{"realm":"open"}"#,
        r#"{"token":"t-admin"}"#,
    ] {
        let (mut client, _) = authenticate(&server, payload).await;
        client.emit("SUBSCRIBE", subscription).await;
        client.fence().await;
        consumers.push(client);
    }
    let (mut producer, _) = authenticate(&server, r#"{"token":"t-prod"}"#).await;
    let produce = r#"{"event":"e","message":1,"from":"p"}"#;
    assert_eq!(producer.call("PRODUCE", produce).await["ok"], true);
    assert!(
        consumers[0]
            .event("CONSUME-p-e")
            .await
            .contains(r#""message":1"#)
    );
    assert!(
        consumers[2]
            .event("CONSUME-p-e")
            .await
            .contains(r#""message":1"#)
    );
    assert_eq!(consumers[1].rest().await, []);
    // What the observer says stays in its realm.
    let (mut admin, _) = authenticate(&server, r#"{"token":"t-admin"}"#).await;
    assert_eq!(admin.call("PRODUCE", produce).await["routed"], 1);
    assert!(
        consumers[2]
            .event("CONSUME-p-e")
            .await
            .contains(r#""message":1"#)
    );
    assert_eq!(consumers[0].rest().await, []);
}

#[tokio::test]
async fn web_tokens_of_a_realm() {
    let mut with_key = settings();
    with_key["auth"]["realms"]["alpha"] =
        json!({"required": true, "manager_key": "alpha-realm-manager-key"});
    let jwt = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyZWFsbSI6ImFscGhhIiwicm9sZSI6ImJvdGgifQ.qvlMq9BpGC7F_hJ5DpIY7HJRm6g0y_y1MD0MG9Pl7OA";
    let server = Running::with(with_key).await;
    let payload = json!({"token": jwt}).to_string();
    let (mut client, answer) = authenticate(&server, &payload).await;
    assert_eq!(answer, "alpha/both");
    // Another key ends what the old one let in.
    let command =
        json!({"command": "set_realm_manager_key", "realm": "alpha", "manager_key": "new"});
    manage(&server, command).await;
    assert_eq!(client.text().await, "41");
    assert_eq!(authenticate(&server, &payload).await.1, "401");
}

/// A validator that answers one request, when it is told to.
async fn validator(body: &'static str) -> (String, tokio::sync::oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/check", listener.local_addr().unwrap());
    let (go, gone) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let read = stream.read(&mut request).await.unwrap();
        assert!(request[..read].starts_with(b"POST /check HTTP/1.1"));
        gone.await.unwrap();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
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
