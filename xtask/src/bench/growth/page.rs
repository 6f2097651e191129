//! What growth curves come to: tables, pictures, a page that shows them, and all runs as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::curve::Curve;
use super::picture::Picture;
use crate::bench::report::{Figures, Spread, short};

/// A curve with its runs: by server, by point.
pub(super) struct Drawn {
    curve: Curve,
    servers: Vec<(String, BTreeMap<u64, Vec<Figures>>)>,
}

impl Drawn {
    pub(super) fn new(curve: Curve) -> Self {
        Self {
            curve,
            servers: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, server: &str, point: u64, figures: Figures) {
        let place = self.servers.iter().position(|(name, _)| name == server);
        let place = place.unwrap_or_else(|| {
            self.servers.push((server.to_owned(), BTreeMap::new()));
            self.servers.len() - 1
        });
        self.servers[place]
            .1
            .entry(point)
            .or_default()
            .push(figures);
    }

    /// Medians by point, and how much they grow.
    pub(super) fn table(&self) -> String {
        let mut out = format!("| {} |", self.curve.axis);
        let points: Vec<u64> = self
            .servers
            .iter()
            .flat_map(|(_, runs)| runs.keys().copied())
            .collect();
        let points: std::collections::BTreeSet<u64> = points.into_iter().collect();
        for point in &points {
            let _ = write!(out, " {point} |");
        }
        let _ = writeln!(
            out,
            " {} |",
            if self.curve.is_workers() {
                "gain"
            } else {
                "most / least"
            }
        );
        out.push_str(&format!("|{}\n", "---|".repeat(points.len() + 2)));
        for (name, line) in self.lines() {
            let _ = write!(out, "| {name}, CPU µs |");
            for point in &points {
                let value = line.iter().find(|(x, _)| *x == *point as f64);
                let _ = write!(
                    out,
                    " {} |",
                    value.map_or_else(String::new, |(_, y)| short(*y))
                );
            }
            let _ = writeln!(out, " {} |", self.change(&line));
        }
        if self.curve.is_workers() {
            self.add_rates(&mut out);
        }
        out
    }

    /// How much more a core's worth of every worker carries, or how much the cost varies.
    fn change(&self, line: &[(f64, f64)]) -> String {
        let (Some(first), Some(last)) = (line.first(), line.last()) else {
            return String::new();
        };
        if self.curve.is_workers() {
            return times(last.0 / last.1, first.0 / first.1);
        }
        let values = || line.iter().map(|point| point.1);
        times(
            values().fold(0.0, f64::max),
            values().fold(f64::MAX, f64::min),
        )
    }

    fn add_rates(&self, out: &mut String) {
        for (server, runs) in &self.servers {
            let line = medians(runs, "done_per_s");
            let _ = write!(out, "| {server}, messages a second |");
            for (_, rate) in &line {
                let _ = write!(out, " {rate:.0} |");
            }
            let gain = match (line.first(), line.last()) {
                (Some(first), Some(last)) => times(last.1, first.1),
                _ => String::new(),
            };
            let _ = writeln!(out, " {gain} |");
        }
    }

    /// The lines of the picture.
    fn lines(&self) -> Vec<(String, Vec<(f64, f64)>)> {
        let mut lines = Vec::new();
        for (server, runs) in &self.servers {
            for (figure, name) in self.curve.figures {
                lines.push((format!("{server}, {name}"), medians(runs, figure)));
            }
        }
        lines
    }

    fn picture(&self) -> String {
        let picture = Picture {
            title: self.curve.title,
            across: self.curve.axis,
            up: "CPU µs of the server's process",
            lines: self.lines(),
        };
        picture.svg()
    }

    fn json(&self) -> Value {
        let servers = self.servers.iter().map(|(name, runs)| {
            let points = runs.iter().map(|(point, runs)| {
                let runs: Vec<Value> = runs.iter().map(Figures::json).collect();
                json!({ "point": point, "runs": runs })
            });
            json!({ "server": name, "points": points.collect::<Vec<_>>() })
        });
        json!({ "curve": self.curve.id, "axis": self.curve.axis, "servers": servers.collect::<Vec<_>>() })
    }
}

/// A ratio; nothing if what it is a ratio to was too small to be measured.
fn times(value: f64, of: f64) -> String {
    let ratio = value / of;
    if ratio.is_finite() {
        format!("{ratio:.2}x")
    } else {
        "–".to_owned()
    }
}

fn medians(runs: &BTreeMap<u64, Vec<Figures>>, figure: &str) -> Vec<(f64, f64)> {
    let median = |runs: &[Figures]| Spread::of(runs.iter().filter_map(|run| run.figure(figure)));
    let points = runs
        .iter()
        .filter_map(|(point, runs)| Some((*point as f64, median(runs)?.median())));
    points.collect()
}

/// Writes a picture for each curve, a page with all of them, and their runs.
pub(super) fn write(folder: &Path, drawn: &[Drawn]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut page = format!(
        "# How the cost of a message grows\n\nWritten by `cargo xtask bench --growth`, with {cores} cores for servers and load \
         generator together; medians.\n"
    );
    for curve in drawn {
        let (id, title) = (curve.curve.id, curve.curve.title);
        write(&format!("{id}.svg"), curve.picture())?;
        let _ = write!(
            page,
            "\n## {title}\n\n![{title}]({id}.svg)\n\n{}",
            curve.table()
        );
    }
    write("README.md", page)?;
    let all = Value::Array(drawn.iter().map(Drawn::json).collect());
    write("growth.json", format!("{all:#}\n"))?;
    println!("written to {}", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::CURVES;
    use super::*;

    fn drawn(id: &str, figures: &[(u64, &str)]) -> Drawn {
        let curve = CURVES.iter().find(|curve| curve.id == id).unwrap();
        let mut drawn = Drawn::new(*curve);
        for (point, line) in figures {
            drawn.add("ours", *point, Figures::parse(line).unwrap());
        }
        drawn
    }

    #[test]
    fn growth_is_the_most_by_the_least() {
        let cost = |cost: f64| format!("{{\"server_cpu_us_per_delivery\":{cost}}}");
        let drawn = drawn(
            "realms",
            &[(1, &cost(0.5)), (10, &cost(0.4)), (1, &cost(0.7))],
        );
        let table = drawn.table();
        assert!(
            table.contains("| ours, a delivery, CPU µs | 0.60 | 0.40 | 1.50x |"),
            "{table}"
        );
        assert!(drawn.picture().contains("ours, a delivery"));
    }

    #[test]
    fn nothing_is_no_ratio() {
        let cost = |cost: f64| format!("{{\"server_cpu_us_per_delivery\":{cost}}}");
        let table = drawn("realms", &[(1, &cost(0.0)), (10, &cost(0.4))]).table();
        assert!(table.contains("| 0.00 | 0.40 | – |"), "{table}");
    }

    #[test]
    fn workers_are_judged_by_what_they_carry() {
        let run = |cost: f64, rate: u32| {
            format!("{{\"server_cpu_us_per_delivery\":{cost},\"done_per_s\":{rate}}}")
        };
        let table = drawn("workers-pairs", &[(1, &run(0.8, 100)), (2, &run(1.0, 150))]).table();
        assert!(
            table.contains("| ours, a delivery, CPU µs | 0.80 | 1.00 | 1.60x |"),
            "{table}"
        );
        assert!(
            table.contains("| ours, messages a second | 100 | 150 | 1.50x |"),
            "{table}"
        );
    }
}
