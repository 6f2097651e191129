//! The project's own commands: picks one and runs it, nothing else.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool"
)]

mod bench;
mod cases;
mod ci;
mod client;
mod conformance;
mod instructions;
mod metadata;
mod process;
mod revision;
mod rounds;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [--only STEP,…] [--skip STEP,…]   everything that must hold before a change lands
  tidy                                 the rules that no compiler knows: direction, purity, lengths, licences, docs
  conformance [ARGS]                   real clients and the protocol suites against a release build
  cases [--all] [ARGS]                 the black-box case collection against a release build
  rounds [ARGS]                        kill -9 and stores that fail under a release build: nothing confirmed is lost
  bench [--only ID,…] [--compare REV]  the load scenarios against a release build, beside the floors and other brokers
  instructions [--compare REV]         instructions for each operation, which do not change with the machine's load";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("xtask: {err:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    match args.split_first() {
        Some((name, rest)) => match name.as_str() {
            "ci" => ci::run(rest),
            "tidy" => tidy::run(),
            "conformance" => conformance::run(rest),
            "cases" => cases::run(rest),
            "rounds" => rounds::run(rest),
            "bench" => bench::run(rest),
            "instructions" => instructions::run(rest),
            "help" | "--help" | "-h" => {
                println!("{USAGE}");
                Ok(())
            }
            other => bail!("no command `{other}`\n{USAGE}"),
        },
        None => bail!("which command?\n{USAGE}"),
    }
}
