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
    /// Who of those that do the least possible can do it.
    pub(super) floors: &'static [Floor],
}

/// Servers that do the least possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floor {
    /// Its own framing; copies, and answers acknowledgements without keeping anything.
    Raw,
    /// The same on tokio-tungstenite; copies only.
    Library,
    /// A relay on socketioxide, which also polls.
    Relay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Memory,
    SqliteNormal,
    SqliteFull,
    /// A Redis beside it that writes nothing to the disk.
    Redis,
}

/// All of them.
const FLOORS: &[Floor] = &[Floor::Raw, Floor::Library, Floor::Relay];

impl Scenario {
    const fn beside(mut self, floors: &'static [Floor]) -> Self {
        self.floors = floors;
        self
    }

    /// What the load generator is told; a quick run is short and small, and good for nothing but seeing that it works.
    pub(super) fn args(&self, quick: bool) -> Vec<String> {
        shorten(
            self.args.iter().map(|arg| (*arg).to_owned()).collect(),
            quick,
        )
    }
}

/// Takes a tenth of the count, or one second.
pub(super) fn shorten(mut args: Vec<String>, quick: bool) -> Vec<String> {
    if !quick {
        return args;
    }
    let counted = ["--count", "--connections", "--patterns"];
    let place = args.iter().position(|arg| counted.contains(&arg.as_str()));
    if let Some(count) = place.and_then(|place| args.get_mut(place + 1)) {
        *count = count
            .parse::<u64>()
            .map_or(1, |count| count / 10)
            .to_string();
    }
    let timed = !args
        .iter()
        .any(|arg| matches!(arg.as_str(), "idle") || arg.contains("backlog"));
    if timed {
        args.extend(["--duration", "1"].map(str::to_owned));
    }
    args
}

const fn live(id: &'static str, title: &'static str, args: &'static [&'static str]) -> Scenario {
    Scenario {
        id,
        title,
        args,
        store: Store::Memory,
        floors: FLOORS,
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
        floors: &[],
    }
}

/// The table, in its order.
pub(super) const SCENARIOS: [Scenario; 26] = [
    live("1-1", "1 → 1, 64 B", &["pubsub"]),
    live("1-1-1k", "1 → 1, 1 KB", &["pubsub", "--payload", "1024"]),
    live("1-100", "1 → 100", &["fanout", "--consumers", "100"]),
    live("1-1000", "1 → 1000", &["fanout", "--consumers", "1000"]),
    live("100-1", "100 → 1", &["fanin", "--producers", "100"]).beside(&[Floor::Raw]),
    live("pairs", "100 pairs", &["pairs", "--pairs", "100"]),
    kept(
        "ack",
        "ACK, memory, 1 pair",
        &["ack", "--pairs", "1"],
        Store::Memory,
    )
    .beside(&[Floor::Raw]),
    kept(
        "ack-50",
        "ACK, memory, 50 pairs",
        &["ack", "--pairs", "50"],
        Store::Memory,
    )
    .beside(&[Floor::Raw]),
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
        "ack-redis",
        "ACK, Redis",
        &["ack", "--pairs", "1"],
        Store::Redis,
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
        "backlog-redis",
        "backlog of 100 000, Redis",
        &["backlog", "--count", "100000"],
        Store::Redis,
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
    )
    .beside(FLOORS),
    kept(
        "idle-subscribed",
        "idle connections, subscribed",
        &["idle", "--connections", "5000", "--register"],
        Store::Memory,
    )
    .beside(FLOORS),
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
    )
    .beside(FLOORS),
    kept(
        "connrate-poll",
        "polling handshakes",
        &["connrate", "--polling"],
        Store::Memory,
    )
    .beside(&[Floor::Relay]),
    kept(
        "polling",
        "polling, 32 messages a POST",
        &["polling", "--pairs", "1"],
        Store::Memory,
    )
    .beside(&[Floor::Relay]),
    kept(
        "large",
        "1 MB in chunks",
        &["large", "--size", "1048576"],
        Store::Memory,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        let mut ids = SCENARIOS.map(|scenario| scenario.id).to_vec();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), SCENARIOS.len());
    }

    #[test]
    fn quick_runs_are_short_or_small() {
        let check = |args: &str, expected: &str| {
            let args = args.split(' ').map(str::to_owned).collect();
            assert_eq!(shorten(args, true).join(" "), expected);
        };
        check("pubsub", "pubsub --duration 1");
        check(
            "backlog --count 100000 --ack",
            "backlog --count 10000 --ack",
        );
        check("idle --connections 5000", "idle --connections 500");
        check(
            "topics --patterns 100 --consumers 5",
            "topics --patterns 10 --consumers 5 --duration 1",
        );
        assert_eq!(SCENARIOS[0].args(false), ["pubsub"]);
    }
}
