//! The broker inside a program, without a socket: subscribe, publish with a confirm, receive, acknowledge.

use std::sync::Arc;

use bytes::Bytes;
use tyo_mq_core::engine::{Reply, RetryPolicy, Subscribe, SubscriptionSpec};
use tyo_mq_core::memory_store::{MemoryLimits, MemoryStore};
use tyo_mq_core::runtime::{Broker, LocalEvent, PublishOptions, RuntimeConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
    let broker = Broker::start(RuntimeConfig::default(), store).await?;

    let mailer = broker.connect("default");
    mailer.subscribe(orders());

    // The body is the embedder's own: nothing in here reads it.
    let shop = broker.connect("default");
    let body = Bytes::from_static(b"order 17");
    let options = PublishOptions::default();
    let published = shop
        .publish("shop", "order/17/placed", body, options)
        .await?;
    println!(
        "{} is stored for {} subscription",
        published.id, published.queued
    );

    loop {
        match mailer.recv().await {
            LocalEvent::Delivery(delivery) => {
                let (message, receipt) = (delivery.message, delivery.receipt);
                println!("{}: {:?}", message.event, message.body);
                if let Some(receipt) = receipt {
                    mailer.ack(receipt.id.as_str());
                }
            }
            LocalEvent::Reply(Reply::Acked { id, result }) => {
                result?;
                println!("{id} is done");
                break;
            }
            LocalEvent::Notice(notice) => println!("{notice:?}"),
            LocalEvent::Reply(_) => {}
            LocalEvent::Disconnected => break,
        }
    }
    broker.shutdown().await;
    Ok(())
}

/// Every order that the shop places, kept while the mailer is away, and each until it is acknowledged.
fn orders() -> Subscribe<'static> {
    Subscribe {
        consumer: "mailer",
        id: None,
        consumer_id: Some("mailer"),
        spec: SubscriptionSpec {
            producer: "shop".into(),
            event: "order/+/placed".into(),
            all_events: false,
            topic: true,
            durable: true,
            ack: true,
            ack_timeout_ms: None,
            retry: RetryPolicy::default(),
            group: None,
            prefetch: None,
        },
    }
}
