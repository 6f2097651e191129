//! What is counted, as text for Prometheus. Only series that are not zero are shown.
//!
//! The engine counts messages, each shard for itself; here is counted what no engine sees. Names that clients choose
//! are labels only as far as the engine gives them a place of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus::core::Collector;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, TextEncoder};
use tyo_mq_core::engine::{Counters, EventCounts, Tally};
use tyo_mq_core::runtime::Broker;

use crate::limits::{Limit, OverLimit};

/// Counts of one server.
pub(crate) struct Metrics {
    connections: IntCounter,
    live: IntGauge,
    rate_limited: IntCounterVec,
    auth_failures: IntCounterVec,
}

/// A connection that counts as long as this is kept.
#[derive(Debug)]
pub(crate) struct Live(IntGauge);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        const GOOD: &str = "the names are good";
        let vec = |name, label| IntCounterVec::new(Opts::new(name, name), &[label]).expect(GOOD);
        Self {
            connections: IntCounter::new(CONNECTIONS, CONNECTIONS).expect(GOOD),
            live: IntGauge::new(LIVE, LIVE).expect(GOOD),
            rate_limited: vec(RATE_LIMITED, "reason"),
            auth_failures: vec(AUTH_FAILURES, "code"),
        }
    }
}

impl Metrics {
    /// A client's connection, of whatever namespace, until the guard is dropped.
    pub(crate) fn connected(&self) -> Live {
        self.live.inc();
        Live(self.live.clone())
    }

    /// A client joined the main namespace, or was turned away there.
    pub(crate) fn joined(&self) {
        self.connections.inc();
    }

    /// Something was refused for a limit, whether the client was told or not.
    pub(crate) fn rate_limited(&self, over: &OverLimit) {
        self.count_refusal(over.reason);
    }

    /// One request for admission too many waits.
    pub(crate) fn too_many_requests(&self) {
        self.count_refusal(Limit::MAX_PENDING_AUTHORIZATION_REQUESTS.0);
    }

    fn count_refusal(&self, reason: &str) {
        self.rate_limited.with_label_values(&[reason]).inc();
    }

    /// A client or an HTTP request was refused with this code.
    pub(crate) fn auth_failed(&self, code: u16) {
        let code = code.to_string();
        self.auth_failures.with_label_values(&[code.as_str()]).inc();
    }

    /// Connections that are open.
    pub(crate) fn connections_current(&self) -> u64 {
        u64::try_from(self.live.get()).unwrap_or(0)
    }

    /// All of it. Counters come by name, gauges behind them.
    pub(crate) fn text(&self, broker: &Broker) -> String {
        let tallies = broker.tallies();
        let mut families = self.own(&broker.counters());
        families.extend(by_realm(&tallies));
        families.push(by_event(PRODUCED, &tallies, |tally| &tally.produced));
        families.push(by_event(DELIVERED, &tallies, |tally| &tally.delivered));
        families.retain(|family| !family.get_metric().is_empty());
        families.sort_by(|left, right| left.name().cmp(right.name()));
        let usage = broker.usage();
        families.push(gauge(IN_FLIGHT, usage.in_flight as u64));
        families.push(gauge(STORED, usage.stored));
        families.push(gauge(LIVE, self.connections_current()));
        let text = TextEncoder::new().encode_to_string(&families);
        text.expect("every family has a name and a series")
    }

    /// Counters of the server itself.
    fn own(&self, counters: &Counters) -> Vec<MetricFamily> {
        let mut refused = self.rate_limited.collect();
        let queue = (counters.over_quota > 0).then(|| {
            let reason = Limit::MAX_QUEUED_PER_REALM.0;
            counted(&[("reason", reason)], counters.over_quota)
        });
        for family in &mut refused {
            let mut series = family.take_metric();
            series.extend(queue.clone());
            series.sort_by(|left, right| first_label(left).cmp(first_label(right)));
            family.set_metric(series);
        }
        let connections = self.connections.collect();
        let connections = connections
            .into_iter()
            .filter(|_| self.connections.get() > 0);
        let all = connections
            .chain(refused)
            .chain(self.auth_failures.collect());
        all.map(|mut family| {
            family.set_help(String::new());
            family
        })
        .collect()
    }
}

type Tallies = BTreeMap<Arc<str>, Tally>;

/// Names of series, in one place for the documents' test.
const CONNECTIONS: &str = "tyo_mq_connections_total";
const LIVE: &str = "tyo_mq_connections_current";
const RATE_LIMITED: &str = "tyo_mq_rate_limited_total";
const AUTH_FAILURES: &str = "tyo_mq_auth_failures_total";
const PRODUCED: &str = "tyo_mq_messages_produced_total";
const DELIVERED: &str = "tyo_mq_messages_delivered_total";
const IN_FLIGHT: &str = "tyo_mq_deliveries_in_flight";
const STORED: &str = "tyo_mq_messages_stored";

/// Which of the engine's counts.
type CountOf = fn(&Counters) -> u64;

/// What the engine counts, by realm.
const BY_REALM: [(&str, CountOf); 6] = [
    ("tyo_mq_ack_timeout_total", |it| it.ack_timeouts),
    ("tyo_mq_messages_dlq_total", |it| it.dead_lettered),
    ("tyo_mq_messages_dropped_total", |it| it.dropped),
    ("tyo_mq_messages_expired_total", |it| it.expired),
    ("tyo_mq_messages_queued_total", |it| it.queued),
    ("tyo_mq_store_failures_total", |it| it.store_failures),
];

