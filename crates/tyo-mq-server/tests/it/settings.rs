//! Settings that change what clients see, each next to its default; and stores that outlive their server.

use serde_json::{Value, json};
use tempfile::TempDir;

use tyo_mq_server::load_settings;

use super::client::Client;
use super::http::get;
use super::manager::{authenticate, manage, settings as access};
use super::script::{check_with, play};
use super::server::{Running, on_free_port};

#[tokio::test]
async fn the_time_for_an_acknowledgement() {
    check_with(
        json!({"ack_timeout": "20ms"}),
        r#"
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c","ack":true,"retry":{"max_attempts":2,"delay":"5ms"}}]
        P> 42["PRODUCE",{"event":"e","message":1,"from":"P"}]
        C< 42["CONSUME-p-e",{"event":"e","message":1,"from":"P","msgId":"<m>","msg_id":"<m>","delivery_attempt":1}]
        C< 42["CONSUME-p-e",{"event":"e","message":1,"from":"P","msgId":"<m>","msg_id":"<m>","delivery_attempt":2}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn how_many_are_unacknowledged_at_a_time() {
    check_with(
        json!({"prefetch": 2}),
        r#"
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c","ack":true}]
        P> 42["PRODUCE",{"event":"e","message":1,"from":"P"}]
        P> 42["PRODUCE",{"event":"e","message":2,"from":"P"}]
        P> 42["PRODUCE",{"event":"e","message":3,"from":"P"}]
        C< 42["CONSUME-p-e",{"event":"e","message":1,"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":1}]
        C< 42["CONSUME-p-e",{"event":"e","message":2,"from":"P","msgId":"<m2>","msg_id":"<m2>","delivery_attempt":1}]
        C<
        C> 42["ACK",{"msgId":"<m2>"}]
        C< 42["ACK_OK",{"ok":true,"msgId":"<m2>"}]
        C< 42["CONSUME-p-e",{"event":"e","message":3,"from":"P","msgId":"<m3>","msg_id":"<m3>","delivery_attempt":1}]
        "#,
    )
    .await;
}

/// A message that ends at once, for a durable subscription that is away; then one that does not.
const EXPIRING: &str = r#"
    C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
    C> 41
    P> 421["PRODUCE",{"event":"e","message":1,"from":"P"}]
    P< 431[{"ok":true,"msg_id":"<a>","routed":1,"queued":0}]
    P> 422["PRODUCE",{"event":"e","message":2,"from":"P","ttl":60}]
    P< 432[{"ok":true,"msg_id":"<b>","routed":1,"queued":1}]
    D> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
    P< 42["SUBSCRIBE-TO",{"name":"c","id":"$D","socket":"$D","events":["p-e"],"online":true}]
    D< 42["CONSUME-p-e",{"event":"e","message":2,"from":"P"}]
"#;

#[tokio::test]
async fn what_becomes_of_expired_messages() {
    for (expired_to_dlq, letters) in [(false, 0), (true, 1)] {
        let server = Running::with(json!({
            "http_api": {"enabled": true},
            "storage_options": {"default_ttl": 0},
            "expired_to_dlq": expired_to_dlq,
        }))
        .await;
        play(&server, EXPIRING).await;
        let answer = get(server.addr, "/api/realms/default/dlq").await;
        let list: Value = serde_json::from_str(&answer.body).unwrap();
        let entries = list["entries"].as_array().unwrap();
        assert_eq!(entries.len(), letters, "{list}");
        for entry in entries {
            assert_eq!(entry["reason"], "expired");
            assert_eq!(entry["message"]["message"], 1);
        }
    }
}

#[tokio::test]
async fn registrations_of_the_absent_are_forgotten_and_durable_ones_are_not() {
    let idle = json!({"idle_eviction": {"ttl_ms": 1, "interval_ms": 1}});
    let server = Running::with(idle).await;
    let away = r#"
        C> 42["SUBSCRIBE",{"event":"plain","producer":"P","consumer":"c"}]
        C> 42["SUBSCRIBE",{"event":"kept","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
        C> 41
    "#;
    play(&server, away).await;
    // Guaranteed messages wait for every subscription that is known, so they tell which ones are.
    loop {
        let mut client = super::client::Client::connect(server.addr).await;
        let plain = r#"{"event":"plain","message":1,"from":"P","guaranteed":true}"#;
        if client.call("PRODUCE", plain).await["routed"] == 0 {
            let kept = r#"{"event":"kept","message":1,"from":"P"}"#;
            assert_eq!(client.call("PRODUCE", kept).await["queued"], 1);
            break;
        }
    }
}

/// Nobody comes in between the opening of the port and the reading of the file.
#[tokio::test]
async fn the_file_is_obeyed_from_the_first_connection() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("settings.json");
    std::fs::write(&file, on_free_port(access()).to_string()).unwrap();
    let server = Running::with_file(&file, &[]).await;
    let mut first = Client::connect(server.addr).await;
    let produce = r#"{"event":"e","message":1}"#;
    assert_eq!(first.call("PRODUCE", produce).await["code"], 401);
    assert_eq!(authenticate(&server, r#"{"realm":"*"}"#).await.1, "401");
}

/// Where the file does not say, consumers need no key; in a new file they do.
#[tokio::test]
async fn a_new_file_is_strict_and_one_from_before_is_not() {
    let folder = TempDir::new().unwrap();
    let consumer = r#"{"realm":"nowhere","role":"consumer"}"#;
    for (is_new, expected) in [(true, "401"), (false, "nowhere/consumer")] {
        let file = folder.path().join(format!("{is_new}.json"));
        if is_new {
            load_settings(&file).unwrap();
            let text = std::fs::read_to_string(&file).unwrap();
            let mut written: Value = serde_json::from_str(&text).unwrap();
            written["auth"]["enabled"] = json!(true);
            written["auth"]["auto_admin_token"] = json!(false);
            std::fs::write(&file, on_free_port(written).to_string()).unwrap();
        } else {
            std::fs::write(&file, on_free_port(access()).to_string()).unwrap();
        }
        let server = Running::with_file(&file, &[]).await;
        assert_eq!(authenticate(&server, consumer).await.1, expected);
    }
}

/// Beside a store the file is a way in: what somebody writes there is added, and what the store holds stays.
#[tokio::test]
async fn a_list_written_by_hand_takes_nothing_out_of_the_store() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("settings.json");
    let mut block = on_free_port(access());
    block["auth_store"] = json!(folder.path().join("auth.sqlite"));
    std::fs::write(&file, block.to_string()).unwrap();
    let mut server = Running::with_file(&file, &[]).await;
    let add = json!({"command": "add_token", "realm": "req", "token": "t-added"});
    manage(&server, add).await;
    block["auth"]["tokens"] = json!([{"token": "t-by-hand", "realm": "req", "role": "consumer"}]);
    block["auth"]["realms"] = json!({"by-hand": {"required": false}});
    std::fs::write(&file, block.to_string()).unwrap();
    for is_restarted in [false, true] {
        if is_restarted {
            server.stop().await.unwrap();
            server = Running::with_file(&file, &[]).await;
        } else {
            (server.reload)();
        }
        for (payload, expected) in [
            (r#"{"token":"t-added"}"#, "req/both"),
            (r#"{"token":"t-prod"}"#, "req/producer"),
            (r#"{"token":"t-by-hand"}"#, "req/consumer"),
            (r#"{"realm":"by-hand"}"#, "by-hand/both"),
            (r#"{"realm":"open"}"#, "open/both"),
        ] {
            assert_eq!(
                authenticate(&server, payload).await.1,
                expected,
                "{payload}"
            );
        }
    }
}

#[tokio::test]
async fn an_sqlite_file_outlives_its_server() {
    let folder = TempDir::new().unwrap();
    let settings = json!({
        "storage": "sqlite",
        "storage_options": {"filename": folder.path().join("broker.sqlite"), "durability": "full"},
        "http_api": {"enabled": true},
    });
    let server = Running::with(settings.clone()).await;
    play(
        &server,
        r#"
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c","consumer_id":"c","durable":true,"ack":true}]
        P> 451-1["PRODUCE",{"event":"e","message":{"b":{"_placeholder":true,"num":0},"n":1e21},"from":"P"}]
        P>> 00ff
        C< 451-["CONSUME-p-e",{"event":"e","message":{"b":{"_placeholder":true,"num":0},"n":1e21},"from":"P","msgId":"<m>","msg_id":"<m>","delivery_attempt":1}]
        C<< 00ff
        P< 431[{"ok":true,"msg_id":"<id>","routed":1,"queued":1}]
        "#,
    )
    .await;
    server.stop().await.unwrap();
    // Nobody has subscribed here, and yet the subscription is known.
    let server = Running::with(settings).await;
    play(
        &server,
        r#"
        P> 422["PRODUCE",{"event":"e","message":2,"from":"P"}]
        P< 432[{"ok":true,"msg_id":"<id>","routed":1,"queued":1}]
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c","consumer_id":"c","durable":true,"ack":true}]
        P< 42["SUBSCRIBE-TO",{"name":"c","id":"$C","socket":"$C","events":["p-e"],"online":true}]
        C< 451-["CONSUME-p-e",{"event":"e","message":{"b":{"_placeholder":true,"num":0},"n":1e21},"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":2}]
        C<< 00ff
        C< 42["CONSUME-p-e",{"event":"e","message":2,"from":"P","msgId":"<m2>","msg_id":"<m2>","delivery_attempt":1}]
        C> 42["ACK",{"msgId":"<m1>"}]
        C< 42["ACK_OK",{"ok":true,"msgId":"<m1>"}]
        "#,
    )
    .await;
}
