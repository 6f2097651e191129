//! What goes into the engine: sessions, their commands, store results. Values only.

use std::sync::Arc;

use bytes::Bytes;

use crate::message::SessionId;
use crate::store::{Snapshot, StoreResult};

/// One thing that happened.
#[derive(Debug)]
pub enum Input<'a> {
    /// A client is there; nothing of it is registered yet.
    Opened {
        /// Its session.
        session: SessionId,
        /// The realm it belongs to until it closes.
        realm: &'a str,
        /// The public id that presence events show.
        socket: &'a str,
    },
    /// A client asks for something.
    Command {
        /// Who asks.
        session: SessionId,
        /// What.
        command: Command<'a>,
        /// Given back with the reply; `None` if no reply is wanted.
        reply: Option<ReplyToken>,
    },
    /// A client is gone, whatever the cause.
    Closed {
        /// Which.
        session: SessionId,
    },
    /// The outbound queue of a session is above its high-water mark.
    Stalled {
        /// Which.
        session: SessionId,
    },
    /// The outbound queue of a session is below its low-water mark again.
    Drained {
        /// Which.
        session: SessionId,
    },
    /// A message of another realm for the observers in realm `*`.
    Observed {
        /// The message.
        publish: Publish<'a>,
    },
    /// A store operation ended.
    Stored {
        /// Token of the operation.
        token: StoreToken,
        /// How it ended.
        result: StoreResult,
    },
    /// How long a stored message lives if nobody says; `None` is for ever.
    DefaultTtl(Option<u64>),
    /// What the store held when the broker started; before any session opens.
    Loaded(Snapshot),
    /// A dead letter goes back to its queue.
    Requeue {
        /// Realm that it must belong to.
        realm: &'a str,
        /// Which.
        id: &'a str,
        /// Given back with the reply.
        reply: Option<ReplyToken>,
    },
    /// A realm ends: its sessions are disconnected, its subscriptions, messages and dead letters forgotten.
    PurgeRealm {
        /// Which realm.
        realm: &'a str,
    },
    /// A realm gets another name, with everything in it. Answer: [`Output::Renamed`](super::Output::Renamed).
    RenameRealm {
        /// Its name.
        from: &'a str,
        /// The name that it gets; nothing may be under it.
        to: &'a str,
        /// Given back with the reply.
        reply: Option<ReplyToken>,
    },
    /// What a realm allows changed.
    Policy {
        /// Which realm.
        realm: &'a str,
        /// The new policy.
        policy: RealmPolicy,
    },
    /// The deadline passed.
    Timeout,
}

/// What a realm allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RealmPolicy {
    /// Whether anonymous names may register; by default only in realm `default`.
    pub allow_anonymous: Option<bool>,
    /// Most messages that the realm keeps, instead of the engine's limit for all realms.
    pub max_queued: Option<u64>,
}

/// Chosen by the caller, handed back with the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplyToken(pub u64);

/// Names a store operation until its result is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreToken(pub u64);

/// What a client asks for.
#[derive(Debug)]
pub enum Command<'a> {
    /// Announce a producer.
    RegisterProducer(RegisterProducer<'a>),
    /// Announce a consumer.
    RegisterConsumer(RegisterConsumer<'a>),
    /// Subscribe, or change a subscription.
    Subscribe(Subscribe<'a>),
    /// End subscriptions of this session.
    Unsubscribe(Unsubscribe<'a>),
    /// Publish a message.
    Publish(Publish<'a>),
    /// Acknowledge a delivery.
    Ack {
        /// Its id.
        id: &'a str,
    },
}

/// Announces a producer.
#[derive(Debug, Clone, Copy)]
pub struct RegisterProducer<'a> {
    /// Name; empty stands for `ANONYMOUS`.
    pub name: &'a str,
    /// Id in presence events; the socket's public id if absent.
    pub id: Option<&'a str>,
    /// `Some` replaces the lifetime of its messages that name none.
    pub default_ttl: Option<Lifetime>,
}

/// Announces a consumer.
#[derive(Debug, Clone, Copy)]
pub struct RegisterConsumer<'a> {
    /// Name; empty stands for `ANONYMOUS`.
    pub name: &'a str,
    /// Id in presence events; the socket's public id if absent.
    pub id: Option<&'a str>,
}

/// How long a stored message lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifetime {
    /// Not said: the producer's default, then the broker's.
    #[default]
    Unset,
    /// The broker's default, whatever the producer's is.
    Broker,
    /// So many milliseconds; 0 expires at once.
    Millis(u64),
    /// For ever.
    Never,
}

/// A subscription as a client asks for it.
#[derive(Debug, Clone)]
pub struct Subscribe<'a> {
    /// Name of the consumer; registered on this session if it has no live one.
    pub consumer: &'a str,
    /// Id of the consumer if this registers it.
    pub id: Option<&'a str>,
    /// Stable identity of its stored messages; the socket's public id if absent.
    pub consumer_id: Option<&'a str>,
    /// The rest.
    pub spec: SubscriptionSpec,
}

