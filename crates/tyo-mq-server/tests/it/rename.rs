//! A realm gets another name while clients are in it.

use serde_json::{Value, json};

use super::client::Client;
use super::manager::{ADMIN, authenticate, manage, refused};
use super::server::{Running, on_free_port};

fn settings() -> Value {
    json!({
        "auth": {
            "enabled": true,
            "realms": {"acme": {"required": true}, "taken": {"required": true}},
            "tokens": [
                {"token": ADMIN, "realm": "*", "role": "admin"},
                {"token": "t-acme", "realm": "acme", "role": "both"},
            ],
        },
        "limits": {"enabled": true, "realms": {"acme": {"max_subscriptions_per_realm": 3}}},
    })
}

fn rename(from: &str, to: &str) -> Value {
    json!({"command": "rename_realm", "from": from, "to": to})
}

async fn enter(server: &Running, realm: &str) -> Client {
    let (client, answer) = authenticate(server, r#"{"token":"t-acme"}"#).await;
    assert_eq!(answer, format!("{realm}/both"));
    client
}

/// Subscribes so that nothing is missed and everything acknowledged.
async fn subscribe(client: &mut Client, name: &str) {
    let subscription = json!({
        "event": "e", "producer": "p", "consumer": name, "consumer_id": name, "durable": true, "ack": true,
        "retry": {"max_attempts": 1}, "ack_timeout": 60_000,
    });
    client.emit("SUBSCRIBE", &subscription.to_string()).await;
    client.fence().await;
}

/// Publishes with a confirm; how many subscriptions it went to, and copies are kept.
async fn publish(client: &mut Client, text: &str) -> (Value, Value) {
    let message = json!({"event": "e", "from": "p", "message": text});
    let confirm = client.call("PRODUCE", &message.to_string()).await;
    assert_eq!(confirm["ok"], true, "{confirm}");
    (confirm["routed"].clone(), confirm["queued"].clone())
}

/// The next message, which must be this one; its id.
async fn receive(client: &mut Client, text: &str) -> Value {
    let payload = client.event("CONSUME-p-e").await;
    let payload: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!(payload["message"], text);
    json!({"msgId": payload["msgId"]})
}

async fn acknowledge(client: &mut Client, id: &Value) {
    client.emit("ACK", &id.to_string()).await;
    let answer = client.event("ACK_OK").await;
    assert!(answer.starts_with(r#"{"ok":true"#), "{answer}");
}

#[tokio::test]
async fn clients_go_on_without_noticing() {
    let server = Running::with(settings()).await;
    let mut consumer = enter(&server, "acme").await;
    subscribe(&mut consumer, "c").await;
    let mut producer = enter(&server, "acme").await;
    assert_eq!(publish(&mut producer, "one").await, (json!(1), json!(1)));
    let one = receive(&mut consumer, "one").await;

    assert_eq!(refused(&server, ADMIN, rename("acme", "taken")).await, 409);
    let answer = manage(&server, rename("acme", "acme2")).await;
    assert_eq!(answer["moved_sockets"], 2);

    acknowledge(&mut consumer, &one).await;
    assert_eq!(publish(&mut producer, "two").await, (json!(1), json!(1)));
    let two = receive(&mut consumer, "two").await;
    // Another kind of event than before is allowed anew, in the same place.
    producer.emit("CONSUMER", r#"{"name":"p2"}"#).await;
    producer.fence().await;
    acknowledge(&mut consumer, &two).await;
    let mut later = enter(&server, "acme2").await;
    subscribe(&mut later, "d").await;
    assert_eq!(publish(&mut producer, "three").await, (json!(2), json!(2)));
    receive(&mut consumer, "three").await;
    receive(&mut later, "three").await;

    for (realm, clients) in [("acme", 0), ("acme2", 3)] {
        let answer = manage(&server, json!({"command": "list_clients", "realm": realm})).await;
        assert_eq!(answer["clients"].as_array().unwrap().len(), clients);
    }
    assert_eq!(refused(&server, ADMIN, rename("acme", "acme3")).await, 404);
    manage(&server, rename("acme2", "acme")).await;
    assert_eq!(publish(&mut producer, "four").await, (json!(2), json!(2)));
    receive(&mut consumer, "four").await;
}

#[tokio::test]
async fn what_is_kept_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    let mut wanted = on_free_port(settings());
    wanted["storage"] = json!("sqlite");
    wanted["storage_options"] = json!({"filename": folder.path().join("messages.sqlite")});
    std::fs::write(&file, wanted.to_string()).unwrap();
    let server = Running::with_file(&file, &[]).await;
    let mut consumer = enter(&server, "acme").await;
    subscribe(&mut consumer, "c").await;
    consumer.close().await;
    let mut producer = enter(&server, "acme").await;
    assert_eq!(publish(&mut producer, "before").await, (json!(1), json!(1)));
    manage(&server, rename("acme", "acme2")).await;
    assert_eq!(publish(&mut producer, "after").await, (json!(1), json!(1)));
    let shown = json!({"command": "get_limits", "realm": "acme2"});
    let limits = manage(&server, shown.clone()).await["limits"].clone();
    assert_eq!(limits["max_subscriptions_per_realm"], 3);
    server.stop().await.unwrap();

    let server = Running::with_file(&file, &[]).await;
    assert_eq!(manage(&server, shown).await["limits"], limits);
    let mut consumer = enter(&server, "acme2").await;
    subscribe(&mut consumer, "c").await;
    let before = receive(&mut consumer, "before").await;
    receive(&mut consumer, "after").await;
    acknowledge(&mut consumer, &before).await;
    server.stop().await.unwrap();
}
