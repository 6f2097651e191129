//! What an engine is told once: defaults of delivery, eviction, and every limit it keeps.

use super::input::RetryPolicy;

/// Settings of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Seed of the message ids; a new one for each start.
    pub seed: u64,
    /// Time for an acknowledgement if a subscription names none.
    pub ack_timeout_ms: u64,
    /// Unacknowledged messages a subscription may have if it names no number.
    pub prefetch: u32,
    /// Life of a stored message if nobody names one; `None` is for ever.
    pub default_ttl_ms: Option<u64>,
    /// When offline registrations are forgotten; `None` is never.
    pub idle_eviction: Option<IdleEviction>,
    /// How long a durable subscription outlives its consumer's last connection; `None` is for ever.
    pub durable_subscription_ttl_ms: Option<u64>,
    /// Expired messages become dead letters.
    pub expired_to_dlq: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            ack_timeout_ms: 30_000,
            prefetch: 1_000,
            default_ttl_ms: Some(86_400_000),
            idle_eviction: Some(IdleEviction::default()),
            durable_subscription_ttl_ms: Some(30 * 86_400_000),
            expired_to_dlq: false,
            limits: Limits::default(),
        }
    }
}

/// When offline registrations are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleEviction {
    /// Time offline.
    pub ttl_ms: u64,
    /// Time between two looks.
    pub interval_ms: u64,
}

impl Default for IdleEviction {
    fn default() -> Self {
        Self {
            ttl_ms: 300_000,
            interval_ms: 60_000,
        }
    }
}

/// Bounds of an engine; what happens at each is said there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a producer, consumer or group name, of an id, and of a recipient: the command is refused.
    pub max_name_bytes: usize,
    /// Bytes of an event name or topic pattern: the command is refused.
    pub max_event_bytes: usize,
    /// Producers and consumers of a realm: a registration is refused.
    pub max_registrations: usize,
    /// Names that one session holds: a registration is refused.
    pub max_registrations_per_session: usize,
    /// Subscriptions of a realm: a subscription is refused.
    pub max_subscriptions: usize,
    /// Stored messages of a realm: a copy is refused; `None` is as many as the store takes.
    pub max_queued_per_realm: Option<u64>,
    /// Messages that wait in memory behind the window of a subscription that is not durable: a new one is dropped.
    pub max_unstored_waiting: usize,
    /// Bytes of those messages: a new one is dropped.
    pub max_unstored_waiting_bytes: usize,
    /// Remembered routes of a realm: all are forgotten.
    pub max_routes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_name_bytes: 1024,
            max_event_bytes: 256 * 1024,
            max_registrations: 1_000_000,
            max_registrations_per_session: 10_000,
            max_subscriptions: 1_000_000,
            max_queued_per_realm: None,
            max_unstored_waiting: 10_000,
            max_unstored_waiting_bytes: 8 * 1024 * 1024,
            max_routes: 16_384,
        }
    }
}

impl RetryPolicy {
    /// At least one delivery.
    pub(crate) fn attempts(&self) -> u32 {
        self.max_attempts.max(1)
    }
}

/// A page of a replay: messages read from the store at a time.
pub(crate) const PAGE_MESSAGES: usize = 256;

/// A page of a replay: bytes after which no further message is read.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;

/// What a replay hands to a session before it asks whether the session keeps up.
pub(crate) const BURST_BYTES: usize = 256 * 1024;

/// Wait before a failed read of a queue is tried again.
pub(crate) const FETCH_RETRY_MS: u64 = 1_000;

/// Wait before a message is delivered again whose acknowledgement the store refused; its queue waits with it.
pub(crate) const REFUSED_ACK_MS: u64 = 1_000;

/// What waits for a consumer that came back comes after this time if it does not subscribe again.
pub(crate) const RESUME_MS: u64 = 5_000;

/// Wait before store operations that failed are tried again.
pub(crate) const SETTLE_MS: u64 = 1_000;

/// Store operations that are tried again at a time.
pub(crate) const SETTLE_BATCH: usize = 256;

/// Messages, and subscriptions, that the store may be behind with in a realm: further ones are not tried again.
pub(crate) const MAX_UNSETTLED: usize = 100_000;

/// Time between two looks for expired messages and offline registrations if no setting says otherwise.
pub(crate) const SWEEP_INTERVAL_MS: u64 = 60_000;
