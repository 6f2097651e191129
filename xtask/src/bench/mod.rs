//! Measures the broker beside other servers, in one run and turn by turn: on a shared machine only a ratio says anything.

mod generator;
mod growth;
mod options;
mod peer;
mod report;
mod scenario;
mod subject;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Map;

use crate::process;
use generator::Generator;
use options::Options;
use report::{Figures, Results};
use scenario::{Scenario, Store};
use subject::{Running, Subject};

/// Runs every scenario against every subject, in turns, and prints medians, ranges and ratios.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let Some(options) = Options::parse(args)? else {
        return Ok(());
    };
    if options.growth {
        return growth::run(&options);
    }
    let generator = Generator::build()?;
    let subjects = subject::all(&generator, options.compare.as_deref(), options.peers)?;
    let mut results = Results::new();
    let mut failed = 0;
    for scenario in options.scenarios() {
        if let Some(missing) = lacks(scenario) {
            println!("{:<15} left out: {missing:#}", scenario.id);
            continue;
        }
        for round in 1..=options.rounds {
            for subject in subjects.iter().filter(|subject| subject.takes(scenario)) {
                let name = format!("{:<15} {:<16} round {round}", scenario.id, subject.name);
                match measure(&generator, subject, scenario, options.quick) {
                    Ok(figures) => {
                        println!("{name}: {}", figures.line());
                        results.add(scenario, &subject.name, figures);
                    }
                    Err(error) => {
                        println!("{name}: failed: {error:#}");
                        failed += 1;
                    }
                }
            }
        }
    }
    println!("\n{}", results.table());
    std::fs::write(&options.json, results.json())
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    println!("written to {}", options.json.display());
    if failed > 0 {
        bail!("{failed} runs failed");
    }
    Ok(())
}

/// What is missing on this machine for our broker to take part.
fn lacks(scenario: &Scenario) -> Option<anyhow::Error> {
    let needs_redis = scenario.store == Store::Redis;
    needs_redis
        .then(|| peer::find("redis-server").err())
        .flatten()
}

/// How long one run may take; longer ones hang.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// One run: a fresh server, one scenario, its figures.
fn measure(
    generator: &Generator,
    subject: &Subject,
    scenario: &Scenario,
    quick: bool,
) -> Result<Figures> {
    if subject.is_disk() {
        return measure_disk(generator);
    }
    let running = Running::start(subject, scenario.store, Map::new())?;
    let (program, args) = subject.load(generator, scenario, quick)?;
    let mut command = process::command(&program.display().to_string());
    command.args(args);
    let pid = running.pid().to_string();
    command.args(["--addr", &running.addr(), "--pid", &pid]);
    let limit = if quick { RUN_LIMIT / 4 } else { RUN_LIMIT };
    let output = process::capture_within(&mut command, limit)?;
    let last = output
        .lines()
        .last()
        .context("the load generator printed nothing")?;
    Figures::parse(last)
}

/// Blocks of 4 KiB appended and synced one by one, where servers have their files.
fn measure_disk(generator: &Generator) -> Result<Figures> {
    let mut command = process::command(&generator.peer.display().to_string());
    let folder = subject::fresh_folder(0);
    command.args(["fsync", "--dir"]).arg(folder);
    let output = process::capture_within(&mut command, RUN_LIMIT)?;
    let line = output.lines().find(|line| line.contains("\"block\":4096,"));
    Figures::parse(line.context("no figure for blocks of 4 KiB")?)
}