fn by_realm(tallies: &Tallies) -> impl Iterator<Item = MetricFamily> {
    BY_REALM.into_iter().map(|(name, count)| {
        let counts = tallies
            .iter()
            .map(|(realm, tally)| (realm, count(&tally.counters)));
        let series = counts
            .filter(|(_, count)| *count > 0)
            .map(|(realm, count)| counted(&[("realm", realm)], count));
        counters(name, series.collect())
    })
}

fn by_event(name: &str, tallies: &Tallies, of: fn(&Tally) -> &EventCounts) -> MetricFamily {
    let mut series = Vec::new();
    for (realm, tally) in tallies {
        for (event, count) in of(tally).iter().filter(|(_, count)| *count > 0) {
            series.push(counted(&[("event", event), ("realm", realm)], count));
        }
    }
    counters(name, series)
}

fn counters(name: &str, series: Vec<Metric>) -> MetricFamily {
    family(name, MetricType::COUNTER, series)
}

fn gauge(name: &str, value: u64) -> MetricFamily {
    let mut gauge = Gauge::default();
    gauge.set_value(value as f64);
    family(name, MetricType::GAUGE, vec![Metric::from_gauge(gauge)])
}

fn family(name: &str, kind: MetricType, series: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_field_type(kind);
    family.set_metric(series);
    family
}

/// A series; the labels are in order.
fn counted(labels: &[(&str, &str)], count: u64) -> Metric {
    let labels = labels.iter().map(|(name, value)| {
        let mut label = LabelPair::default();
        label.set_name((*name).to_owned());
        label.set_value((*value).to_owned());
        label
    });
    let mut counter = Counter::default();
    counter.set_value(count as f64);
    let mut metric = Metric::from_label(labels.collect());
    metric.set_counter(counter);
    metric
}

fn first_label(metric: &Metric) -> &str {
    metric.get_label().first().map_or("", LabelPair::value)
}

#[cfg(test)]
mod tests {
    use tyo_mq_core::memory_store::MemoryStore;
    use tyo_mq_core::runtime::RuntimeConfig;

    use super::*;

    /// What operators read.
    const DOCUMENT: &str = include_str!("../../../docs/OPERATIONS.md");

    #[tokio::test]
    async fn what_is_not_counted_is_not_shown() {
        let broker = Broker::start(RuntimeConfig::default(), Arc::new(MemoryStore::default()));
        let broker = broker.await.unwrap();
        let metrics = Metrics::default();
        let text = metrics.text(&broker);
        assert!(
            !text.contains("# HELP") && !text.contains("counter"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "# TYPE tyo_mq_connections_current gauge\ntyo_mq_connections_current 0\n"
            )
        );
        let live = [metrics.connected(), metrics.connected()];
        metrics.joined();
        metrics.auth_failed(401);
        metrics.auth_failed(401);
        let over = |limit: Limit| OverLimit {
            reason: limit.0,
            retry_after_secs: 1,
        };
        metrics.rate_limited(&over(Limit::MESSAGES_PER_SECOND));
        metrics.rate_limited(&over(Limit::BYTES_PER_SECOND));
        let expected = "# TYPE tyo_mq_auth_failures_total counter\n\
            tyo_mq_auth_failures_total{code=\"401\"} 2\n\
            # TYPE tyo_mq_connections_total counter\n\
            tyo_mq_connections_total 1\n\
            # TYPE tyo_mq_rate_limited_total counter\n\
            tyo_mq_rate_limited_total{reason=\"bytes_per_second\"} 1\n\
            tyo_mq_rate_limited_total{reason=\"messages_per_second\"} 1\n";
        let text = metrics.text(&broker);
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("tyo_mq_connections_current 2\n"), "{text}");
        drop(live);
        assert_eq!(metrics.connections_current(), 0);
    }

    #[test]
    fn names_in_labels_break_no_line() {
        let mut tallies = Tallies::new();
        let mut tally = Tally::default();
        tally.counters.queued = 3;
        tallies.insert("a\"b\\c\nd".into(), tally);
        let families: Vec<_> = by_realm(&tallies)
            .filter(|family| !family.get_metric().is_empty())
            .collect();
        assert_eq!(
            TextEncoder::new().encode_to_string(&families).unwrap(),
            "# TYPE tyo_mq_messages_queued_total counter\n\
             tyo_mq_messages_queued_total{realm=\"a\\\"b\\\\c\\nd\"} 3\n"
        );
    }

    #[test]
    fn every_series_is_documented() {
        let names = [
            CONNECTIONS,
            LIVE,
            RATE_LIMITED,
            AUTH_FAILURES,
            PRODUCED,
            DELIVERED,
            IN_FLIGHT,
            STORED,
        ];
        let names = names.into_iter().chain(BY_REALM.map(|(name, _)| name));
        let missing: Vec<_> = names.filter(|name| !DOCUMENT.contains(name)).collect();
        assert!(missing.is_empty(), "docs/OPERATIONS.md lacks {missing:?}");
    }
}
