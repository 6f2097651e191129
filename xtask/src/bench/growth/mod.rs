//! How the cost of a message grows with what else is there: measured step by step, drawn as pictures.

mod background;
mod curve;
mod page;
mod picture;

use anyhow::{Context, Result, bail};

use super::generator::Generator;
use super::options::Options;
use super::report::Figures;
use super::scenario::Store;
use super::subject::{self, Running, Subject};
use crate::process;
use background::Background;
pub(super) use curve::CURVES;
use curve::{Curve, Kind};
use page::Drawn;

/// Measures each curve, and writes pictures, a page and all runs.
pub(super) fn run(options: &Options) -> Result<()> {
    let study = Study {
        generator: Generator::build()?,
        open_files: open_file_limit()?,
        rounds: options.rounds,
        quick: options.quick,
    };
    let subjects = subject::all(&study.generator, options.compare.as_deref(), false)?;
    let mut drawn = Vec::new();
    let mut failed = 0;
    for curve in CURVES.iter().filter(|curve| options.wants(curve.id)) {
        let takes = |subject: &&Subject| curve.floor || !subject.is_floor();
        let subjects: Vec<&Subject> = subjects.iter().filter(takes).collect();
        let mut lines = Drawn::new(*curve);
        failed += study.draw(curve, &subjects, &mut lines);
        println!("\n{}", lines.table());
        drawn.push(lines);
    }
    page::write(&options.pictures(), &drawn)?;
    if failed > 0 {
        bail!("{failed} runs failed");
    }
    Ok(())
}

/// What holds for all curves.
struct Study {
    generator: Generator,
    /// What a process may have open.
    open_files: u64,
    rounds: usize,
    quick: bool,
}

impl Study {
    /// Measures at every point, the subjects in turns; returns how many runs failed.
    fn draw(&self, curve: &Curve, subjects: &[&Subject], lines: &mut Drawn) -> usize {
        let mut failed = 0;
        for &point in curve.points(self.quick) {
            if curve.open_files(point) > self.open_files {
                let allowed = self.open_files;
                println!(
                    "{} {point}: left out, only {allowed} files may be open",
                    curve.id
                );
                continue;
            }
            for round in 1..=self.rounds {
                for subject in subjects {
                    let name = format!(
                        "{:<16} {point:>7} {:<8} round {round}",
                        curve.id, subject.name
                    );
                    match self.measure(subject, curve, point) {
                        Ok(figures) => {
                            println!("{name}: {}", figures.line());
                            lines.add(&subject.name, point, figures);
                        }
                        Err(error) => {
                            println!("{name}: failed: {error:#}");
                            failed += 1;
                        }
                    }
                }
            }
        }
        failed
    }

    /// One run: a fresh server, what is there besides, one flow.
    fn measure(&self, subject: &Subject, curve: &Curve, point: u64) -> Result<Figures> {
        let server = Running::start(subject, Store::Memory, curve.settings(point))?;
        let _background = Background::start(&self.generator, &server, curve, point)?;
        let mut command = process::command(&self.generator.load.display().to_string());
        command.args(curve.load(point));
        if self.quick && curve.kind != Kind::Backlog {
            command.args(["--duration", "1"]);
        }
        let pid = server.pid().to_string();
        command.args(["--addr", &server.addr(), "--pid", &pid]);
        let output = process::capture_within(&mut command, super::RUN_LIMIT)?;
        let last = output.lines().last();
        Figures::parse(last.context("the load generator printed nothing")?)
    }
}

/// How many files a process of ours may raise its limit to.
fn open_file_limit() -> Result<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").context("this needs Linux")?;
    hard_limit(&limits).context("no limit of open files in /proc/self/limits")
}

fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))?;
    match line.split_whitespace().nth(4)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_is_read() {
        let check = |text: &str, expected| assert_eq!(hard_limit(text), expected);
        check("Max open files   1024   20000   files", Some(20_000));
        check("Max open files   1024   unlimited   files", Some(u64::MAX));
        check("Max processes   1   2   processes", None);
    }
}
