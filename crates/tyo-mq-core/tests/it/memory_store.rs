//! The memory store by its own: order, pages, bounds, dead letters.

use std::sync::Arc;

use bytes::Bytes;
use tyo_mq_core::memory_store::{MemoryLimits, MemoryStore};
use tyo_mq_core::store::{
    DeadLetter, InlineStore, Position, QueueKey, Store, StoreError, StoreOp, StoreReply,
    StoredMessage,
};
use tyo_mq_core::{Message, MessageId};

use crate::transcript::now_or_never;

fn queue(realm: &str, consumer: &str) -> Arc<QueueKey> {
    Arc::new(QueueKey {
        realm: realm.into(),
        key: "p-e".into(),
        consumer: consumer.into(),
    })
}

fn row(id: &str, queue: &Arc<QueueKey>, expires_at_ms: Option<u64>) -> StoredMessage {
    let message = Message {
        event: "e".into(),
        producer: "p".into(),
        body: Bytes::copy_from_slice(id.as_bytes()),
        attachments: Box::default(),
    };
    StoredMessage {
        id: id.into(),
        queue: queue.clone(),
        message: Arc::new(message),
        created_at_ms: 1,
        expires_at_ms,
        attempts: 0,
        position: Position::default(),
    }
}

fn letter(id: &str, queue: &Arc<QueueKey>) -> StoreOp {
    StoreOp::DeadLetter(Box::new(DeadLetter {
        stored: row(id, queue, Some(5)),
        reason: "ack timeout".to_owned(),
        dead_lettered_at_ms: 2,
    }))
}

fn remove(id: &str, queue: &Arc<QueueKey>) -> StoreOp {
    StoreOp::Remove {
        queue: queue.clone(),
        id: id.into(),
    }
}

fn done(store: &MemoryStore, op: StoreOp) {
    let result = store.execute_now(op);
    assert!(result.is_ok(), "{result:?}");
}

/// Ids of a page, their last position, and whether nothing stands behind.
fn page(store: &MemoryStore, queue: &Arc<QueueKey>, after: Position, limit: usize) -> Page {
    let op = StoreOp::Fetch {
        queue: queue.clone(),
        after,
        limit,
        max_bytes: usize::MAX,
    };
    let Ok(StoreReply::Page {
        messages,
        exhausted,
    }) = store.execute_now(op)
    else {
        panic!("a fetch gives a page");
    };
    let last = messages.last().map_or(after, |last| last.position);
    let ids = messages.iter().map(|it| it.id.to_string()).collect();
    (ids, last, exhausted)
}

type Page = (Vec<String>, Position, bool);

fn requeue(store: &MemoryStore, realm: &str, id: &str) -> Option<QueueKey> {
    let op = StoreOp::Requeue {
        realm: realm.into(),
        id: id.into(),
        expires_at_ms: Some(100),
        now_ms: 10,
    };
    match store.execute_now(op) {
        Ok(StoreReply::Requeued(queue)) => queue,
        other => panic!("a requeue says where to: {other:?}"),
    }
}

fn letters(
    store: &MemoryStore,
    realm: Option<&str>,
    after: Option<u64>,
) -> (Vec<String>, Option<u64>) {
    let page = now_or_never(store.dead_letters(realm.map(Into::into), after, 2));
    let page = page.expect("the memory store always lists");
    let ids = page
        .letters
        .iter()
        .map(|it| it.stored.id.to_string())
        .collect();
    (ids, page.next)
}

#[test]
fn pages_come_in_order_and_skip_what_is_gone() {
    let (store, queue) = (MemoryStore::default(), queue("r", "c"));
    for number in 0..500 {
        done(
            &store,
            StoreOp::Enqueue(row(&number.to_string(), &queue, None)),
        );
    }
    for number in 1..498 {
        done(&store, remove(&number.to_string(), &queue));
        done(&store, remove(&number.to_string(), &queue));
    }
    let (ids, last, exhausted) = page(&store, &queue, Position::default(), 2);
    assert_eq!(
        (ids, exhausted),
        (vec!["0".to_owned(), "498".to_owned()], false)
    );
    let (ids, last, exhausted) = page(&store, &queue, last, 2);
    assert_eq!((ids, exhausted), (vec!["499".to_owned()], true));
    assert_eq!(page(&store, &queue, last, 2), (Vec::new(), last, true));
}

