//! Figures of single runs, and what they come to: medians, ranges, ratios.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::scenario::Scenario;

/// The figures of one run, as the load generator names them.
#[derive(Debug, Clone)]
pub(super) struct Figures(BTreeMap<String, f64>);

/// Figures worth a column, if a run has them. Less is better in all but the last group.
const COLUMNS: [(&str, &str); 15] = [
    ("server_cpu_us_per_delivery", "CPU µs/delivery"),
    ("p50_us", "p50 µs"),
    ("p99_us", "p99 µs"),
    ("enqueue_cpu_us_each", "CPU µs/enqueue"),
    ("replay_cpu_us_each", "CPU µs/replay"),
    ("first_ms", "first ms"),
    ("rss_kib_per_conn", "KiB/connection"),
    ("server_cpu_us_each", "CPU µs each"),
    ("rss_peak_kib", "peak RSS KiB"),
    ("done_per_s", "done/s"),
    ("mb_per_s", "MB/s"),
    ("handshakes_per_s", "handshakes/s"),
    ("syncs_per_s", "syncs/s"),
    ("enqueue_per_s", "enqueued/s"),
    ("replay_per_s", "replayed/s"),
];

/// Figures that the benches of others name in another way.
const SAME: [(&str, &str); 3] = [
    ("delivered_per_s", "done_per_s"),
    ("enqueue_cpu_us", "enqueue_cpu_us_each"),
    ("replay_cpu_us", "replay_cpu_us_each"),
];

/// Figures that must be 0.
const FAULTS: [&str; 8] = [
    "lost",
    "gaps",
    "late",
    "unparsed",
    "errors",
    "failed",
    "bad",
    "out_of_order",
];

impl Figures {
    pub(super) fn parse(line: &str) -> Result<Self> {
        let value: Value =
            serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))?;
        let fields = value.as_object().context("not an object")?;
        let mut figures: BTreeMap<String, f64> = fields
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
            .collect();
        for (theirs, ours) in SAME {
            if let Some(value) = figures.get(theirs).copied() {
                figures.entry(ours.to_owned()).or_insert(value);
            }
        }
        Ok(Self(figures))
    }

    pub(super) fn figure(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    pub(super) fn json(&self) -> Value {
        json!(self.0)
    }

    pub(super) fn line(&self) -> String {
        let shown = COLUMNS
            .iter()
            .filter_map(|(name, title)| Some(format!("{title} {}", short(*self.0.get(*name)?))));
        let faults = FAULTS.iter().filter_map(|name| {
            let count = *self.0.get(*name)?;
            (count > 0.0).then(|| format!("{name} {count} !"))
        });
        shown.chain(faults).collect::<Vec<_>>().join("  ")
    }
}

/// All runs, by scenario and subject in the order in which they came.
pub(super) struct Results {
    rows: Vec<(Scenario, Vec<Runs>)>,
}

/// The runs of one server.
type Runs = (String, Vec<Figures>);

impl Results {
    pub(super) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    pub(super) fn add(&mut self, scenario: &Scenario, subject: &str, figures: Figures) {
        if self
            .rows
            .last()
            .is_none_or(|(last, _)| last.id != scenario.id)
        {
            self.rows.push((*scenario, Vec::new()));
        }
        let Some((_, subjects)) = self.rows.last_mut() else {
            return;
        };
        match subjects.iter_mut().find(|(name, _)| name == subject) {
            Some((_, runs)) => runs.push(figures),
            None => subjects.push((subject.to_owned(), vec![figures])),
        }
    }

    /// A Markdown table: a line for each figure of a scenario, with the median, the range, and how much it is of ours.
    pub(super) fn table(&self) -> String {
        let mut out = String::from(
            "| scenario | figure | server | median | range | ours is |\n|---|---|---|---|---|---|\n",
        );
        for (scenario, subjects) in &self.rows {
            for (column, title) in COLUMNS {
                let of = |runs: &[Figures]| {
                    Spread::of(runs.iter().filter_map(|run| run.0.get(column).copied()))
                };
                let ours = subjects.first().and_then(|(_, runs)| of(runs));
                for (name, runs) in subjects {
                    let Some(spread) = of(runs) else {
                        continue;
                    };
                    let ratio = ours.as_ref().map(|ours| ours.median / spread.median);
                    let ratio = ratio.filter(|ratio| ratio.is_finite());
                    let ratio = ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}x"));
                    let range = format!("{}–{}", short(spread.least), short(spread.most));
                    let cells = [scenario.title, title, name, &short(spread.median), &range];
                    // Writing to a string cannot fail.
                    let _ = writeln!(out, "| {} | {ratio} |", cells.join(" | "));
                }
            }
        }
        out
    }

    pub(super) fn json(&self) -> String {
        let rows = self.rows.iter().map(|(scenario, subjects)| {
            let subjects = subjects.iter().map(|(name, runs)| {
                let runs: Vec<Value> = runs.iter().map(Figures::json).collect();
                json!({ "server": name, "runs": runs })
            });
            json!({ "scenario": scenario.id, "args": scenario.args, "subjects": subjects.collect::<Vec<_>>() })
        });
        let mut text = format!("{:#}", Value::Array(rows.collect()));
        text.push('\n');
        text
    }
}

/// The least, the middle and the most of some values.
pub(super) struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    pub(super) fn median(&self) -> f64 {
        self.median
    }

    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self {
            least,
            median: f64::midpoint(low, high),
            most,
        })
    }
}

/// Three significant digits, or the whole number.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario::SCENARIOS;

    #[test]
    fn medians_ranges_and_ratios_come_out() {
        let run = |cpu: f64| {
            Figures::parse(
                &json!({ "server_cpu_us_per_delivery": cpu, "lost": 0, "x": "y" }).to_string(),
            )
            .unwrap()
        };
        let mut results = Results::new();
        for (subject, cpu) in [
            ("ours", 1.0),
            ("floor", 0.5),
            ("ours", 3.0),
            ("floor", 0.5),
            ("ours", 2.0),
        ] {
            results.add(&SCENARIOS[0], subject, run(cpu));
        }
        let table = results.table();
        assert!(
            table.contains("| 1 → 1, 64 B | CPU µs/delivery | ours | 2.00 | 1.00–3.00 | 1.00x |"),
            "{table}"
        );
        assert!(
            table.contains("| floor | 0.50 | 0.50–0.50 | 4.00x |"),
            "{table}"
        );
    }

    #[test]
    fn figures_of_others_get_our_names() {
        let line = r#"{"delivered_per_s":5,"replay_cpu_us":2.5}"#;
        let figures = Figures::parse(line).unwrap();
        assert_eq!(figures.line(), "CPU µs/replay 2.50  done/s 5.00");
        let ours = Figures::parse(r#"{"delivered_per_s":9,"done_per_s":8}"#).unwrap();
        assert_eq!(ours.line(), "done/s 8.00");
    }

    #[test]
    fn faults_are_shown() {
        let figures = Figures::parse(r#"{"done_per_s":123.4,"lost":2,"gaps":0}"#).unwrap();
        assert_eq!(figures.line(), "done/s 123  lost 2 !");
    }
}
