//! Another message store takes over while clients are connected.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::Client;
use super::manager::{ADMIN, manage, refused};
use super::redis::{Redis, free_port};
use super::server::{Running, on_free_port};

/// Clients need no token, commands an admin's.
fn new_file(folder: &TempDir) -> PathBuf {
    let file = folder.path().join("settings.json");
    let tokens = json!([{"token": ADMIN, "realm": "*", "role": "admin"}]);
    let realms = json!({"default": {"required": false}});
    let auth = json!({"enabled": true, "realms": realms, "tokens": tokens});
    std::fs::write(&file, on_free_port(json!({"auth": auth})).to_string()).unwrap();
    file
}

fn kept(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn sqlite(folder: &TempDir, name: &str) -> Value {
    json!({"command": "set_persistence", "storage": "sqlite", "filename": folder.path().join(name)})
}

fn redis(port: u16) -> Value {
    let url = format!("redis://127.0.0.1:{port}");
    let options = json!({"connect_timeout": 500, "probe_timeout": 500});
    json!({"command": "set_persistence", "storage": "redis", "url": url, "options": options})
}

fn memory() -> Value {
    json!({"command": "set_persistence", "storage": "memory"})
}

async fn subscribe(client: &mut Client, consumer: &str, prefetch: u32) {
    let subscription = json!({
        "event": "e", "producer": "p", "consumer": consumer, "consumer_id": consumer,
        "durable": true, "ack": true, "prefetch": prefetch, "ack_timeout": 60_000,
    });
    client.emit("SUBSCRIBE", &subscription.to_string()).await;
    client.fence().await;
}

async fn publish(client: &mut Client, message: impl Into<Value>) {
    let message = json!({"event": "e", "from": "p", "message": message.into()});
    let confirm = client.call("PRODUCE", &message.to_string()).await;
    assert_eq!(confirm["ok"], true, "{confirm}");
}

/// The next message: what it says, and its id. Answers to acknowledgements are checked and passed over.
async fn receive(client: &mut Client) -> (Value, Value) {
    loop {
        let text = client.text().await;
        if let Some(payload) = text.strip_prefix(r#"42["CONSUME-p-e","#) {
            let payload: Value = serde_json::from_str(&payload[..payload.len() - 1]).unwrap();
            return (payload["message"].clone(), payload["msgId"].clone());
        }
        assert!(text.starts_with(r#"42["ACK_OK",{"ok":true"#), "{text}");
    }
}

async fn acknowledge(client: &mut Client, id: &Value) {
    client.emit("ACK", &json!({"msgId": id}).to_string()).await;
}

#[tokio::test]
async fn what_one_store_held_the_next_one_has() {
    let folder = TempDir::new().unwrap();
    let file = new_file(&folder);
    let server = Running::with_file(&file, &[]).await;
    let mut away = Client::connect(server.addr).await;
    subscribe(&mut away, "away", 0).await;
    away.close().await;
    let mut consumer = Client::connect(server.addr).await;
    subscribe(&mut consumer, "here", 1).await;
    let mut producer = Client::connect(server.addr).await;
    for message in ["one", "two"] {
        publish(&mut producer, message).await;
    }
    let (_, in_hand) = receive(&mut consumer).await;

    let answer = manage(&server, sqlite(&folder, "a.sqlite")).await;
    assert_eq!(answer["in_force"], "now");
    assert_eq!(answer["settings"]["persistence"]["storage"], "sqlite");
    assert_eq!(kept(&file)["storage"], "sqlite");
    publish(&mut producer, "three").await;
    acknowledge(&mut consumer, &in_hand).await;
    let (two, id) = receive(&mut consumer).await;
    assert_eq!(two, "two");
    manage(&server, sqlite(&folder, "b.sqlite")).await;
    acknowledge(&mut consumer, &id).await;
    assert_eq!(receive(&mut consumer).await.0, "three");
    server.stop().await.unwrap();

    let server = Running::with_file(&file, &[]).await;
    let mut away = Client::connect(server.addr).await;
    subscribe(&mut away, "away", 0).await;
    for message in ["one", "two", "three"] {
        assert_eq!(receive(&mut away).await.0, message);
    }
    let mut consumer = Client::connect(server.addr).await;
    subscribe(&mut consumer, "here", 1).await;
    assert_eq!(receive(&mut consumer).await.0, "three");
    // What moved is no longer where it was.
    manage(&server, sqlite(&folder, "a.sqlite")).await;
    assert_eq!(consumer.rest().await, []);
}

/// Confirmed while stores change, each message arrives once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_doubled_under_load() {
    const MESSAGES: u64 = 2_000;
    let folder = TempDir::new().unwrap();
    let port = free_port();
    let _redis = Redis::start(folder.path(), port);
    let server = Running::with_file(&new_file(&folder), &[]).await;
    let mut consumer = Client::connect(server.addr).await;
    subscribe(&mut consumer, "c", 50).await;
    let mut producer = Client::connect(server.addr).await;
    let producing = tokio::spawn(async move {
        for number in 0..MESSAGES {
            publish(&mut producer, number).await;
        }
    });
    let consuming = tokio::spawn(async move {
        for number in 0..MESSAGES {
            let (came, id) = receive(&mut consumer).await;
            assert_eq!(came, number);
            acknowledge(&mut consumer, &id).await;
        }
        consumer
    });
    let mut changes = 0;
    while !producing.is_finished() {
        for change in [
            sqlite(&folder, "a.sqlite"),
            redis(port),
            memory(),
            sqlite(&folder, "b.sqlite"),
            memory(),
        ] {
            assert_eq!(manage(&server, change).await["in_force"], "now");
            changes += 1;
        }
    }
    assert!(changes >= 5);
    producing.await.unwrap();
    let mut consumer = consuming.await.unwrap();
    consumer.fence().await;
    let rest = consumer.rest().await;
    let again = rest
        .iter()
        .filter(|came| format!("{came:?}").contains("CONSUME"));
    assert_eq!(again.count(), 0, "{rest:?}");
}

#[tokio::test]
async fn a_redis_that_is_away_takes_over_when_it_is_there() {
    let folder = TempDir::new().unwrap();
    let file = new_file(&folder);
    let server = Running::with_file(&file, &[]).await;
    let mut consumer = Client::connect(server.addr).await;
    subscribe(&mut consumer, "c", 1).await;
    let mut producer = Client::connect(server.addr).await;
    publish(&mut producer, "before").await;
    let (_, in_hand) = receive(&mut consumer).await;

    let port = free_port();
    let answer = manage(&server, redis(port)).await;
    assert_eq!(answer["in_force"], "when the store can be reached");
    let shown = &answer["settings"]["persistence"];
    assert_eq!(shown["storage"], "redis");
    assert_eq!(shown["pending"], true);
    assert_eq!(kept(&file)["storage"], "redis");
    publish(&mut producer, "meanwhile").await;
    // Another one is asked for, which ends the search; then it begins anew.
    manage(&server, memory()).await;
    manage(&server, redis(port)).await;

    let _redis = Redis::start(folder.path(), port);
    let get = json!({"command": "get"});
    while manage(&server, get.clone()).await["settings"]["persistence"]["pending"] == true {}
    acknowledge(&mut consumer, &in_hand).await;
    assert_eq!(receive(&mut consumer).await.0, "meanwhile");
    server.stop().await.unwrap();
    let server = Running::with_file(&file, &[]).await;
    let mut consumer = Client::connect(server.addr).await;
    subscribe(&mut consumer, "c", 1).await;
    assert_eq!(receive(&mut consumer).await.0, "meanwhile");
}

#[tokio::test]
async fn a_store_that_cannot_be_had_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let file = new_file(&folder);
    let server = Running::with_file(&file, &[]).await;
    let mut consumer = Client::connect(server.addr).await;
    subscribe(&mut consumer, "c", 1).await;
    std::fs::create_dir(folder.path().join("a-folder")).unwrap();
    std::fs::write(folder.path().join("text"), "this is no database").unwrap();
    let before = std::fs::read(&file).unwrap();
    let without_url = json!({"command": "set_persistence", "storage": "redis"});
    for bad in [
        without_url,
        sqlite(&folder, "a-folder"),
        sqlite(&folder, "text"),
    ] {
        assert_eq!(refused(&server, ADMIN, bad.clone()).await, 400, "{bad}");
        assert_eq!(std::fs::read(&file).unwrap(), before, "{bad}");
    }
    let mut producer = Client::connect(server.addr).await;
    publish(&mut producer, "on").await;
    assert_eq!(receive(&mut consumer).await.0, "on");
}

/// How long messages live changes at once, how a file is written does not.
#[tokio::test]
async fn the_same_place_is_not_opened_again() {
    let folder = TempDir::new().unwrap();
    let file = new_file(&folder);
    let server = Running::with_file(&file, &[]).await;
    manage(&server, sqlite(&folder, "a.sqlite")).await;
    let mut away = Client::connect(server.addr).await;
    subscribe(&mut away, "away", 1).await;
    away.close().await;
    let mut short = sqlite(&folder, "a.sqlite");
    short["default_ttl"] = json!(0.001);
    assert_eq!(manage(&server, short.clone()).await["in_force"], "now");
    let mut producer = Client::connect(server.addr).await;
    publish(&mut producer, "short").await;
    let mut full = sqlite(&folder, "./a.sqlite");
    full["default_ttl"] = json!(60);
    full["options"] = json!({"durability": "full"});
    let answer = manage(&server, full).await;
    assert_eq!(answer["in_force"], "after a restart");
    short["default_ttl"] = json!(60);
    manage(&server, short).await;
    publish(&mut producer, "long").await;
    let mut away = Client::connect(server.addr).await;
    subscribe(&mut away, "away", 1).await;
    assert_eq!(receive(&mut away).await.0, "long");
    let report = manage(&server, json!({"command": "get"})).await;
    let needs = &report["settings"]["reload"]["needs_restart"];
    assert!(needs.is_null() || *needs == json!([]), "{needs}");
}
