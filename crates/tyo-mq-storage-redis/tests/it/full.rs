//! A server without memory: new messages are refused, everything that drains it goes on.

use std::sync::Arc;

use fred::prelude::Client;
use tyo_mq_core::MessageId;
use tyo_mq_core::engine::{RetryPolicy, SubscriptionSpec};
use tyo_mq_core::store::{
    DeadLetter, DurableSubscription, QueueKey, Store, StoreError, StoreOp, StoreReply, StoreResult,
};
use tyo_mq_storage::RedisConfig;
use tyo_mq_storage_redis::RedisStore;

use crate::server::{Server, run};
use crate::{enqueue, ids, queue, stored};

/// A store on a server that is full, with these messages in queue `k`.
async fn full(messages: &[&str]) -> (Server, Client, RedisStore) {
    let server = Server::start();
    let config = RedisConfig::new(server.url());
    let store = RedisStore::open(&config).await.unwrap();
    let queue = queue("k");
    let ops = messages.iter().map(|id| enqueue(&queue, id)).collect();
    for result in store.execute(ops).await {
        result.unwrap();
    }
    let client = server.client().await;
    run(&client, &["CONFIG", "SET", "maxmemory", "1"]).await;
    (server, client, store)
}

fn remove(queue: &Arc<QueueKey>, id: &str) -> StoreOp {
    StoreOp::Remove {
        queue: queue.clone(),
        id: MessageId::from(id),
    }
}

fn attempts(queue: &Arc<QueueKey>, id: &str, attempts: u32) -> StoreOp {
    StoreOp::SetAttempts {
        queue: queue.clone(),
        id: MessageId::from(id),
        attempts,
    }
}

fn bury(queue: &Arc<QueueKey>, id: &str) -> StoreOp {
    StoreOp::DeadLetter(Box::new(DeadLetter {
        stored: stored(queue, id),
        reason: "spent".to_owned(),
        dead_lettered_at_ms: 1,
    }))
}

fn subscribe(queue: &Arc<QueueKey>) -> StoreOp {
    StoreOp::PutSubscription(Box::new(DurableSubscription {
        queue: (**queue).clone(),
        consumer_name: "c".into(),
        spec: SubscriptionSpec {
            producer: "k".into(),
            event: "e".into(),
            all_events: false,
            topic: false,
            durable: true,
            ack: true,
            ack_timeout_ms: None,
            retry: RetryPolicy::default(),
            group: None,
            prefetch: None,
        },
        offline_since_ms: None,
    }))
}

fn is_full(result: &StoreResult) -> bool {
    matches!(result, Err(StoreError::Full(_)))
}

/// Which of the operations are refused as too much.
async fn refused(store: &RedisStore, ops: Vec<StoreOp>) -> Vec<bool> {
    let results = store.execute(ops).await;
    for result in &results {
        assert!(result.is_ok() || is_full(result), "{result:?}");
    }
    results.iter().map(is_full).collect()
}

#[tokio::test]
async fn only_what_takes_room_is_refused() {
    let (_server, client, store) = full(&["a", "b", "c", "d"]).await;
    let k = queue("k");
    let ops = vec![
        enqueue(&k, "e"),
        remove(&k, "a"),
        enqueue(&k, "f"),
        attempts(&k, "b", 2),
        bury(&k, "c"),
        subscribe(&k),
        enqueue(&k, "g"),
    ];
    let expected = [true, false, true, false, false, true, true];
    assert_eq!(refused(&store, ops).await, expected);
    assert_eq!(ids(&store, &k).await, ["b", "d"]);
    assert_eq!(store.count("default").await.unwrap(), 2);
    let letters = store.dead_letters(None, None, 10).await.unwrap().letters;
    assert_eq!(letters.len(), 1);
    run(&client, &["CONFIG", "SET", "maxmemory", "0"]).await;
    let ops = vec![enqueue(&k, "h"), subscribe(&k)];
    assert_eq!(refused(&store, ops).await, [false, false]);
    assert_eq!(ids(&store, &k).await, ["b", "d", "h"]);
    store.close().await;
}

