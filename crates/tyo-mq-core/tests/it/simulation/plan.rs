//! What a seed decides beforehand: who subscribes to what, how unreliable everything is.

use tyo_mq_core::engine::{
    ANY_PRODUCER, Config, IdleEviction, Limits, RetryPolicy, SubscriptionSpec,
};

use super::rng::Rng;

pub(crate) const PRODUCERS: [&str; 3] = ["P", "Q", "shop-x"];
pub(crate) const EVENTS: [&str; 6] = ["a", "b", "A/1", "a/2", "a/1/x", "x-a"];

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) steps: u64,
    /// Subscriptions of each consumer.
    pub(crate) consumers: Vec<Vec<SubscriptionSpec>>,
    /// Longest time that the store needs for an operation, and for an answer.
    pub(crate) store_delay_ms: u64,
    /// Messages that the store gives at a time at the most.
    pub(crate) page: usize,
    /// Operations of each kind that fail, of a hundred.
    pub(crate) failing: Vec<(&'static str, u64)>,
    /// Broker crashes, of a thousand steps.
    pub(crate) crashes: u64,
    /// Consumer crashes, of a hundred actions.
    pub(crate) client_crashes: u64,
    /// The wall clock jumps.
    pub(crate) clock_jumps: bool,
    pub(crate) guaranteed: u64,
    pub(crate) short_ttl: u64,
    /// Deliveries that are acknowledged soon, and late, of a hundred; the rest never.
    pub(crate) acks: (u64, u64),
}

const KINDS: [&str; 9] = [
    "enqueue", "remove", "attempts", "bury", "fetch", "purge", "put", "drop", "requeue",
];

impl Plan {
    pub(crate) fn new(seed: u64, rng: &mut Rng) -> Self {
        let policies = Policies::new(rng);
        let number = 2 + rng.index(4);
        let consumers = (0..number).map(|_| policies.choose(rng)).collect();
        let failing = match rng.below(4) {
            0 => vec![(rng.pick(&KINDS), 10 + rng.below(60))],
            1 => KINDS.iter().map(|kind| (*kind, rng.below(15))).collect(),
            _ => Vec::new(),
        };
        let interval_ms = rng.pick(&[10_000, 60_000]);
        Self {
            config: Config {
                seed: seed << 8,
                ack_timeout_ms: 2_000,
                default_ttl_ms: None,
                idle_eviction: Some(IdleEviction {
                    ttl_ms: AWAY_MS,
                    interval_ms,
                }),
                durable_subscription_ttl_ms: Some(AWAY_MS),
                expired_to_dlq: rng.percent(20),
                limits: Limits {
                    max_queued_per_realm: rng.pick(&[None, None, None, Some(7)]),
                    ..Limits::default()
                },
                ..Config::default()
            },
            steps: 60 + rng.below(200),
            consumers,
            store_delay_ms: rng.pick(&[0, 0, 3, 40, 700]),
            page: rng.pick(&[1, 2, 5, 1_000]),
            failing,
            crashes: rng.pick(&[0, 0, 5, 20]),
            client_crashes: rng.pick(&[2, 10, 25]),
            clock_jumps: rng.percent(30),
            guaranteed: rng.pick(&[0, 0, 20]),
            short_ttl: rng.pick(&[0, 0, 20]),
            acks: rng.pick(&[(100, 0), (70, 15), (30, 30)]),
        }
    }
}

/// Longer than any run, clock jumps included.
pub(crate) const AWAY_MS: u64 = 4 * 3_600_000;

/// What all subscriptions under a key have in common.
struct Policies(Vec<SubscriptionSpec>);

impl Policies {
    fn new(rng: &mut Rng) -> Self {
        let names = [
            ("P", "a", false),
            ("p", "B", false),
            ("Q", "a", false),
            (ANY_PRODUCER, "a", false),
            (ANY_PRODUCER, "a/+", true),
            ("P", "a/#", true),
            ("shop", "x-a", false),
            ("Shop-X", "TM-ALL", false),
            (ANY_PRODUCER, "tm-all", false),
        ];
        let specs = names.iter().map(|(producer, event, topic)| {
            let group = match rng.below(4) {
                0 => Some("g"),
                1 => Some("h"),
                _ => None,
            };
            SubscriptionSpec {
                producer: (*producer).into(),
                event: (*event).into(),
                all_events: event.eq_ignore_ascii_case("tm-all"),
                topic: *topic,
                durable: rng.percent(60),
                ack: rng.percent(60),
                ack_timeout_ms: rng.percent(70).then(|| 100 + rng.below(1_000)),
                retry: RetryPolicy {
                    max_attempts: rng.pick(&[1, 2, 3, 5]),
                    delay_ms: rng.below(500),
                    exponential: rng.percent(50),
                },
                group: group.map(Into::into),
                prefetch: rng.pick(&[None, Some(0), Some(1), Some(1), Some(2), Some(7)]),
            }
        });
        Self(specs.collect())
    }

    /// Some subscriptions; members of a group may differ in whether they are durable.
    fn choose(&self, rng: &mut Rng) -> Vec<SubscriptionSpec> {
        let mut chosen: Vec<SubscriptionSpec> = Vec::new();
        for _ in 0..1 + rng.index(3) {
            let mut spec = self.0[rng.index(self.0.len())].clone();
            if chosen
                .iter()
                .any(|it| it.event == spec.event && it.producer == spec.producer)
            {
                continue;
            }
            if spec.group.is_some() && rng.percent(25) {
                spec.durable = !spec.durable;
            }
            chosen.push(spec);
        }
        chosen
    }
}
