//! Everything that must hold before a change lands, in steps that can be chosen.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::process::{self, cargo};
use crate::{cases, conformance, rounds as kill_rounds, tidy};

/// Seconds that each fuzz target runs.
const FUZZ_SECONDS: u32 = 10;

/// cargo-fuzz, which needs the nightly toolchain.
const NIGHTLY_FUZZ: [&str; 4] = ["run", "nightly", "cargo", "fuzz"];

/// A step: its name, what it is for, what it does.
struct Step {
    name: &'static str,
    about: &'static str,
    action: fn() -> Result<Outcome>,
}

/// How a step that did not fail ended.
enum Outcome {
    Passed,
    /// What was not checked, and why.
    Skipped(String),
}

const STEPS: [Step; 10] = [
    Step {
        name: "fmt",
        about: "the layout of the source",
        action: fmt,
    },
    Step {
        name: "tidy",
        about: "our own rules",
        action: tidy,
    },
    Step {
        name: "clippy",
        about: "lints, on all targets",
        action: clippy,
    },
    Step {
        name: "test",
        about: "unit, property and integration tests",
        action: test,
    },
    Step {
        name: "doc",
        about: "the documentation builds without a warning",
        action: doc,
    },
    Step {
        name: "deny",
        about: "advisories and sources of dependencies",
        action: deny,
    },
    Step {
        name: "fuzz",
        about: "each fuzz target for a few seconds",
        action: fuzz,
    },
    Step {
        name: "conformance",
        about: "real clients and protocol suites",
        action: conformance,
    },
    Step {
        name: "cases",
        about: "the black-box case collection",
        action: cases,
    },
    Step {
        name: "rounds",
        about: "kill -9 under load, a few rounds",
        action: rounds,
    },
];

/// Runs the chosen steps, all of them even after one failed, and sums up.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let chosen = choose(args)?;
    let mut results = Vec::new();
    for step in STEPS.iter().filter(|step| chosen.contains(&step.name)) {
        println!("\n=== {}: {}", step.name, step.about);
        let started = Instant::now();
        let result = (step.action)();
        match &result {
            Ok(Outcome::Passed) => {}
            Ok(Outcome::Skipped(why)) => println!("!!! {} SKIPPED: {why}", step.name),
            Err(err) => println!("!!! {} FAILED: {err:#}", step.name),
        }
        results.push((step.name, result, started.elapsed()));
    }
    summarise(&results)
}

fn summarise(results: &[(&str, Result<Outcome>, Duration)]) -> Result<()> {
    println!("\n=== summary");
    let mut failed = Vec::new();
    for (name, result, took) in results {
        let verdict = match result {
            Ok(Outcome::Passed) => "passed".to_owned(),
            Ok(Outcome::Skipped(why)) => format!("SKIPPED — {why}"),
            Err(_) => "FAILED".to_owned(),
        };
        println!("{name:<12} {:>7.1} s  {verdict}", took.as_secs_f64());
        if result.is_err() {
            failed.push(*name);
        }
    }
    let skipped = results
        .iter()
        .filter(|(_, result, _)| matches!(result, Ok(Outcome::Skipped(_))))
        .count();
    let passed = results.len() - skipped - failed.len();
    println!(
        "{passed} passed, {} failed, {skipped} skipped",
        failed.len()
    );
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Names of the steps that the flags leave, in order.
fn choose(args: &[String]) -> Result<Vec<&'static str>> {
    let mut chosen: Vec<&'static str> = STEPS.iter().map(|step| step.name).collect();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (flag, list) = match arg.split_once('=') {
            Some((flag, list)) => (flag, list),
            None => (arg.as_str(), args.next().map_or("", String::as_str)),
        };
        let named = names(list)?;
        match flag {
            "--only" => chosen.retain(|name| named.contains(name)),
            "--skip" => chosen.retain(|name| !named.contains(name)),
            _ => bail!("no flag `{flag}`; there are --only and --skip"),
        }
    }
    Ok(chosen)
}

fn names(list: &str) -> Result<Vec<&'static str>> {
    let find = |wanted: &str| {
        STEPS
            .iter()
            .map(|step| step.name)
            .find(|name| *name == wanted)
    };
    list.split(',')
        .map(|wanted| match find(wanted) {
            Some(name) => Ok(name),
            None => bail!(
                "no step `{wanted}`; there are {}",
                STEPS.map(|step| step.name).join(", ")
            ),
        })
        .collect()
}