#[test]
fn a_page_ends_behind_the_message_that_fills_it() {
    let (store, queue) = (MemoryStore::default(), queue("r", "c"));
    for id in ["one", "two", "six"] {
        done(&store, StoreOp::Enqueue(row(id, &queue, None)));
    }
    let op = StoreOp::Fetch {
        queue,
        after: Position::default(),
        limit: 10,
        max_bytes: 4,
    };
    let Ok(StoreReply::Page {
        messages,
        exhausted,
    }) = store.execute_now(op)
    else {
        panic!("a fetch gives a page");
    };
    assert_eq!((messages.len(), exhausted), (2, false));
}

#[test]
fn bounds_refuse_new_rows_and_let_letters_go_back() {
    let limits = MemoryLimits {
        max_messages: 2,
        max_bytes: 1_000,
    };
    let (store, queue) = (MemoryStore::new(limits), queue("r", "c"));
    done(&store, StoreOp::Enqueue(row("a", &queue, None)));
    done(&store, letter("a", &queue));
    done(&store, letter("b", &queue));
    done(&store, letter("c", &queue));
    let refused = store.execute_now(StoreOp::Enqueue(row("d", &queue, None)));
    assert_eq!(refused, Err(StoreError::Full("max_messages".to_owned())));
    assert_eq!(requeue(&store, "other", "b"), None);
    assert_eq!(requeue(&store, "r", "b").as_ref(), Some(&*queue));
    assert_eq!(requeue(&store, "r", "b"), None);
    assert_eq!(page(&store, &queue, Position::default(), 9).0, ["b"]);
    done(&store, remove("b", &queue));
    for id in ["a", "c"] {
        let discarded = store.discard_dead_letter(Some("r".into()), MessageId::from(id));
        assert_eq!(now_or_never(discarded), Ok(true));
    }
    done(&store, StoreOp::Enqueue(row("d", &queue, None)));
    let large = "x".repeat(1_000);
    let refused = store.execute_now(StoreOp::Enqueue(row(&large, &queue, None)));
    assert_eq!(refused, Err(StoreError::Full("max_bytes".to_owned())));
}

#[test]
fn letters_are_listed_in_pages_and_by_realm() {
    let store = MemoryStore::default();
    let (here, there) = (queue("here", "c"), queue("there", "c"));
    for (id, queue) in [("a", &here), ("x", &there), ("b", &here), ("c", &here)] {
        done(&store, letter(id, queue));
    }
    let (ids, next) = letters(&store, Some("here"), None);
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(
        letters(&store, Some("here"), next),
        (vec!["c".to_owned()], None)
    );
    assert_eq!(letters(&store, None, None).0, ["a", "x"]);
    done(
        &store,
        StoreOp::PurgeRealm {
            realm: "here".into(),
        },
    );
    assert_eq!(letters(&store, None, None), (vec!["x".to_owned()], None));
    assert_eq!(requeue(&store, "here", "a"), None);
}

#[test]
fn expired_rows_go_wherever_they_stand() {
    let store = MemoryStore::default();
    let (here, there) = (queue("here", "c"), queue("there", "c"));
    done(&store, StoreOp::Enqueue(row("late", &here, Some(20))));
    done(&store, StoreOp::Enqueue(row("now", &here, Some(10))));
    done(&store, StoreOp::Enqueue(row("never", &here, None)));
    done(&store, StoreOp::Enqueue(row("elsewhere", &there, Some(10))));
    let purge = StoreOp::PurgeExpired {
        realm: "here".into(),
        now_ms: 10,
        to_dead_letters: true,
    };
    let purged = Ok(StoreReply::Purged(vec![((*here).clone(), 1)]));
    assert_eq!(store.execute_now(purge), purged);
    assert_eq!(
        page(&store, &here, Position::default(), 9).0,
        ["late", "never"]
    );
    assert_eq!(
        page(&store, &there, Position::default(), 9).0,
        ["elsewhere"]
    );
    assert_eq!(letters(&store, None, None).0, ["now"]);
}
