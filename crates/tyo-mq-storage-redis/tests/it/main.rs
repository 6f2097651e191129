//! The Redis store on real servers: the suite, keys of the reference, order, faults, clusters and sentinels.
#![allow(clippy::unwrap_used, reason = "a test ends where it goes wrong")]

mod faults;
mod full;
mod order;
mod reference;
mod server;
mod topologies;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tyo_mq_core::store::{Position, QueueKey, Store, StoreOp, StoreReply, StoredMessage};
use tyo_mq_core::{Message, MessageId};
use tyo_mq_storage::RedisConfig;
use tyo_mq_storage::conformance::{self, Opening};
use tyo_mq_storage_redis::RedisStore;

use server::Server;

#[tokio::test]
async fn the_store_conforms() {
    let server = Server::start();
    conforms(&RedisConfig::new(server.url())).await;
}

/// Each case has keys of its own.
async fn conforms(config: &RedisConfig) {
    let number = AtomicUsize::new(0);
    let open = |opening| {
        let number = number.fetch_add(usize::from(opening == Opening::Fresh), Ordering::Relaxed)
            + usize::from(opening == Opening::Fresh);
        let prefix = format!("{}-{number}", config.prefix);
        let config = RedisConfig {
            prefix,
            ..config.clone()
        };
        async move { RedisStore::open(&config).await.unwrap() }
    };
    conformance::run(true, open).await;
}

fn queue(key: &str) -> Arc<QueueKey> {
    Arc::new(QueueKey {
        realm: "default".into(),
        key: key.into(),
        consumer: "c".into(),
    })
}

fn stored(queue: &Arc<QueueKey>, id: &str) -> StoredMessage {
    StoredMessage {
        id: MessageId::from(id),
        queue: queue.clone(),
        message: Arc::new(Message {
            event: "e".into(),
            producer: "p".into(),
            body: format!("{{\"message\":\"{id}\"").into(),
            attachments: Box::default(),
        }),
        created_at_ms: 1_795_975_569_147,
        expires_at_ms: None,
        attempts: 0,
        position: Position(0),
    }
}

fn enqueue(queue: &Arc<QueueKey>, id: &str) -> StoreOp {
    StoreOp::Enqueue(stored(queue, id))
}

async fn page(
    store: &RedisStore,
    queue: &Arc<QueueKey>,
    after: Position,
    limit: usize,
) -> Vec<StoredMessage> {
    let fetch = StoreOp::Fetch {
        queue: queue.clone(),
        after,
        limit,
        max_bytes: usize::MAX,
    };
    match store.execute(vec![fetch]).await.remove(0) {
        Ok(StoreReply::Page { messages, .. }) => messages,
        other => panic!("a fetch was answered {other:?}"),
    }
}

async fn ids(store: &RedisStore, queue: &Arc<QueueKey>) -> Vec<String> {
    let messages = page(store, queue, Position(0), 100_000).await;
    messages.iter().map(|it| it.id.to_string()).collect()
}
