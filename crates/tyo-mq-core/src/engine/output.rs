//! What comes out of the engine: deliveries, notices, replies and store operations. Values only.

use std::sync::Arc;

use thiserror::Error;

use super::input::{ReplyToken, StoreToken};
use crate::message::{Message, MessageId, Receipt, SessionId};
use crate::store::{StoreError, StoreOp};

/// One thing to do. The order of outputs for one session is the order on its wire.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Hand a message to one session.
    Deliver {
        /// Whom.
        session: SessionId,
        /// What.
        delivery: Delivery,
    },
    /// Hand a message to many sessions.
    FanOut {
        /// Whom.
        sessions: Arc<[SessionId]>,
        /// What.
        delivery: Delivery,
    },
    /// Tell a session about others.
    Notify {
        /// Whom.
        session: SessionId,
        /// What.
        notice: Notice,
    },
    /// Answer a command.
    Reply {
        /// Whom.
        session: SessionId,
        /// The caller's token, if a reply was asked for.
        token: Option<ReplyToken>,
        /// The answer.
        reply: Reply,
    },
    /// Answer a [`Requeue`](super::Input::Requeue): whether the letter went back.
    Requeued {
        /// The caller's token.
        token: Option<ReplyToken>,
        /// Whether there was such a letter.
        result: Result<bool, StoreError>,
    },
    /// Answer a [`RenameRealm`](super::Input::RenameRealm). It comes when the store has followed; the realm has its new
    /// name from the moment of the input. If the store fails, the realm has its old name back, and operations that
    /// were given out in between must reach the store [under that](StoreOp::move_realm).
    Renamed {
        /// The caller's token.
        token: Option<ReplyToken>,
        /// How it went.
        result: Result<(), RenameError>,
    },
    /// End a session: it may not stay in its realm. Input `Closed` follows from outside.
    Disconnect {
        /// Which.
        session: SessionId,
    },
    /// Say `Drained` for this session as soon as its outbound queue is below its high-water mark, at once if it is.
    Pace {
        /// Which.
        session: SessionId,
    },
    /// Carry out a store operation and return its result.
    Store {
        /// Comes back with the result.
        token: StoreToken,
        /// What to do.
        op: StoreOp,
    },
}

/// One message under one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// What the receiver listens to.
    pub key: Key,
    /// The message.
    pub message: Arc<Message>,
    /// Present if the receiver is to acknowledge.
    pub receipt: Option<Receipt>,
}

/// The name under which a delivery arrives: `CONSUME-<key>` on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A subscription key.
    Exact(Arc<str>),
    /// All events of a producer (given in lower case): `<producer>-TM-ALL`, and `<producer>-tm-all` too.
    AllOf(Arc<str>),
}

/// Something about others that a session is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A consumer subscribed to this producer.
    SubscribeTo {
        /// Id of the producer; the bare event name is used without one.
        producer_id: Option<Arc<str>>,
        /// Consumer name.
        name: Arc<str>,
        /// Consumer id.
        id: Arc<str>,
        /// The consumer's socket, if online.
        socket: Option<Arc<str>>,
        /// Subscription keys.
        events: Vec<Arc<str>>,
    },
    /// A producer that this consumer subscribed to came online.
    ProducerConnected {
        /// Id of the consumer told.
        consumer_id: Arc<str>,
        /// The producer's socket.
        socket: Arc<str>,
        /// Producer name.
        producer: Arc<str>,
    },
    /// A consumer of this producer came online.
    ConsumerConnected {
        /// Id of the producer told.
        producer_id: Arc<str>,
        /// The consumer's socket.
        socket: Arc<str>,
        /// Consumer id.
        id: Arc<str>,
        /// Consumer name.
        consumer: Arc<str>,
    },
    /// A producer went away.
    ProducerDisconnected {
        /// Id of the consumer told.
        consumer_id: Arc<str>,
        /// The socket that is gone.
        socket: Arc<str>,
        /// Producer name.
        producer: Arc<str>,
    },
    /// A consumer went away.
    ConsumerDisconnected {
        /// Id of the producer told.
        producer_id: Arc<str>,
        /// The socket that is gone.
        socket: Arc<str>,
        /// Consumer name.
        consumer: Arc<str>,
    },
    /// Another socket registered the same producer name.
    ProducerReplaced {
        /// The name.
        producer: Arc<str>,
    },
    /// A registration was refused.
    Refused(RefusedRegistration),
    /// A subscription was refused.
    SubscribeRefused(LimitReached),
}

/// Why a registration was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RefusedRegistration {
    /// Another live session holds the consumer name.
    #[error("duplicate consumer name: \"{0}\" is connected already")]
    DuplicateConsumer(String),
    /// The realm wants names.
    #[error("anonymous clients are not allowed in this realm")]
    AnonymousNotAllowed,
    /// A named limit was hit.
    #[error(transparent)]
    Limit(#[from] LimitReached),
}

/// Why a realm keeps its name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RenameError {
    /// Something is under the new name.
    #[error("there is a realm \"{0}\" already")]
    Exists(String),
    /// The name has a meaning of its own.
    #[error("realm \"{0}\" is always there")]
    Reserved(String),
    /// It is being renamed.
    #[error("realm \"{0}\" is being renamed")]
    Busy(String),
    /// A named limit was hit.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A named limit that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("limit reached: {0}")]
pub struct LimitReached(pub &'static str);

/// An answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To a publish: every row is as durable as the store promises.
    Published(Result<Published, PublishError>),
    /// To an acknowledgement.
    Acked {
        /// The id as the client gave it.
        id: MessageId,
        /// How it went.
        result: Result<(), AckError>,
    },
    /// To an unsubscribe.
    Unsubscribed {
        /// How many subscriptions ended.
        removed: usize,
    },
}

/// A confirmed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Identity of the publication.
    pub id: MessageId,
    /// Subscriptions (or sessions, for a broadcast) that it went to or is kept for.
    pub routed: usize,
    /// Stored copies among them.
    pub queued: usize,
}

/// Why a message is not, or not everywhere, kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The realm holds as many messages as it may.
    #[error("queue full: the realm holds {0} messages")]
    QueueFull(u64),
    /// A name is longer than allowed.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an acknowledgement did nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AckError {
    /// No delivery of this id waits for one.
    #[error("no delivery with this id is waiting for an acknowledgement")]
    Unknown,
    /// It waits for that of another session.
    #[error("the delivery belongs to another connection")]
    NotYours,
    /// The store could not forget it; it will be delivered again.
    #[error(transparent)]
    Store(#[from] StoreError),
}
