//! Publishing, subscribing, acknowledging; large and binary messages.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use tyo_mq_client::{
    Client, Delivery, Options, Produce, RawValue, RequestError, Subscribe, Subscription,
};

use crate::server::{PATIENCE, Running};

pub(crate) async fn next(subscription: &mut Subscription) -> Delivery {
    let next = timeout(PATIENCE, subscription.next()).await;
    next.expect("a delivery in time").expect("an open client")
}

async fn subscribe(client: &Client, consumer: &str, what: Subscribe) -> Subscription {
    let consumer = client.consumer(consumer).await.unwrap();
    let subscription = consumer.subscribe(what).await.unwrap();
    settle(client).await;
    subscription
}

/// Waits until the broker has handled all that was sent before.
pub(crate) async fn settle(client: &Client) {
    client
        .emit_with_ack("PING", &"are you there", PATIENCE)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_message_arrives_as_it_was_sent() {
    let server = Running::start().await;
    let client = server.client().await;
    let mut orders = subscribe(&client, "mailer", Subscribe::new("Shop", "Order")).await;
    let shop = server.client().await.producer("Shop").await.unwrap();
    let json = r#"{"n": 1e21,"price":0.10,"id":12345678901234567890,"half":"\ud83d"}"#;
    let message = RawValue::from_string(json.to_owned()).unwrap();
    let receipt = shop.produce_confirmed("Order", &message).await.unwrap();
    assert_eq!((receipt.routed, receipt.queued), (1, 0));
    let delivery = next(&mut orders).await;
    assert_eq!(delivery.message.get(), json);
    assert_eq!(
        (delivery.event.as_str(), delivery.from.as_str()),
        ("Order", "Shop")
    );
    assert_eq!((delivery.msg_id.as_deref(), delivery.attempt), (None, 0));
    orders.ack(&delivery).await.unwrap();
}

#[tokio::test]
async fn every_kind_of_subscription_is_served() {
    let server = Running::start().await;
    let client = server.client().await;
    let producer = client.producer("Fleet").await.unwrap();
    for what in [
        Subscribe::new("fleet", "Org/M1/Cmd"),
        Subscribe::any_producer("org/m1/cmd"),
        Subscribe::all_events("FLEET"),
        Subscribe::topic("org/+/cmd"),
        Subscribe::topic("Org/#").group("workers"),
    ] {
        let mut subscription = subscribe(&client, "c", what.clone()).await;
        producer.produce("Org/M1/Cmd", &"go").await.unwrap();
        let delivery = next(&mut subscription).await;
        assert_eq!(delivery.parse::<String>().unwrap(), "go", "{what:?}");
        subscription.unsubscribe().await.unwrap();
    }
}

#[tokio::test]
async fn a_durable_message_waits_and_is_acknowledged() {
    let server = Running::start().await;
    let what = || Subscribe::new("p", "e").durable().ack();
    let first = server.client().await;
    subscribe(&first, "worker", what()).await;
    first.close().await;
    let producer = server.client().await.producer("p").await.unwrap();
    let receipt = producer.produce_confirmed("e", &1).await.unwrap();
    assert_eq!(receipt.queued, 1);
    let second = server.client().await;
    let mut work = subscribe(&second, "worker", what()).await;
    let delivery = next(&mut work).await;
    assert_eq!(delivery.attempt, 1);
    work.ack(&delivery).await.unwrap();
    let again = work.ack(&delivery).await;
    assert!(
        matches!(again, Err(RequestError::Refused(refusal)) if refusal.code == 404),
        "a message is acknowledged once"
    );
}

#[tokio::test]
async fn large_messages_go_in_pieces_both_ways() {
    let server = Running::start().await;
    let client = server.client().await;
    let mut subscription = subscribe(&client, "c", Subscribe::new("p", "e")).await;
    let producer = client.producer("p").await.unwrap();
    let text = "🚀é\n".repeat(200_000);
    let receipt = producer.produce_confirmed("e", &text).await.unwrap();
    assert_eq!(receipt.routed, 1);
    let delivery = next(&mut subscription).await;
    assert_eq!(delivery.parse::<String>().unwrap(), text);
}

#[tokio::test]
async fn attachments_stay_binary() {
    let server = Running::start().await;
    let client = server.client().await;
    let mut subscription = subscribe(&client, "c", Subscribe::new("p", "e")).await;
    let placeholder = serde_json::json!({"_placeholder": true, "num": 0});
    let photo = Bytes::from_static(&[0, 255, 7]);
    let message = Produce::new("p", "e", &placeholder)
        .unwrap()
        .attachments(vec![photo.clone()]);
    client.produce_confirmed(&message).await.unwrap();
    assert_eq!(next(&mut subscription).await.attachments, [photo]);
}

#[tokio::test]
async fn a_full_subscription_loses_nothing_and_keeps_the_order() {
    let server = Running::start().await;
    let options = Options {
        subscription_queue: 1,
        ..Options::default()
    };
    let slow = server.client_with(options).await;
    let mut subscription = subscribe(&slow, "slow", Subscribe::new("p", "e")).await;
    let producer = server.client().await.producer("p").await.unwrap();
    for n in 0..500u32 {
        producer.produce_confirmed("e", &n).await.unwrap();
    }
    // What it sends still goes out while it is not read.
    slow.emit("HELLO", &"still here").await.unwrap();
    for n in 0..500u32 {
        let delivery = next(&mut subscription).await;
        assert_eq!(delivery.parse::<u32>().unwrap(), n);
    }
    settle(&slow).await;
}

#[tokio::test]
async fn a_message_to_a_subscription_that_was_dropped_is_no_trouble() {
    let server = Running::start().await;
    let client = server.client().await;
    drop(subscribe(&client, "c", Subscribe::new("p", "e")).await);
    let producer = client.producer("p").await.unwrap();
    producer.produce_confirmed("e", &1).await.unwrap();
    producer.produce_confirmed("e", &2).await.unwrap();
    let mut again = subscribe(&client, "c", Subscribe::new("p", "e")).await;
    producer
        .message("e", &3)
        .map(|message| message.ttl(Duration::from_secs(9)))
        .unwrap();
    producer.produce("e", &3).await.unwrap();
    assert_eq!(next(&mut again).await.parse::<u32>().unwrap(), 3);
}
