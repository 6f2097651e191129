//! What a message store must do: the trait that back ends implement, its operations and records.
//!
//! The engine emits operations and never waits; the runtime hands them to the store in order, in batches, and
//! returns each result to the engine as an input. A result may only be given when it is as durable as the
//! store promises.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;

use crate::message::{Message, MessageId};

/// Names one queue: the messages kept for one consumer id under one subscription key of one realm.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueKey {
    /// Realm name.
    pub realm: Arc<str>,
    /// Subscription key, such as `shop-order-placed`.
    pub key: Arc<str>,
    /// The consumer's stable id.
    pub consumer: Arc<str>,
}

/// Place of a stored message in its queue: later messages have larger positions. Given by the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// A message as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Identity, unique in the store.
    pub id: MessageId,
    /// The queue it waits in.
    pub queue: Arc<QueueKey>,
    /// The message itself.
    pub message: Arc<Message>,
    /// When it was accepted, milliseconds since 1970.
    pub created_at_ms: u64,
    /// When it expires, milliseconds since 1970; `None` is never.
    pub expires_at_ms: Option<u64>,
    /// Deliveries made so far.
    pub attempts: u32,
    /// Place in the queue; ignored by [`StoreOp::Enqueue`].
    pub position: Position,
}

/// A message that will not be tried again by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message as it was kept.
    pub stored: StoredMessage,
    /// Why it is here, for people.
    pub reason: String,
    /// When it was given up, milliseconds since 1970.
    pub dead_lettered_at_ms: u64,
}

/// A durable subscription as it is kept over a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableSubscription {
    /// Realm, subscription key and consumer id.
    pub queue: QueueKey,
    /// Consumer name.
    pub consumer_name: Arc<str>,
    /// Everything that SUBSCRIBE said.
    pub spec: crate::engine::SubscriptionSpec,
    /// Since when the consumer is away, milliseconds since 1970; `None` while it is connected.
    pub offline_since_ms: Option<u64>,
}

/// One operation. Operations of a broker are carried out in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreOp {
    /// Keep a message at the end of its queue. Answer: [`StoreReply::Enqueued`].
    Enqueue(StoredMessage),
    /// Forget a message that was acknowledged, delivered or expired; an unknown id is fine.
    Remove {
        /// The queue it waits in.
        queue: Arc<QueueKey>,
        /// Which message.
        id: MessageId,
    },
    /// Note how often a message was delivered; an unknown id is fine.
    SetAttempts {
        /// The queue it waits in.
        queue: Arc<QueueKey>,
        /// Which message.
        id: MessageId,
        /// Deliveries made so far.
        attempts: u32,
    },
    /// Move a message, kept or not, to the dead letters, in one step.
    DeadLetter(Box<DeadLetter>),
    /// Read a page of a queue, oldest first. Answer: [`StoreReply::Page`].
    Fetch {
        /// Which queue.
        queue: Arc<QueueKey>,
        /// Only messages behind this position.
        after: Position,
        /// At most so many.
        limit: usize,
        /// Stop after the message that passes this sum of sizes.
        max_bytes: usize,
    },
    /// Forget messages of a realm that expired. Answer: [`StoreReply::Purged`].
    PurgeExpired {
        /// Which realm.
        realm: Arc<str>,
        /// Wall clock, milliseconds since 1970.
        now_ms: u64,
        /// Make dead letters of them instead.
        to_dead_letters: bool,
    },
    /// Keep or replace a durable subscription.
    PutSubscription(Box<DurableSubscription>),
    /// Forget a durable subscription; an unknown one is fine.
    RemoveSubscription {
        /// Realm, key and consumer id.
        queue: QueueKey,
        /// Consumer name.
        consumer_name: Arc<str>,
    },
    /// Put a dead letter back at the end of its queue with no attempts counted, keeping its expiry unless that
    /// has passed. Answer: [`StoreReply::Requeued`].
    Requeue {
        /// Realm that the dead letter must belong to.
        realm: Arc<str>,
        /// Which dead letter.
        id: MessageId,
        /// Expiry for a letter whose own has passed.
        expires_at_ms: Option<u64>,
        /// Wall clock, milliseconds since 1970.
        now_ms: u64,
    },
    /// Forget everything of a realm: messages, dead letters, subscriptions.
    PurgeRealm {
        /// Which realm.
        realm: Arc<str>,
    },
    /// Put everything of a realm under another name, in one step, with ids and positions as they are. What is under
    /// that name already stays there.
    RenameRealm {
        /// The old name.
        from: Arc<str>,
        /// The new name.
        to: Arc<str>,
    },
}

