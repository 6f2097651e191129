//! Rounds of the real broker with real stores: killed under load, or the store pulled from under it. Chooses, counts, sums up.
//!
//! A process that is killed leaves what it wrote to the operating system; only a power failure takes that. So these rounds
//! show that nothing is confirmed before it is written, and nothing about what a disk does.

mod backlog;
mod broker;
mod consumer;
mod damage;
mod drain;
mod folder;
mod handover;
mod kill;
mod ledger;
mod load;
mod options;
mod random;
mod redis;
mod rug;
mod rugs;
mod stage;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::conformance;
use ledger::Tally;
use options::{Options, Scenario};
use random::Random;
use rugs::{FullDisk, Locked, RedisRug, SMALL_DISK_BYTES};
use stage::Stage;
pub(crate) use stage::Store;

/// Runs what the arguments say.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let broker = match &options.broker {
        Some(path) => path.canonicalize()?,
        None => conformance::build_broker()?,
    };
    run_rounds(&broker, &options)
}

/// A few rounds of one scenario: that a kill loses nothing on SQLite.
pub(crate) fn smoke(rounds: u64) -> Result<()> {
    let options = Options {
        store: Store::Sqlite,
        scenarios: vec![Scenario::Kill],
        rounds: Some(rounds),
        seed: Random::fresh_seed(),
        broker: None,
    };
    run_rounds(&conformance::build_broker()?, &options)
}

/// What a scenario's rounds came to.
#[derive(Debug, Default)]
struct Summary {
    passed: u64,
    failed: u64,
    slowest_start: Duration,
    tally: Tally,
}

fn run_rounds(broker: &Path, options: &Options) -> Result<()> {
    let mut summaries = Vec::new();
    for &scenario in &options.scenarios {
        let mut summary = Summary::default();
        for round in 0..options.rounds.unwrap_or(scenario.rounds()) {
            let seed = options.seed.wrapping_add(round);
            run_round(broker, options.store, scenario, seed, &mut summary);
        }
        summaries.push((scenario, summary));
    }
    println!();
    let (mut passed, mut failed) = (0, 0);
    for (scenario, summary) in &summaries {
        let store = options.store.name();
        println!(
            "{} on {store}: {} of {} rounds passed; {}; slowest start {} ms",
            scenario.name(),
            summary.passed,
            summary.passed + summary.failed,
            summary.tally,
            summary.slowest_start.as_millis()
        );
        passed += summary.passed;
        failed += summary.failed;
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 {
        bail!("{failed} rounds failed");
    }
    Ok(())
}

fn run_round(broker: &Path, store: Store, scenario: Scenario, seed: u64, summary: &mut Summary) {
    let began = Instant::now();
    let name = format!("{} on {}, seed {seed}", scenario.name(), store.name());
    let (mut stage, outcome) = match set_up(broker, store, scenario) {
        Ok(mut stage) => {
            let outcome = play(&mut stage, scenario, seed);
            (Some(stage), outcome)
        }
        Err(error) => (None, Err(error)),
    };
    let mut problems = match outcome {
        Ok(mut tally) => {
            println!("{name}: {tally} ({:.1} s)", began.elapsed().as_secs_f32());
            let problems = std::mem::take(&mut tally.problems);
            summary.tally += tally;
            problems
        }
        Err(error) => {
            println!("{name}: cannot be finished");
            vec![format!("{error:#}")]
        }
    };
    if let Some(stage) = &stage {
        problems.extend(stage.panics());
        summary.slowest_start = summary.slowest_start.max(stage.slowest_start());
    }
    if problems.is_empty() {
        summary.passed += 1;
        return;
    }
    summary.failed += 1;
    for problem in problems {
        println!("    FAILED: {problem}");
    }
    if let Some(stage) = stage.take() {
        println!("    its files: {}", stage.keep().display());
    }
}

fn set_up(broker: &Path, store: Store, scenario: Scenario) -> Result<Stage> {
    match scenario {
        Scenario::FullDisk => Stage::on_small_disk(broker, store, SMALL_DISK_BYTES),
        _ => Stage::new(broker, store),
    }
}

fn play(stage: &mut Stage, scenario: Scenario, seed: u64) -> Result<Tally> {
    let random = &mut Random::new(seed);
    match scenario {
        Scenario::Kill => kill::round(stage, random),
        Scenario::Worker => handover::round(stage, random),
        Scenario::Backlog => backlog::round(stage),
        Scenario::Locked => {
            let mut lock = Locked::new(random.percent(50));
            rug::round(stage, random, &mut lock)
        }
        Scenario::FullDisk => rug::round(stage, random, &mut FullDisk),
        Scenario::Corrupt => damage::round(stage, random),
        Scenario::RedisKill => rug::round(stage, random, &mut RedisRug::Killed),
        Scenario::RedisRestart => rug::round(stage, random, &mut RedisRug::Restarted),
        Scenario::RedisReadOnly => rug::round(stage, random, &mut RedisRug::ReadOnly),
        Scenario::RedisOutOfMemory => rug::round(stage, random, &mut RedisRug::OutOfMemory),
    }
}
