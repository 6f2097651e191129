//! Measures the broker beside other servers, in one run and turn by turn: on a shared machine only a ratio says anything.

mod report;
mod scenario;
mod subject;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::process;
use report::Results;
use scenario::{SCENARIOS, Scenario};
use subject::{Running, Subject};

/// Names the folder of the load generator when it is not at the usual place.
const FOLDER_VARIABLE: &str = "TYO_MQ_LOAD";

/// What the command line asks for.
struct Options {
    rounds: usize,
    only: Vec<String>,
    compare: Option<String>,
    peers: bool,
    json: PathBuf,
}

/// Runs every scenario against every subject, in turns, and prints medians, ranges and ratios.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let load = build_load()?;
    let subjects = subject::all(&load, options.compare.as_deref(), options.peers)?;
    let mut results = Results::new();
    for scenario in SCENARIOS.iter().filter(|scenario| options.wants(scenario)) {
        for round in 1..=options.rounds {
            for subject in subjects.iter().filter(|subject| subject.takes(scenario)) {
                let figures = measure(&load, subject, scenario)
                    .with_context(|| format!("{} against {}", scenario.id, subject.name))?;
                println!(
                    "{:<14} {:<10} round {round}: {}",
                    scenario.id,
                    subject.name,
                    figures.line()
                );
                results.add(scenario, &subject.name, figures);
            }
        }
    }
    if results.is_empty() {
        bail!(
            "no scenario of that name; there are: {}",
            SCENARIOS.map(|scenario| scenario.id).join(", ")
        );
    }
    println!("\n{}", results.table());
    std::fs::write(&options.json, results.json())
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    println!("written to {}", options.json.display());
    Ok(())
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let json = process::root().join("target/bench.json");
        let mut options = Self {
            rounds: 3,
            only: Vec::new(),
            compare: None,
            peers: false,
            json,
        };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--rounds" => {
                    options.rounds = value()?.parse().context("--rounds takes a number")?
                }
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--compare" => options.compare = Some(value()?.clone()),
                "--json" => options.json = value()?.into(),
                "--peers" => options.peers = true,
                other => bail!(
                    "unknown flag {other}; known: --rounds N, --only ID,…, --compare REVISION, --peers, --json FILE"
                ),
            }
        }
        Ok(options)
    }

    fn wants(&self, scenario: &Scenario) -> bool {
        self.only.is_empty() || self.only.iter().any(|id| scenario.id == id)
    }
}

/// Programs of the load generator.
struct Load {
    load: PathBuf,
    floor: PathBuf,
}

/// Builds the load generator and the floors in our own target folder.
fn build_load() -> Result<Load> {
    let folder = match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => PathBuf::from(folder),
        None => process::root().join("../shared/load"),
    };
    if !folder.join("Cargo.toml").is_file() {
        bail!(
            "the load generator is not in {}; {FOLDER_VARIABLE} may name another folder",
            folder.display()
        );
    }
    let target = process::root().join("target/load");
    for manifest in ["Cargo.toml", "peers/Cargo.toml"] {
        let mut cargo = process::cargo();
        cargo
            .args(["build", "--release", "--locked", "--manifest-path"])
            .arg(folder.join(manifest));
        process::run(cargo.arg("--target-dir").arg(&target))?;
    }
    Ok(Load {
        load: target.join("release/load"),
        floor: target.join("release/floor"),
    })
}

/// One run: a fresh server, one scenario, its figures.
fn measure(load: &Load, subject: &Subject, scenario: &Scenario) -> Result<report::Figures> {
    let running = Running::start(subject, scenario)?;
    let mut command = process::command(&load.load.display().to_string());
    command.args([
        "--addr",
        &running.addr(),
        "--pid",
        &running.pid().to_string(),
    ]);
    let output = process::capture(command.args(scenario.args))?;
    let last = output
        .lines()
        .last()
        .context("the load generator printed nothing")?;
    report::Figures::parse(last)
}
