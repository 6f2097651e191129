//! A Redis that is away when the broker starts, and what it held when it is there again.

use serde_json::{Value, json};

use super::client::Client;
use super::redis::{Redis, free_port};
use super::server::Running;

fn settings(port: u16) -> Value {
    json!({
        "storage": "redis",
        "storage_options": {
            "url": format!("redis://127.0.0.1:{port}"),
            "fallback": "memory",
            "probe_timeout": 500,
        },
    })
}

const SUBSCRIBE: &str =
    r#"{"event":"d","producer":"P","consumer":"c","consumer_id":"c","durable":true}"#;

#[tokio::test]
async fn messages_from_before_come_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let redis = Redis::start(folder.path(), port);
    let server = Running::with(settings(port)).await;
    let mut consumer = Client::connect(server.addr).await;
    consumer.emit("SUBSCRIBE", SUBSCRIBE).await;
    consumer.send("41").await;
    let mut producer = Client::connect(server.addr).await;
    // The consumer has left when its subscription keeps the message.
    let message = r#"{"event":"d","message":1,"from":"P"}"#;
    consumer.fence().await;
    let kept = producer.call("PRODUCE", message).await;
    assert_eq!(kept["ok"], true, "{kept}");
    drop(producer);
    server.stop().await.unwrap();
    drop(redis);

    let server = Running::with(settings(port)).await;
    let mut consumer = Client::connect(server.addr).await;
    consumer.emit("SUBSCRIBE", SUBSCRIBE).await;
    let mut producer = Client::connect(server.addr).await;
    producer
        .call("PRODUCE", r#"{"event":"d","message":2,"from":"P"}"#)
        .await;
    let came = consumer.event("CONSUME-p-d").await;
    assert_eq!(came, r#"{"event":"d","message":2,"from":"P"}"#);
    let _redis = Redis::start(folder.path(), port);
    assert_eq!(consumer.event("CONSUME-p-d").await, message);
    producer
        .call("PRODUCE", r#"{"event":"d","message":3,"from":"P"}"#)
        .await;
    let came = consumer.event("CONSUME-p-d").await;
    assert_eq!(came, r#"{"event":"d","message":3,"from":"P"}"#);
    server.stop().await.unwrap();
}
