//! What is measured: the load generator's flows, and the settings that the broker has in each.

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scenario {
    /// Its name on the command line.
    pub(super) id: &'static str,
    /// Its name in the table.
    pub(super) title: &'static str,
    /// Arguments of the load generator.
    pub(super) args: &'static [&'static str],
    /// How the broker keeps messages.
    pub(super) store: Store,
    /// The floors can do it.
    pub(super) floor: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Memory,
    SqliteNormal,
    SqliteFull,
}

const fn live(id: &'static str, title: &'static str, args: &'static [&'static str]) -> Scenario {
    Scenario {
        id,
        title,
        args,
        store: Store::Memory,
        floor: true,
    }
}

const fn kept(
    id: &'static str,
    title: &'static str,
    args: &'static [&'static str],
    store: Store,
) -> Scenario {
    Scenario {
        id,
        title,
        args,
        store,
        floor: false,
    }
}

/// The table, in its order.
pub(super) const SCENARIOS: [Scenario; 22] = [
    live("1-1", "1 → 1, 64 B", &["pubsub"]),
    live("1-1-1k", "1 → 1, 1 KB", &["pubsub", "--payload", "1024"]),
    live("1-100", "1 → 100", &["fanout", "--consumers", "100"]),
    live("1-1000", "1 → 1000", &["fanout", "--consumers", "1000"]),
    live("100-1", "100 → 1", &["fanin", "--producers", "100"]),
    live("pairs", "100 pairs", &["pairs", "--pairs", "100"]),
    kept(
        "ack",
        "ACK, memory, 1 pair",
        &["ack", "--pairs", "1"],
        Store::Memory,
    ),
    kept(
        "ack-50",
        "ACK, memory, 50 pairs",
        &["ack", "--pairs", "50"],
        Store::Memory,
    ),
    kept(
        "ack-sqlite",
        "ACK, SQLite normal",
        &["ack", "--pairs", "1"],
        Store::SqliteNormal,
    ),
    kept(
        "ack-full",
        "ACK, SQLite full",
        &["ack", "--pairs", "1"],
        Store::SqliteFull,
    ),
    kept(
        "backlog",
        "backlog of 100 000, memory",
        &["backlog", "--count", "100000"],
        Store::Memory,
    ),
    kept(
        "backlog-sqlite",
        "backlog of 100 000, SQLite",
        &["backlog", "--count", "100000"],
        Store::SqliteNormal,
    ),
    kept(
        "backlog-ack",
        "backlog with ACK, SQLite",
        &["backlog", "--count", "100000", "--ack"],
        Store::SqliteNormal,
    ),
    kept(
        "topics",
        "10 000 patterns",
        &["topics", "--patterns", "10000", "--consumers", "100"],
        Store::Memory,
    ),
    kept(
        "topics-100k",
        "100 000 patterns",
        &["topics", "--patterns", "100000", "--consumers", "100"],
        Store::Memory,
    ),
    kept(
        "group",
        "group of 10",
        &["group", "--workers", "10"],
        Store::Memory,
    ),
    kept(
        "idle",
        "idle connections",
        &["idle", "--connections", "5000"],
        Store::Memory,
    ),
    live(
        "latency",
        "latency at 1 000/s",
        &["latency", "--rate", "1000"],
    ),
    live(
        "latency-100",
        "latency, 1 → 100 at 100/s",
        &["latency", "--rate", "100", "--consumers", "100"],
    ),
    kept(
        "connrate",
        "WebSocket handshakes",
        &["connrate"],
        Store::Memory,
    ),
    kept(
        "connrate-poll",
        "polling handshakes",
        &["connrate", "--polling"],
        Store::Memory,
    ),
    kept(
        "large",
        "1 MB in chunks",
        &["large", "--size", "1048576"],
        Store::Memory,
    ),
];
