//! What is varied, in which steps, and what is measured at each.

use serde_json::{Map, Value, json};

/// One picture: the cost of a message while something else grows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Curve {
    /// Its name on the command line, and of its file.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// What grows.
    pub(crate) axis: &'static str,
    pub(crate) kind: Kind,
    /// Figures of the load generator, and their names in the picture.
    pub(crate) figures: &'static [(&'static str, &'static str)],
    /// The raw floor does the same.
    pub(crate) floor: bool,
    points: &'static [u64],
    quick: &'static [u64],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Connections that register and do nothing, beside one pair.
    Idle,
    /// Connections that all send or receive.
    Busy,
    /// Subscriptions to events that nobody sends, beside one pair.
    Subscriptions,
    /// Topic patterns, each sent to in its turn.
    Topics,
    /// Realms with a subscribed client in each, beside one pair.
    Realms,
    /// Messages that wait for a consumer that is away, beside one pair that acknowledges.
    Queued,
    /// The queue itself: in, and out again.
    Backlog,
    /// Worker threads, 100 pairs.
    WorkersPairs,
    /// Worker threads, one producer and 100 consumers.
    WorkersFanOut,
}

const DELIVERY: &[(&str, &str)] = &[("server_cpu_us_per_delivery", "a delivery")];

/// The pictures, in their order.
pub(crate) const CURVES: [Curve; 9] = [
    Curve {
        id: "idle-connections",
        title: "One pair beside idle connections",
        axis: "connections",
        kind: Kind::Idle,
        figures: DELIVERY,
        floor: true,
        points: &[1, 10, 100, 1_000, 10_000],
        quick: &[1, 100],
    },
    Curve {
        id: "busy-connections",
        title: "Pairs that are all busy",
        axis: "connections",
        kind: Kind::Busy,
        figures: DELIVERY,
        floor: true,
        points: &[2, 10, 100, 1_000, 10_000],
        quick: &[2, 100],
    },
    Curve {
        id: "subscriptions",
        title: "One pair beside other subscriptions",
        axis: "subscriptions",
        kind: Kind::Subscriptions,
        figures: DELIVERY,
        floor: false,
        points: &[1, 10, 100, 1_000, 10_000, 100_000],
        quick: &[1, 1_000],
    },
    Curve {
        id: "topics",
        title: "Topics, each pattern sent to in its turn",
        axis: "topic patterns",
        kind: Kind::Topics,
        figures: DELIVERY,
        floor: false,
        points: &[1, 10, 100, 1_000, 10_000, 100_000],
        quick: &[10, 1_000],
    },
    Curve {
        id: "realms",
        title: "One pair beside other realms",
        axis: "realms",
        kind: Kind::Realms,
        figures: DELIVERY,
        floor: false,
        points: &[1, 10, 100, 1_000],
        quick: &[1, 20],
    },
    Curve {
        id: "queued",
        title: "One pair with ACK beside queued messages",
        axis: "queued messages",
        kind: Kind::Queued,
        figures: DELIVERY,
        floor: false,
        points: &[1, 100, 10_000, 100_000, 1_000_000],
        quick: &[1, 1_000],
    },
    Curve {
        id: "backlog",
        title: "A queue filled and emptied, in memory",
        axis: "queued messages",
        kind: Kind::Backlog,
        figures: &[("enqueue_cpu_us_each", "in"), ("replay_cpu_us_each", "out")],
        floor: false,
        // The kernel counts CPU time in steps of 10 ms, so a small queue cannot be measured alone.
        points: &[50_000, 100_000, 200_000, 500_000, 1_000_000],
        quick: &[5_000, 20_000],
    },
    Curve {
        id: "workers-pairs",
        title: "100 pairs, more workers",
        axis: "workers",
        kind: Kind::WorkersPairs,
        figures: DELIVERY,
        floor: false,
        points: &[1, 2],
        quick: &[1, 2],
    },
    Curve {
        id: "workers-fan-out",
        title: "1 → 100, more workers",
        axis: "workers",
        kind: Kind::WorkersFanOut,
        figures: DELIVERY,
        floor: false,
        points: &[1, 2],
        quick: &[1, 2],
    },
];

impl Curve {
    pub(crate) fn points(&self, quick: bool) -> &'static [u64] {
        if quick { self.quick } else { self.points }
    }

    /// What the load generator is told.
    pub(crate) fn load(&self, point: u64) -> Vec<String> {
        let line = match self.kind {
            Kind::Idle | Kind::Subscriptions => "pubsub".to_owned(),
            Kind::Busy => format!("pairs --pairs {}", point / 2),
            Kind::Topics => format!("topics --patterns {point} --consumers {}", point.min(100)),
            Kind::Realms => format!("pubsub --auth-token {}", token(0)),
            Kind::Queued => "ack --pairs 1".to_owned(),
            Kind::Backlog => format!("backlog --count {point}"),
            Kind::WorkersPairs => "pairs --pairs 100".to_owned(),
            Kind::WorkersFanOut => "fanout --consumers 100".to_owned(),
        };
        line.split(' ').map(str::to_owned).collect()
    }

    /// Settings of the broker besides its store.
    pub(crate) fn settings(&self, point: u64) -> Map<String, Value> {
        let mut settings = Map::new();
        match self.kind {
            Kind::Realms => {
                let tokens: Vec<Value> = (0..point)
                    .map(|n| json!({ "token": token(n), "realm": format!("realm-{n}") }))
                    .collect();
                let auth = json!({ "enabled": true, "strict": false, "auto_admin_token": false, "tokens": tokens });
                settings.insert("auth".to_owned(), auth);
            }
            Kind::WorkersPairs | Kind::WorkersFanOut => {
                settings.insert("workers".to_owned(), point.into());
            }
            _ => {}
        }
        settings
    }

    /// Files that the broker or the load generator must be able to have open.
    pub(crate) fn open_files(&self, point: u64) -> u64 {
        match self.kind {
            Kind::Idle | Kind::Busy | Kind::Realms => point + SPARE_FILES,
            _ => SPARE_FILES,
        }
    }

    /// More workers ought to carry more; everything else ought to cost the same.
    pub(crate) fn is_workers(&self) -> bool {
        matches!(self.kind, Kind::WorkersPairs | Kind::WorkersFanOut)
    }
}

/// What a process has open besides.
const SPARE_FILES: u64 = 256;

/// The token of the n-th realm.
pub(crate) fn token(n: u64) -> String {
    format!("token-of-the-realm-number-{n}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_grow() {
        for curve in CURVES {
            for quick in [false, true] {
                assert!(curve.points(quick).is_sorted(), "{}", curve.id);
            }
        }
    }

    #[test]
    fn loads_follow_the_point() {
        let check = |id: &str, point, expected: &str| {
            let curve = CURVES.iter().find(|curve| curve.id == id).unwrap();
            assert_eq!(curve.load(point).join(" "), expected);
        };
        check("busy-connections", 10_000, "pairs --pairs 5000");
        check("topics", 10, "topics --patterns 10 --consumers 10");
        check(
            "topics",
            100_000,
            "topics --patterns 100000 --consumers 100",
        );
        check("backlog", 5_000, "backlog --count 5000");
    }

    #[test]
    fn each_realm_has_a_token() {
        let curve = CURVES.iter().find(|curve| curve.id == "realms").unwrap();
        let settings = curve.settings(3);
        assert_eq!(settings["auth"]["tokens"].as_array().unwrap().len(), 3);
        assert_eq!(settings["auth"]["tokens"][2]["realm"], "realm-2");
    }
}
