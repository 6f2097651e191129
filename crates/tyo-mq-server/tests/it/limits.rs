//! Bounds that protect the broker: message size, connections, slow receivers.

use serde_json::json;

use super::client::{Came, Client};
use super::script::check_with;
use super::server::Running;

#[tokio::test]
async fn a_message_over_the_limit() {
    let settings = json!({"maxHttpBufferSize": 1000});
    let produce = |length: usize| {
        let around = r#"42["PRODUCE",{"event":"e","message":"","from":"P"}]"#.len();
        format!(
            r#"42["PRODUCE",{{"event":"e","message":"{}","from":"P"}}]"#,
            "x".repeat(length - around)
        )
    };
    check_with(
        settings,
        &format!(
            r#"
            A> {}
            A<
            A> {}
            A< closed 1009
            "#,
            produce(1000),
            produce(1001)
        ),
    )
    .await;
}

#[tokio::test]
async fn one_connection_too_many() {
    let server = Running::with(json!({"max_connections": 1})).await;
    let client = Client::connect(server.addr).await;
    let answer = super::http::get(server.addr, "/socket.io/?EIO=4&transport=polling").await;
    assert_eq!(answer.status, 503);
    drop(client);
}

/// A consumer that stops reading, and a producer that sends more than the consumer's queue holds.
async fn flood(server: &Running, subscription: &str, messages: usize) -> (Client, Client) {
    let mut slow = Client::connect(server.addr).await;
    slow.emit("SUBSCRIBE", subscription).await;
    slow.fence().await;
    let mut producer = Client::connect(server.addr).await;
    let content = "x".repeat(100_000);
    for number in 0..messages {
        let payload = format!(r#"{{"event":"e","message":[{number},"{content}"],"from":"P"}}"#);
        producer.emit("PRODUCE", &payload).await;
    }
    producer.fence().await;
    (slow, producer)
}

/// Enough for the system's buffers and ours.
const MANY: usize = 300;

const PLAIN: &str = r#"{"event":"e","producer":"P","consumer":"s"}"#;

#[tokio::test]
async fn a_slow_consumer_is_disconnected() {
    let server = Running::with(json!({"outbound_max_bytes": 300_000})).await;
    let (mut slow, mut producer) = flood(&server, PLAIN, MANY).await;
    let mut numbers = Vec::new();
    loop {
        match slow.next().await {
            Came::Text(text) => numbers.push(number(&text)),
            came => {
                assert!(matches!(came, Came::Closed(_)), "{came:?}");
                break;
            }
        }
    }
    assert!(
        numbers.len() < MANY && numbers.is_sorted(),
        "{} came",
        numbers.len()
    );
    // The sender was not held up, and nobody else is affected.
    assert_eq!(
        producer.call("PING", "null").await.as_str().map(|_| ()),
        Some(())
    );
    assert_eq!(
        producer
            .call("PRODUCE", r#"{"event":"e","message":1,"from":"P"}"#)
            .await["routed"],
        0
    );
}

#[tokio::test]
async fn a_slow_consumer_misses_the_oldest() {
    let settings = json!({"outbound_max_bytes": 300_000, "slow_consumer": "drop"});
    let server = Running::with(settings).await;
    let (mut slow, mut producer) = flood(&server, PLAIN, MANY).await;
    let mut numbers = Vec::new();
    while numbers.last() != Some(&(MANY - 1)) {
        numbers.push(number(&slow.text().await));
    }
    assert!(
        numbers.len() < MANY && numbers.is_sorted(),
        "{} came",
        numbers.len()
    );
    // It goes on.
    producer
        .emit("PRODUCE", r#"{"event":"e","message":[300,""],"from":"P"}"#)
        .await;
    assert_eq!(number(&slow.text().await), MANY);
}

#[tokio::test]
async fn a_slow_consumer_that_acknowledges_misses_nothing() {
    let server = Running::with(json!({"outbound_max_bytes": 8_000_000})).await;
    let subscription = r#"{"event":"e","producer":"P","consumer":"s","consumer_id":"s","durable":true,"ack":true}"#;
    let (mut slow, _producer) = flood(&server, subscription, MANY).await;
    for expected in 0..MANY {
        let mut text = slow.text().await;
        while text.starts_with("42[\"ACK_OK\"") {
            text = slow.text().await;
        }
        assert_eq!(number(&text), expected);
        let at = text.find("\"msgId\":\"").unwrap() + 9;
        let id = &text[at..at + text[at..].find('"').unwrap()];
        slow.emit("ACK", &format!(r#"{{"msgId":"{id}"}}"#)).await;
    }
}

/// Who subscribes is told to the producer, but not so that it loses its connection.
#[tokio::test]
async fn who_does_not_read_misses_notices_and_stays() {
    let server = Running::with(json!({"outbound_max_bytes": 100_000})).await;
    let mut producer = Client::connect(server.addr).await;
    producer.emit("PRODUCER", r#"{"name":"P"}"#).await;
    producer.fence().await;
    let mut consumer = Client::connect(server.addr).await;
    let padding = "x".repeat(900);
    // Enough for the system's buffers and ours.
    let events = 20_000;
    for number in 0..events {
        let subscription =
            json!({"event": format!("{number}-{padding}"), "producer": "P", "consumer": "c"});
        consumer.emit("SUBSCRIBE", &subscription.to_string()).await;
    }
    consumer.fence().await;
    let message = json!({"event": format!("7-{padding}"), "message": 1, "from": "P"}).to_string();
    producer.emit("PRODUCE", &message).await;
    assert!(consumer.text().await.contains("CONSUME-p-7-"));
    assert_eq!(producer.call("PRODUCE", &message).await["routed"], 1);
    let notices = producer.rest().await.len();
    assert!(notices < events, "{notices} notices came");
}

#[tokio::test]
async fn a_message_larger_than_the_queue_passes_when_it_is_empty() {
    let server = Running::with(json!({"outbound_max_bytes": 100_000})).await;
    let mut client = Client::connect(server.addr).await;
    client.emit("SUBSCRIBE", PLAIN).await;
    let content = "x".repeat(200_000);
    client
        .emit(
            "PRODUCE",
            &format!(r#"{{"event":"e","message":"{content}","from":"P"}}"#),
        )
        .await;
    assert!(client.event("CONSUME-p-e").await.contains(&content));
}

/// The number that a message of a flood begins with.
fn number(text: &str) -> usize {
    let start = text.find("\"message\":[").expect("a message of the flood") + 11;
    let end = start + text[start..].find(',').expect("two elements");
    text[start..end].parse().expect("a number")
}
