//! Order: within a millisecond, over clocks that step back, among several brokers, and where the reference wrote.

use tyo_mq_core::store::{Position, Store, StoreOp, StoreReply};
use tyo_mq_storage::RedisConfig;
use tyo_mq_storage_redis::RedisStore;

use crate::server::{Server, run};
use crate::{enqueue, ids, page, queue};

#[tokio::test]
async fn a_clock_that_steps_back_keeps_the_order() {
    let server = Server::start();
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let client = server.client().await;
    // the last score was given by a clock that was far ahead
    run(
        &client,
        &["SET", "tyo-mq:queue:clock", "2795976817339.9990234375"],
    )
    .await;
    let queue = queue("k");
    let names: Vec<String> = (0..3000)
        .map(|number| format!("m{}", number * 7919 % 10_007))
        .collect();
    let results = store
        .execute(names.iter().map(|id| enqueue(&queue, id)).collect())
        .await;
    assert_eq!(
        results[0],
        Ok(StoreReply::Enqueued(Position(2_795_976_817_340 * 1024)))
    );
    assert_eq!(ids(&store, &queue).await, names);
    store.close().await;
}

#[tokio::test]
async fn brokers_that_share_keys_share_the_order() {
    let server = Server::start();
    let config = RedisConfig::new(server.url());
    let (one, two) = (
        RedisStore::open(&config).await.unwrap(),
        RedisStore::open(&config).await.unwrap(),
    );
    let queue = queue("k");
    let mut expected = Vec::new();
    for number in 0..50 {
        for (store, name) in [(&one, "a"), (&two, "b")] {
            let id = format!("{name}{number}");
            store
                .execute(vec![enqueue(&queue, &id)])
                .await
                .remove(0)
                .unwrap();
            expected.push(id);
        }
    }
    assert_eq!(ids(&one, &queue).await, expected);
    assert_eq!(ids(&two, &queue).await, expected);
    assert_eq!(one.count("default").await, Ok(100));
    two.execute(vec![StoreOp::Remove {
        queue: queue.clone(),
        id: "a0".into(),
    }])
    .await;
    assert_eq!(one.count("default").await, Ok(99));
    assert_eq!(one.count("unknown").await, Ok(0));
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn pages_lose_nothing_among_equal_scores() {
    let server = Server::start();
    let config = RedisConfig::new(server.url());
    let client = server.client().await;
    for id in 0..40 {
        let score = if id < 30 {
            "1795976819539"
        } else {
            "1795976819540"
        };
        run(
            &client,
            &[
                "ZADD",
                "tyo-mq:queue:index:ZGVmYXVsdA:aw:Yw",
                score,
                &format!("m{id:02}"),
            ],
        )
        .await;
        let text = format!(
            r#"{{"id":"m{id:02}","realm":"default","event":"k","consumer":"c","message":{{"event":"E"}},"expires_at":null}}"#
        );
        run(
            &client,
            &["SET", &format!("tyo-mq:queue:message:m{id:02}"), &text],
        )
        .await;
    }
    let store = RedisStore::open(&config).await.unwrap();
    let queue = queue("k");
    let (mut after, mut found) = (Position(0), Vec::new());
    loop {
        let messages = page(&store, &queue, after, 7).await;
        let Some(last) = messages.last() else { break };
        after = last.position;
        found.extend(messages.iter().map(|it| it.id.to_string()));
    }
    let expected: Vec<String> = (0..40).map(|id| format!("m{id:02}")).collect();
    assert_eq!(found, expected);
    store.close().await;
}

#[tokio::test]
async fn a_batch_larger_than_a_script_keeps_its_order() {
    let server = Server::start();
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let queue = queue("k");
    let mut ops: Vec<StoreOp> = (0..1700)
        .map(|number| enqueue(&queue, &format!("m{number}")))
        .collect();
    ops.insert(
        900,
        StoreOp::PurgeExpired {
            realm: "default".into(),
            now_ms: 1,
            to_dead_letters: false,
        },
    );
    let results = store.execute(ops).await;
    let positions: Vec<Position> = results
        .iter()
        .filter_map(|it| match it {
            Ok(StoreReply::Enqueued(position)) => Some(*position),
            _ => None,
        })
        .collect();
    assert_eq!((results.len(), positions.len()), (1701, 1700));
    assert!(positions.is_sorted_by(|a, b| a < b));
    store.close().await;
}
