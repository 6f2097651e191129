//! What an engine counts and holds, as numbers.

/// What an engine counts; sums since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages accepted.
    pub produced: u64,
    /// Copies handed to sessions, but for realm broadcasts.
    pub delivered: u64,
    /// Copies given to the store.
    pub queued: u64,
    /// Messages given up.
    pub dead_lettered: u64,
    /// Acknowledgements that did not come in time.
    pub ack_timeouts: u64,
    /// Copies that expired before delivery.
    pub expired: u64,
    /// Copies dropped at a limit.
    pub dropped: u64,
    /// Copies and acknowledgements that the store refused.
    pub store_failures: u64,
    /// Of those dropped: copies for which the realm's share of the store had no room.
    pub over_quota: u64,
}

/// How much an engine holds now, over all realms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Realms in memory.
    pub realms: usize,
    /// Open sessions.
    pub sessions: usize,
    /// Producer names.
    pub producers: usize,
    /// Consumer names.
    pub consumers: usize,
    /// Subscriptions.
    pub subscriptions: usize,
    /// Queues.
    pub queues: usize,
    /// Deliveries that wait for an acknowledgement or a retry.
    pub in_flight: usize,
    /// Messages in memory that wait for room.
    pub ready: usize,
    /// Messages in the store.
    pub stored: u64,
    /// Publications whose confirm waits for the store.
    pub confirms: usize,
    /// Store operations under way.
    pub store_operations: usize,
}

/// How much one realm holds, and how much of it is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RealmUsage {
    /// Producer names.
    pub producers: usize,
    /// Producer names that a session holds.
    pub producers_online: usize,
    /// Consumer names.
    pub consumers: usize,
    /// Consumer names that a session holds.
    pub consumers_online: usize,
    /// Subscriptions.
    pub subscriptions: usize,
}

impl Counters {
    /// The sum of two.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.produced += other.produced;
        self.delivered += other.delivered;
        self.queued += other.queued;
        self.dead_lettered += other.dead_lettered;
        self.ack_timeouts += other.ack_timeouts;
        self.expired += other.expired;
        self.dropped += other.dropped;
        self.store_failures += other.store_failures;
        self.over_quota += other.over_quota;
        self
    }
}