/// What a subscription is for and how it delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionSpec {
    /// Producer name, or [`ANY_PRODUCER`](super::ANY_PRODUCER).
    pub producer: Arc<str>,
    /// Event name or topic pattern.
    pub event: Arc<str>,
    /// Every event of the producer, whatever `event` says.
    pub all_events: bool,
    /// `event` is a topic pattern.
    pub topic: bool,
    /// Keep messages while the consumer is away.
    pub durable: bool,
    /// Deliver until acknowledged.
    pub ack: bool,
    /// Time for an acknowledgement; the broker's default if absent.
    pub ack_timeout_ms: Option<u64>,
    /// What happens without one.
    pub retry: RetryPolicy,
    /// Share the messages with the other members of this group.
    pub group: Option<Arc<str>>,
    /// Most unacknowledged messages at a time, 0 for no limit; the broker's default if absent.
    pub prefetch: Option<u32>,
}

/// How often and when an unacknowledged message is delivered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Deliveries in all, at least 1.
    pub max_attempts: u32,
    /// Wait after a timeout.
    pub delay_ms: u64,
    /// Double the wait after each attempt.
    pub exponential: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            delay_ms: 5_000,
            exponential: false,
        }
    }
}

impl RetryPolicy {
    /// The wait before the delivery that follows `attempt`.
    pub fn delay_after(&self, attempt: u32) -> u64 {
        if !self.exponential {
            return self.delay_ms;
        }
        let factor = 1u64
            .checked_shl(attempt.saturating_sub(1))
            .unwrap_or(u64::MAX);
        self.delay_ms.saturating_mul(factor)
    }
}

/// Which subscriptions to end.
#[derive(Debug, Clone, Copy)]
pub enum Unsubscribe<'a> {
    /// Those under a subscription key.
    Key(&'a str),
    /// Those for an event, of one producer or of any, of one consumer or of all of this session. Without a producer,
    /// also those under a key of the event's spelling.
    Event {
        /// Event name or pattern.
        event: &'a str,
        /// Producer name.
        producer: Option<&'a str>,
        /// Consumer name.
        consumer: Option<&'a str>,
    },
}

/// A message to publish.
#[derive(Debug, Clone)]
pub struct Publish<'a> {
    /// Event name; empty is a name.
    pub event: &'a str,
    /// Producer name; empty stands for `ANONYMOUS`.
    pub producer: &'a str,
    /// Id of the producer if this registers it.
    pub producer_id: Option<&'a str>,
    /// Encoded content.
    pub body: Bytes,
    /// Binary attachments.
    pub attachments: Box<[Bytes]>,
    /// How long stored copies live.
    pub lifetime: Lifetime,
    /// Keep it for consumers that are away, durable or not.
    pub guaranteed: bool,
    /// Only for these consumer names.
    pub recipients: Option<Vec<&'a str>>,
    /// To subscribers, or to all.
    pub reach: Reach<'a>,
}

/// Whom a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// Matching subscriptions.
    Subscribers,
    /// Every registered session of the realm.
    Realm,
    /// Every online member of a group.
    Group(&'a str),
}
