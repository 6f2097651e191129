//! What a store comes by without the engine: messages and durable subscriptions.

use std::sync::Arc;

use bytes::Bytes;
use tyo_mq_core::engine::{RetryPolicy, SubscriptionSpec};
use tyo_mq_core::store::{
    DurableSubscription, InlineStore, Position, QueueKey, StoreOp, StoredMessage,
};
use tyo_mq_core::{Message, MessageId};

use super::world::World;

impl World {
    /// The store takes it; the engine hears of it later.
    pub(super) fn keep(&mut self, op: StoreOp) {
        match &op {
            StoreOp::Enqueue(stored) => {
                let queues = &mut self.unheard.queues;
                match queues.iter_mut().find(|(queue, _)| *queue == *stored.queue) {
                    Some((_, count)) => *count += 1,
                    None => queues.push(((*stored.queue).clone(), 1)),
                }
            }
            StoreOp::PutSubscription(subscription) => {
                self.unheard.subscriptions.push((**subscription).clone());
            }
            _ => panic!("only messages and subscriptions come like that"),
        }
        self.store
            .execute_now(op)
            .expect("the memory store has room");
    }
}

/// `KEY CONSUMER BODY`.
pub(super) fn message(words: &str) -> StoreOp {
    let [key, consumer, body] = three(words);
    StoreOp::Enqueue(StoredMessage {
        id: MessageId::from(format!("kept-{body}").as_str()),
        queue: Arc::new(queue(key, consumer)),
        message: Arc::new(Message {
            event: key.into(),
            producer: key.into(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            attachments: Box::default(),
        }),
        created_at_ms: 0,
        expires_at_ms: None,
        attempts: 0,
        position: Position::default(),
    })
}

/// `PRODUCER EVENT CONSUMER`.
pub(super) fn subscription(words: &str) -> StoreOp {
    let [producer, event, consumer] = three(words);
    StoreOp::PutSubscription(Box::new(DurableSubscription {
        queue: queue(&format!("{producer}-{event}").to_lowercase(), consumer),
        consumer_name: consumer.into(),
        spec: SubscriptionSpec {
            producer: producer.into(),
            event: event.into(),
            all_events: false,
            topic: false,
            durable: true,
            ack: false,
            ack_timeout_ms: None,
            retry: RetryPolicy::default(),
            group: None,
            prefetch: None,
        },
        offline_since_ms: None,
    }))
}

fn queue(key: &str, consumer: &str) -> QueueKey {
    QueueKey {
        realm: "default".into(),
        key: key.into(),
        consumer: consumer.into(),
    }
}

fn three(words: &str) -> [&str; 3] {
    let words: Vec<&str> = words.split(' ').collect();
    words.try_into().expect("three words")
}
