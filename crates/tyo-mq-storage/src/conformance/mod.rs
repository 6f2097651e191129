//! What every store must do, as plain functions that panic where it does not. For tests of stores, ours and others'.
//!
//! Give [`run`] a function that opens the store. It is called with [`Opening::Fresh`] before each case and must then give an
//! empty store; with [`Opening::Again`] it must open what the last one kept, which has been closed.

mod letters;
mod messages;
mod realms;
mod subscriptions;

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use tyo_mq_core::store::{Position, QueueKey, Store, StoreOp, StoreReply, StoredMessage};
use tyo_mq_core::{Message, MessageId};

/// How to open the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// With nothing in it.
    Fresh,
    /// With what the last one kept.
    Again,
}

/// Runs all cases. `persistent` stores are also opened again.
///
/// # Panics
/// When the store does not do what it must.
pub async fn run<S, F>(persistent: bool, make: impl Fn(Opening) -> F)
where
    S: Store,
    F: Future<Output = S>,
{
    let fresh = || make(Opening::Fresh);
    messages::order_and_positions(&Subject(fresh().await)).await;
    messages::pages(&Subject(fresh().await)).await;
    messages::positions_are_not_used_again(&Subject(fresh().await)).await;
    messages::removal(&Subject(fresh().await)).await;
    messages::a_batch_is_done_in_order(&Subject(fresh().await)).await;
    messages::an_id_is_kept_once(&Subject(fresh().await)).await;
    messages::attempts(&Subject(fresh().await)).await;
    messages::content_is_kept_exactly(&Subject(fresh().await)).await;
    messages::large_messages(&Subject(fresh().await)).await;
    messages::names(&Subject(fresh().await)).await;
    letters::a_letter_leaves_its_queue(&Subject(fresh().await)).await;
    letters::pages(&Subject(fresh().await)).await;
    letters::show_and_discard(&Subject(fresh().await)).await;
    letters::requeue(&Subject(fresh().await)).await;
    letters::requeue_of_an_expired_one(&Subject(fresh().await)).await;
    letters::content_is_kept_exactly(&Subject(fresh().await)).await;
    realms::expiry(&Subject(fresh().await)).await;
    realms::expiry_to_dead_letters(&Subject(fresh().await)).await;
    realms::purge(&Subject(fresh().await)).await;
    realms::another_name(&Subject(fresh().await)).await;
    subscriptions::kept_replaced_and_forgotten(&Subject(fresh().await)).await;
    if persistent {
        opened_again(&make).await;
    }
}

async fn opened_again<S, F>(make: &impl Fn(Opening) -> F)
where
    S: Store,
    F: Future<Output = S>,
{
    let first = Subject(make(Opening::Fresh).await);
    let kept = realms::fill(&first).await;
    first.0.close().await;
    let second = Subject(make(Opening::Again).await);
    realms::is_filled(&second, &kept).await;
    realms::rename(&second).await;
    second.0.close().await;
    let third = Subject(make(Opening::Again).await);
    realms::is_renamed(&third).await;
    third.0.close().await;
}

/// A store under test.
pub(crate) struct Subject<S>(pub(crate) S);

impl<S: Store> Subject<S> {
    /// Carries out operations that must all succeed.
    async fn all(&self, ops: Vec<StoreOp>) -> Vec<StoreReply> {
        let count = ops.len();
        let results = self.0.execute(ops).await;
        assert_eq!(results.len(), count, "one result for each operation");
        results
            .into_iter()
            .map(|result| result.expect("the operation succeeds"))
            .collect()
    }

    async fn one(&self, op: StoreOp) -> StoreReply {
        self.all(vec![op]).await.remove(0)
    }

    async fn enqueue(&self, stored: &StoredMessage) -> Position {
        match self.one(StoreOp::Enqueue(stored.clone())).await {
            StoreReply::Enqueued(position) => position,
            other => panic!("an enqueue was answered {other:?}"),
        }
    }

    async fn page(
        &self,
        queue: &Arc<QueueKey>,
        after: Position,
        limit: usize,
        max_bytes: usize,
    ) -> (Vec<StoredMessage>, bool) {
        let op = StoreOp::Fetch {
            queue: queue.clone(),
            after,
            limit,
            max_bytes,
        };
        match self.one(op).await {
            StoreReply::Page {
                messages,
                exhausted,
            } => (messages, exhausted),
            other => panic!("a fetch was answered {other:?}"),
        }
    }

    /// A whole queue.
    async fn messages(&self, queue: &Arc<QueueKey>) -> Vec<StoredMessage> {
        let (messages, exhausted) = self.page(queue, Position(0), 100_000, usize::MAX).await;
        assert!(exhausted, "the whole queue was read");
        messages
    }

    /// The ids in a queue, in order.
    async fn ids(&self, queue: &Arc<QueueKey>) -> Vec<String> {
        ids(&self.messages(queue).await)
    }
}

fn ids(messages: &[StoredMessage]) -> Vec<String> {
    messages
        .iter()
        .map(|stored| stored.id.to_string())
        .collect()
}

fn queue(realm: &str, key: &str, consumer: &str) -> Arc<QueueKey> {
    Arc::new(QueueKey {
        realm: realm.into(),
        key: key.into(),
        consumer: consumer.into(),
    })
}

fn stored(queue: &Arc<QueueKey>, id: &str) -> StoredMessage {
    let body =
        format!("{{\"event\":\"Order-Placed\",\"message\":{{\"id\":\"{id}\"}},\"from\":\"Shop\"");
    with_body(queue, id, body.as_bytes(), &[])
}

fn with_body(queue: &Arc<QueueKey>, id: &str, body: &[u8], attachments: &[&[u8]]) -> StoredMessage {
    StoredMessage {
        id: MessageId::from(id),
        queue: queue.clone(),
        message: Arc::new(Message {
            event: "Order-Placed".into(),
            producer: "Shop".into(),
            body: Bytes::copy_from_slice(body),
            attachments: attachments
                .iter()
                .map(|part| Bytes::copy_from_slice(part))
                .collect(),
        }),
        created_at_ms: CREATED_AT_MS,
        expires_at_ms: None,
        attempts: 0,
        position: Position(0),
    }
}

fn remove(stored: &StoredMessage) -> StoreOp {
    StoreOp::Remove {
        queue: stored.queue.clone(),
        id: stored.id.clone(),
    }
}

/// The message without its position, which the store gives.
fn unplaced(mut stored: StoredMessage) -> StoredMessage {
    stored.position = Position(0);
    stored
}

/// 2026-11-29.
const CREATED_AT_MS: u64 = 1_795_975_569_147;

/// Far enough away for stores that let messages expire by themselves.
const LATER_MS: u64 = 4_000_000_000_000;