fn fmt() -> Result<Outcome> {
    process::run(cargo().args(["fmt", "--all", "--check"]))?;
    Ok(Outcome::Passed)
}

fn tidy() -> Result<Outcome> {
    tidy::run()?;
    Ok(Outcome::Passed)
}

fn clippy() -> Result<Outcome> {
    process::run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    let engine_alone = [
        "clippy",
        "-p",
        "tyo-mq-core",
        "--no-default-features",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    process::run(cargo().args(engine_alone))?;
    Ok(Outcome::Passed)
}

fn test() -> Result<Outcome> {
    process::run(cargo().args(["test", "--workspace"]))?;
    Ok(Outcome::Passed)
}

fn doc() -> Result<Outcome> {
    process::run(cargo().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--workspace",
        "--no-deps",
    ]))?;
    Ok(Outcome::Passed)
}

fn deny() -> Result<Outcome> {
    if !process::is_available("cargo", &["deny", "--version"]) {
        let why = "cargo-deny is not installed, so ADVISORIES WERE NOT CHECKED (tidy checks licences and duplicates)";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    process::run(cargo().args(["deny", "check"]))?;
    Ok(Outcome::Passed)
}

fn fuzz() -> Result<Outcome> {
    if !process::root().join("fuzz/Cargo.toml").is_file() {
        return Ok(Outcome::Skipped("there are no fuzz targets yet".to_owned()));
    }
    if !process::is_available("rustup", &[&NIGHTLY_FUZZ[..], &["--version"]].concat()) {
        let why = "cargo-fuzz or the nightly toolchain is not installed, so NO FUZZ TARGET RAN";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let targets = process::capture(process::command("rustup").args(NIGHTLY_FUZZ).arg("list"))?;
    for target in targets.lines() {
        let limit = format!("-max_total_time={FUZZ_SECONDS}");
        process::run(
            process::command("rustup")
                .args(NIGHTLY_FUZZ)
                .args(["run", target, "--", &limit]),
        )?;
    }
    Ok(Outcome::Passed)
}

fn rounds() -> Result<Outcome> {
    kill_rounds::smoke(SMOKE_ROUNDS)?;
    Ok(Outcome::Passed)
}

/// Rounds of each run; many more are for `cargo xtask rounds`.
const SMOKE_ROUNDS: u64 = 3;

fn conformance() -> Result<Outcome> {
    if !process::root().join(conformance::RUNNER).is_file() {
        return Ok(Outcome::Skipped(format!(
            "{} is not there, so NO CLIENT WAS TRIED",
            conformance::RUNNER
        )));
    }
    conformance::run(&[])?;
    Ok(Outcome::Passed)
}

fn cases() -> Result<Outcome> {
    if let Err(missing) = cases::locate() {
        return Ok(Outcome::Skipped(missing));
    }
    cases::run(&[])?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: &[&str]) {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(choose(&args).unwrap(), expected);
    }

    #[test]
    fn flags_choose_steps_in_their_own_order() {
        check(&["--only", "test,fmt"], &["fmt", "test"]);
        check(&["--only=doc"], &["doc"]);
        check(&["--only", "fmt,doc", "--skip", "doc"], &["fmt"]);
        check(
            &["--skip", "fuzz,conformance,cases,deny,rounds"],
            &["fmt", "tidy", "clippy", "test", "doc"],
        );
    }

    #[test]
    fn unknown_flags_and_steps_are_refused() {
        assert!(choose(&["--only".to_owned(), "tests".to_owned()]).is_err());
        assert!(choose(&["--only".to_owned()]).is_err());
        assert!(choose(&["--fast".to_owned(), "fmt".to_owned()]).is_err());
    }

    #[test]
    fn one_failed_step_fails_the_run() {
        let passed = || ("fmt", Ok(Outcome::Passed), Duration::ZERO);
        let skipped = (
            "fuzz",
            Ok(Outcome::Skipped("why".to_owned())),
            Duration::ZERO,
        );
        assert!(summarise(&[passed(), skipped]).is_ok());
        let failed = ("test", Err(anyhow::anyhow!("why")), Duration::ZERO);
        assert_eq!(
            summarise(&[passed(), failed]).unwrap_err().to_string(),
            "failed: test"
        );
    }
}
