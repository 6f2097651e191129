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
use scenario::Scenario;
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

/// How long one run may take; longer ones hang.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// One run: a fresh server, one scenario, its figures.
fn measure(
    generator: &Generator,
    subject: &Subject,
    scenario: &Scenario,
    quick: bool,
) -> Result<Figures> {
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
