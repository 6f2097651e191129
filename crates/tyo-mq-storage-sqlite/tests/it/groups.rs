//! Group commit: what is answered is on disk, batches share transactions, the order holds.

use std::sync::Arc;

use rusqlite::Connection;
use tyo_mq_core::store::{Position, Store, StoreOp, StoreReply};

use crate::{enqueue, file, messages, open, queue};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_is_seen_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&file(&dir)));
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (store, path) = (store.clone(), file(&dir));
            tokio::spawn(async move {
                let queue = queue(&format!("k{task}"));
                let other = Connection::open(path).unwrap();
                for number in 0..50 {
                    let id = format!("{task}-{number}");
                    store
                        .execute(vec![enqueue(&queue, &id)])
                        .await
                        .remove(0)
                        .unwrap();
                    let seen: i64 = other
                        .query_row(
                            "SELECT COUNT(*) FROM messages WHERE id = ?1",
                            [&id],
                            |row| row.get(0),
                        )
                        .unwrap();
                    assert_eq!(seen, 1, "an answer follows its commit");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for task in 0..8 {
        let kept = messages(&store, &queue(&format!("k{task}"))).await;
        let ids: Vec<String> = kept.iter().map(|it| it.id.to_string()).collect();
        let expected: Vec<String> = (0..50).map(|number| format!("{task}-{number}")).collect();
        assert_eq!(ids, expected);
    }
    store.close().await;
}

#[tokio::test]
async fn a_page_sees_what_was_given_before_it_and_nothing_after() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let queue = queue("k");
    let mut ops = Vec::new();
    for number in 0..200 {
        ops.push(enqueue(&queue, &format!("m{number}")));
        ops.push(StoreOp::Fetch {
            queue: queue.clone(),
            after: Position(0),
            limit: 1000,
            max_bytes: usize::MAX,
        });
    }
    let results = store.execute(ops).await;
    let sizes: Vec<usize> = results
        .into_iter()
        .filter_map(|it| match it.unwrap() {
            StoreReply::Page { messages, .. } => Some(messages.len()),
            _ => None,
        })
        .collect();
    assert_eq!(sizes, (1..=200).collect::<Vec<_>>());
    store.close().await;
}

#[tokio::test]
async fn a_message_that_leaves_in_its_own_batch_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let queue = queue("k");
    let mut ops = Vec::new();
    for number in 0..100 {
        let id = format!("m{number}");
        ops.push(enqueue(&queue, &id));
        ops.push(StoreOp::Remove {
            queue: queue.clone(),
            id: id.as_str().into(),
        });
    }
    ops.push(enqueue(&queue, "stays"));
    let results = store.execute(ops).await;
    let positions: Vec<Position> = results
        .into_iter()
        .filter_map(|it| match it.unwrap() {
            StoreReply::Enqueued(position) => Some(position),
            _ => None,
        })
        .collect();
    assert!(positions.is_sorted_by(|a, b| a < b));
    let kept = messages(&store, &queue).await;
    assert_eq!(
        kept.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(),
        ["stays"]
    );
    store.close().await;
}

#[tokio::test]
async fn what_is_dropped_unpolled_or_half_way_hurts_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let queue = queue("k");
    drop(store.execute(vec![enqueue(&queue, "never begun")]));
    let half_way = store.execute(vec![enqueue(&queue, "begun")]);
    let polled_once = async {
        tokio::select! {
            biased;
            _ = half_way => {}
            () = std::future::ready(()) => {}
        }
    };
    polled_once.await;
    store
        .execute(vec![enqueue(&queue, "a")])
        .await
        .remove(0)
        .unwrap();
    let kept = messages(&store, &queue).await;
    assert_eq!(kept.last().map(|it| it.id.as_str()), Some("a"));
    store.close().await;
}

#[tokio::test]
async fn dropping_the_store_writes_what_was_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let queue = queue("k");
    let store = open(&file(&dir));
    for number in 0..20 {
        store
            .execute(vec![enqueue(&queue, &format!("m{number}"))])
            .await
            .remove(0)
            .unwrap();
    }
    drop(store);
    let again = open(&file(&dir));
    assert_eq!(messages(&again, &queue).await.len(), 20);
    again.close().await;
}
