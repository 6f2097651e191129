//! Faults: a server that ends, hangs, is full, or holds something else. Each operation ends in bounded time, and work goes on.

use std::time::{Duration, Instant};

use tyo_mq_core::store::{Store, StoreError, StoreResult};
use tyo_mq_storage::RedisConfig;
use tyo_mq_storage_redis::RedisStore;

use crate::server::{Server, run};
use crate::{enqueue, ids, queue};

/// Little patience, so that the tests need little.
fn hasty(url: String) -> RedisConfig {
    let short = Duration::from_millis(400);
    RedisConfig {
        command_timeout: short,
        connect_timeout: short,
        ..RedisConfig::new(url)
    }
}

fn is_unavailable(result: &StoreResult) -> bool {
    matches!(result, Err(StoreError::Unavailable(_)))
}

/// Tries until it works. The test ends by itself if it never does.
async fn keep_at(store: &RedisStore, id: &str) {
    while store
        .execute(vec![enqueue(&queue("k"), id)])
        .await
        .remove(0)
        .is_err()
    {}
}

#[tokio::test]
async fn a_server_that_ends_and_comes_back() {
    let mut server = Server::start();
    let store = RedisStore::open(&hasty(server.url())).await.unwrap();
    let queue = queue("k");
    store
        .execute(vec![enqueue(&queue, "before")])
        .await
        .remove(0)
        .unwrap();
    server.kill();
    let results = store
        .execute(
            (0..2000)
                .map(|number| enqueue(&queue, &format!("away{number}")))
                .collect(),
        )
        .await;
    assert_eq!(results.len(), 2000);
    assert!(results.iter().all(is_unavailable), "{:?}", results[0]);
    assert!(store.load().await.is_err());
    assert!(store.dead_letters(None, None, 1).await.is_err());
    server.restart();
    keep_at(&store, "after").await;
    assert_eq!(ids(&store, &queue).await, ["before", "after"]);
    store.close().await;
}

#[tokio::test]
async fn a_short_absence_is_not_noticed() {
    let mut server = Server::start();
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let queue = queue("k");
    store
        .execute(vec![enqueue(&queue, "before")])
        .await
        .remove(0)
        .unwrap();
    server.kill();
    let work = store.execute(vec![enqueue(&queue, "meanwhile")]);
    let (results, ()) = tokio::join!(work, async {
        tokio::task::yield_now().await;
        server.restart();
    });
    assert!(results[0].is_ok(), "{results:?}");
    assert_eq!(ids(&store, &queue).await, ["before", "meanwhile"]);
    store.close().await;
}

#[tokio::test]
async fn a_server_that_hangs() {
    let server = Server::start();
    let store = RedisStore::open(&hasty(server.url())).await.unwrap();
    let queue = queue("k");
    store
        .execute(vec![enqueue(&queue, "before")])
        .await
        .remove(0)
        .unwrap();
    server.freeze();
    let results = store
        .execute(
            (0..2000)
                .map(|number| enqueue(&queue, &format!("away{number}")))
                .collect(),
        )
        .await;
    assert!(results.iter().all(is_unavailable), "{:?}", results[0]);
    server.thaw();
    keep_at(&store, "after").await;
    let kept = ids(&store, &queue).await;
    assert_eq!(kept.first().map(String::as_str), Some("before"));
    assert_eq!(kept.last().map(String::as_str), Some("after"));
    store.close().await;
}

#[tokio::test]
async fn a_server_that_forgot_the_scripts() {
    let server = Server::start();
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let client = server.client().await;
    let queue = queue("k");
    store
        .execute(vec![enqueue(&queue, "a")])
        .await
        .remove(0)
        .unwrap();
    run(&client, &["SCRIPT", "FLUSH"]).await;
    store
        .execute(vec![enqueue(&queue, "b")])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(ids(&store, &queue).await, ["a", "b"]);
    store.close().await;
}

#[tokio::test]
async fn a_full_server_says_so_and_takes_more_when_there_is_room() {
    let server = Server::start();
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let client = server.client().await;
    let queue = queue("k");
    store
        .execute(vec![enqueue(&queue, "before")])
        .await
        .remove(0)
        .unwrap();
    run(&client, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let result = store.execute(vec![enqueue(&queue, "full")]).await.remove(0);
    assert!(matches!(result, Err(StoreError::Full(_))), "{result:?}");
    run(&client, &["CONFIG", "SET", "maxmemory", "0"]).await;
    store
        .execute(vec![enqueue(&queue, "after")])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(ids(&store, &queue).await, ["before", "after"]);
    store.close().await;
}

#[tokio::test]
async fn a_key_of_another_kind_spoils_only_its_queue() {
    let server = Server::start();
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let client = server.client().await;
    run(
        &client,
        &["SET", "tyo-mq:queue:index:ZGVmYXVsdA:YmFk:Yw", "text"],
    )
    .await;
    let (bad, good) = (queue("bad"), queue("good"));
    let results = store
        .execute(vec![
            enqueue(&good, "a"),
            enqueue(&bad, "x"),
            enqueue(&good, "b"),
        ])
        .await;
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert!(
        matches!(results[1], Err(StoreError::Damaged(_))),
        "{results:?}"
    );
    assert_eq!(ids(&store, &good).await, ["a", "b"]);
    store.close().await;
}

#[tokio::test]
async fn nobody_there_is_told_within_the_probes_time() {
    let mut server = Server::start();
    let url = server.url();
    server.kill();
    let config = RedisConfig {
        probe_timeout: Duration::from_millis(300),
        ..RedisConfig::new(url)
    };
    let began = Instant::now();
    let refused = RedisStore::open(&config).await.err();
    assert!(
        matches!(refused, Some(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    assert!(began.elapsed() >= config.probe_timeout, "it did wait");
    for url in ["no address", "http://127.0.0.1", "", "rediss://127.0.0.1:1"] {
        let refused = RedisStore::open(&RedisConfig {
            probe_timeout: Duration::from_millis(100),
            ..RedisConfig::new(url)
        })
        .await;
        assert!(refused.is_err(), "{url}");
    }
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let server = Server::start();
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    store.close().await;
    store.close().await;
    let results = store.execute(vec![enqueue(&queue("k"), "a")]).await;
    assert!(is_unavailable(&results[0]));
    assert!(store.load().await.is_err());
}
