//! Faults: a locked file, a full disk, rows that went bad. Errors are told, nothing ends, work goes on afterwards.

use std::time::Duration;

use rusqlite::Connection;
use tyo_mq_core::store::{Store, StoreError, StoreOp, StoreReply};
use tyo_mq_storage::SqliteConfig;
use tyo_mq_storage_sqlite::SqliteStore;

use crate::{enqueue, file, messages, open, queue, stored};

#[tokio::test]
async fn a_locked_file_is_unavailable_until_it_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let config = SqliteConfig {
        lock_timeout: Duration::from_millis(50),
        ..SqliteConfig::new(file(&dir))
    };
    let store = SqliteStore::open(&config).unwrap();
    let queue = queue("k");
    store
        .execute(vec![enqueue(&queue, "before")])
        .await
        .remove(0)
        .unwrap();
    let other = Connection::open(file(&dir)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let results = store
        .execute(vec![enqueue(&queue, "a"), enqueue(&queue, "b")])
        .await;
    assert_eq!(results.len(), 2);
    assert!(
        results
            .iter()
            .all(|it| matches!(it, Err(StoreError::Unavailable(_)))),
        "{results:?}"
    );
    assert!(matches!(
        store.discard_dead_letter(None, "a".into()).await,
        Err(StoreError::Unavailable(_))
    ));
    assert_eq!(messages(&store, &queue).await.len(), 1, "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    store
        .execute(vec![enqueue(&queue, "after")])
        .await
        .remove(0)
        .unwrap();
    let kept = messages(&store, &queue).await;
    assert_eq!(
        kept.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(),
        ["before", "after"]
    );
    store.close().await;
}

#[tokio::test]
async fn a_lock_that_goes_in_time_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let queue = queue("k");
    let other = Connection::open(file(&dir)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (results, ()) = tokio::join!(store.execute(vec![enqueue(&queue, "a")]), async {
        tokio::task::yield_now().await;
        other.execute_batch("COMMIT").unwrap();
    });
    assert!(results[0].is_ok(), "{results:?}");
    store.close().await;
}

#[tokio::test]
async fn a_full_store_says_so_and_takes_more_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let small = SqliteConfig {
        max_bytes: Some(1024 * 1024),
        ..SqliteConfig::new(file(&dir))
    };
    let store = SqliteStore::open(&small).unwrap();
    let queue = queue("k");
    let filler = "x".repeat(50_000);
    let big =
        |id: &str| StoreOp::Enqueue(stored(&queue, id, &format!("{{\"message\":\"{filler}\"")));
    let results = store
        .execute((0..40).map(|number| big(&format!("m{number}"))).collect())
        .await;
    let kept: Vec<String> = messages(&store, &queue)
        .await
        .iter()
        .map(|it| it.id.to_string())
        .collect();
    let accepted: Vec<String> = results
        .iter()
        .enumerate()
        .filter(|(_, it)| it.is_ok())
        .map(|(number, _)| format!("m{number}"))
        .collect();
    assert_eq!(
        kept, accepted,
        "what was accepted is kept, and nothing else"
    );
    assert!((5..40).contains(&kept.len()), "{}", kept.len());
    assert!(
        results
            .iter()
            .all(|it| matches!(it, Ok(_) | Err(StoreError::Full(_)))),
        "{results:?}"
    );
    let gone = kept.iter().map(|id| StoreOp::Remove {
        queue: queue.clone(),
        id: id.as_str().into(),
    });
    assert!(
        store
            .execute(gone.collect())
            .await
            .iter()
            .all(Result::is_ok)
    );
    assert!(store.execute(vec![big("again")]).await[0].is_ok());
    store.close().await;
}

#[tokio::test]
async fn one_operation_that_cannot_be_done_spoils_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    open(&path).close().await;
    // a rule of the file's owner that some rows break
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(
        "CREATE TRIGGER no_evil BEFORE INSERT ON messages WHEN NEW.id LIKE 'evil%' BEGIN SELECT RAISE(ABORT, 'evil'); END",
    )
    .unwrap();
    drop(conn);
    let store = open(&path);
    let queue = queue("k");
    let batch = ["a", "evil", "b"].map(|id| enqueue(&queue, id)).to_vec();
    let results = store.execute(batch).await;
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert!(results[1].is_err(), "{results:?}");
    let kept = messages(&store, &queue).await;
    assert_eq!(
        kept.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    store.close().await;
}

#[tokio::test]
async fn odd_rows_are_read_as_well_as_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    open(&path).close().await;
    let conn = Connection::open(&path).unwrap();
    let insert = "INSERT INTO messages (id, realm, event, consumer, payload, producer, created_at, expires_at, attempts) VALUES ";
    for values in [
        "('blob', 'default', 'k', 'c', x'ff00', 7, 'yesterday', 'never', NULL)",
        "('cut', 'default', 'k', 'c', '{\"event\":', NULL, '', 1e300, -5)",
        "('many', 'default', 'k', 'c', '{\"event\":\"E\"}', 'P', '', -1, 99999999999)",
    ] {
        conn.execute(&format!("{insert}{values}"), []).unwrap();
    }
    conn.execute_batch(
        "INSERT INTO durable_subscriptions VALUES ('r', 'k', 'c', 'n', 'no JSON', NULL)",
    )
    .unwrap();
    drop(conn);
    let store = open(&path);
    let kept = messages(&store, &queue("k")).await;
    assert_eq!(kept.len(), 3);
    assert_eq!(kept[1].expires_at_ms, Some(u64::MAX));
    assert_eq!(
        (kept[2].attempts, kept[2].expires_at_ms),
        (u32::MAX, Some(0))
    );
    let snapshot = store.load().await.unwrap();
    assert!(snapshot.subscriptions.is_empty());
    assert_eq!(snapshot.queues.len(), 1);
    store.close().await;
}

#[tokio::test]
async fn times_at_the_edge_are_kept_within_the_files_range() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let queue = queue("k");
    let mut sent = stored(&queue, "a", "{\"a\":1");
    sent.expires_at_ms = Some(u64::MAX);
    sent.created_at_ms = 0;
    store
        .execute(vec![StoreOp::Enqueue(sent)])
        .await
        .remove(0)
        .unwrap();
    let purge = StoreOp::PurgeExpired {
        realm: "default".into(),
        now_ms: 4_000_000_000_000,
        to_dead_letters: false,
    };
    assert_eq!(
        store.execute(vec![purge]).await,
        [Ok(StoreReply::Purged(Vec::new()))]
    );
    assert_eq!(
        messages(&store, &queue).await[0].expires_at_ms,
        Some(u64::MAX >> 1)
    );
    store.close().await;
}