#[tokio::test]
async fn each_kind_of_operation_by_itself() {
    let (_server, _client, store) = full(&["a", "b", "c"]).await;
    let k = queue("k");
    for (op, expected) in [
        (enqueue(&k, "d"), true),
        (subscribe(&k), true),
        (attempts(&k, "a", 3), false),
        (remove(&k, "a"), false),
        (bury(&k, "b"), false),
        (enqueue(&k, "e"), true),
    ] {
        let name = format!("{op:?}");
        assert_eq!(refused(&store, vec![op]).await, [expected], "{name}");
    }
    assert_eq!(ids(&store, &k).await, ["c"]);
    store.close().await;
}

#[tokio::test]
async fn attempts_are_counted_and_letters_keep_their_order() {
    let (_server, _client, store) = full(&["a", "b", "c"]).await;
    let k = queue("k");
    let ops = vec![attempts(&k, "a", 7), bury(&k, "c"), bury(&k, "b")];
    assert_eq!(refused(&store, ops).await, [false; 3]);
    let page = crate::page(&store, &k, tyo_mq_core::store::Position(0), 10).await;
    assert_eq!(page.len(), 1);
    assert_eq!(page[0].attempts, 7);
    let letters = store.dead_letters(None, None, 10).await.unwrap().letters;
    let ids: Vec<&str> = letters.iter().map(|it| it.stored.id.as_str()).collect();
    assert_eq!(ids, ["c", "b"]);
    let requeue = StoreOp::Requeue {
        realm: "default".into(),
        id: MessageId::from("b"),
        expires_at_ms: None,
        now_ms: 1,
    };
    let requeued = store.execute(vec![requeue]).await.remove(0);
    assert!(
        matches!(requeued, Ok(StoreReply::Requeued(Some(_)))),
        "{requeued:?}"
    );
    assert_eq!(crate::ids(&store, &k).await, ["a", "b"]);
    store.close().await;
}

#[tokio::test]
async fn it_is_taken_up_and_drained_at_a_start() {
    let (server, _client, store) = full(&["a", "b"]).await;
    store.close().await;
    let config = RedisConfig::new(server.url());
    let store = RedisStore::open(&config).await.unwrap();
    let snapshot = store.load().await.unwrap();
    assert_eq!(snapshot.queues.len(), 1);
    assert_eq!(snapshot.queues[0].1, 2);
    assert_eq!(store.count("default").await.unwrap(), 2);
    let k = queue("k");
    let ops = vec![remove(&k, "a"), remove(&k, "b")];
    assert_eq!(refused(&store, ops).await, [false; 2]);
    assert!(ids(&store, &k).await.is_empty());
    store.close().await;
}

#[tokio::test]
async fn what_expired_is_swept() {
    for to_dead_letters in [false, true] {
        let (_server, client, store) = full(&[]).await;
        run(&client, &["CONFIG", "SET", "maxmemory", "0"]).await;
        let k = queue("k");
        let mut old = stored(&k, "old");
        old.expires_at_ms = Some(4_000_000_000_000);
        let kept = store.execute(vec![StoreOp::Enqueue(old)]).await.remove(0);
        kept.unwrap();
        run(&client, &["CONFIG", "SET", "maxmemory", "1"]).await;
        let sweep = StoreOp::PurgeExpired {
            realm: "default".into(),
            now_ms: 4_000_000_000_001,
            to_dead_letters,
        };
        let swept = store.execute(vec![sweep]).await.remove(0);
        let Ok(StoreReply::Purged(queues)) = swept else {
            panic!("{swept:?}")
        };
        assert_eq!(queues, [((*k).clone(), 1)]);
        assert!(ids(&store, &k).await.is_empty());
        let letters = store.dead_letters(None, None, 10).await.unwrap().letters;
        assert_eq!(letters.len(), usize::from(to_dead_letters));
        store.close().await;
    }
}