impl StoreOp {
    /// Makes an operation on one realm one on another.
    pub fn move_realm(&mut self, from: &str, to: &Arc<str>) {
        let rename = |realm: &mut Arc<str>| {
            if **realm == *from {
                *realm = to.clone();
            }
        };
        let move_queue = |queue: &mut Arc<QueueKey>| {
            if *queue.realm == *from {
                rename(&mut Arc::make_mut(queue).realm);
            }
        };
        match self {
            Self::Enqueue(stored) => move_queue(&mut stored.queue),
            Self::DeadLetter(letter) => move_queue(&mut letter.stored.queue),
            Self::Remove { queue, .. }
            | Self::SetAttempts { queue, .. }
            | Self::Fetch { queue, .. } => move_queue(queue),
            Self::PutSubscription(subscription) => rename(&mut subscription.queue.realm),
            Self::RemoveSubscription { queue, .. } => rename(&mut queue.realm),
            Self::PurgeExpired { realm, .. }
            | Self::Requeue { realm, .. }
            | Self::PurgeRealm { realm } => rename(realm),
            Self::RenameRealm { from, to } => {
                rename(from);
                rename(to);
            }
        }
    }
}

/// What an operation gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreReply {
    /// Done; nothing to tell.
    Done,
    /// Kept, at this position.
    Enqueued(Position),
    /// A page of a queue.
    Page {
        /// Messages, oldest first.
        messages: Vec<StoredMessage>,
        /// No message stood behind the last one.
        exhausted: bool,
    },
    /// How many messages expired, by queue.
    Purged(Vec<(QueueKey, u64)>),
    /// The queue that the dead letter went back to, or `None` if there was no such letter.
    Requeued(Option<QueueKey>),
}

/// Why an operation failed. Nothing of it has been done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached or is locked.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// There is no room: the disk, the memory or the queue of operations is full.
    #[error("store full: {0}")]
    Full(String),
    /// What is kept cannot be read.
    #[error("store damaged: {0}")]
    Damaged(String),
    /// The store was made by a newer program.
    #[error("store is of a newer version: {0}")]
    NewerVersion(String),
    /// The store does not offer this.
    #[error("not supported by this store")]
    Unsupported,
}

/// Outcome of one operation.
pub type StoreResult = Result<StoreReply, StoreError>;

/// What is kept when the broker starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Durable subscriptions.
    pub subscriptions: Vec<DurableSubscription>,
    /// Queues that hold messages, with their number.
    pub queues: Vec<(QueueKey, u64)>,
}

/// A page of dead letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetterPage {
    /// Oldest first.
    pub letters: Vec<DeadLetter>,
    /// Where the next page begins, if there is one: give it as `after`.
    pub next: Option<u64>,
}

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A message store.
pub trait Store: Send + Sync + 'static {
    /// Short name for logs and screens, such as `sqlite`.
    fn name(&self) -> &'static str;

    /// What is kept now; called once before the first operation.
    fn load(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>>;

    /// Carries out operations in order. The results stand in the same order, one each.
    fn execute(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>>;

    /// Lists dead letters of a realm (or of all), oldest first.
    fn dead_letters(
        &self,
        realm: Option<Arc<str>>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<DeadLetterPage, StoreError>>;

    /// Shows one dead letter.
    fn dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<Option<DeadLetter>, StoreError>>;

    /// Forgets one dead letter; true if there was one.
    fn discard_dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Everything accepted has been written when this returns; nothing is called afterwards.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// The store as one that answers at once, if it is such a one: the runtime then needs no task between.
    fn as_inline(&self) -> Option<&dyn InlineStore> {
        None
    }
}

/// A store whose operations cost less than handing them to another task.
pub trait InlineStore: Send + Sync {
    /// Carries out one operation now.
    fn execute_now(&self, op: StoreOp) -> StoreResult;
}
