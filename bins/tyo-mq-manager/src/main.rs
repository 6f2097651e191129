//! Administers a tyo-mq broker: commands for scripts and people, and a menu.
#![forbid(unsafe_code)]

mod app;
mod call;
mod cli;
mod commands;
mod context_file;
mod env;
mod exit;
mod http_get;
mod menu;
mod output;
mod prompt;
mod target;
mod time;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use cli::Cli;
use exit::Failure;
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse_from(with_help(std::env::args_os().collect()));
    let output = Output {
        json: cli.global.json,
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Local(format!("cannot start: {error}")))?;
    runtime.block_on(commands::run(cli))
}

/// `-h` is the broker's host, as it always was. With nothing behind it that could be one, help is meant.
fn with_help(mut args: Vec<OsString>) -> Vec<OsString> {
    for index in 1..args.len() {
        let is_alone = args
            .get(index + 1)
            .is_none_or(|next| next.to_string_lossy().starts_with('-'));
        if args[index] == "-h" && is_alone {
            args[index] = "--help".into();
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    fn check(args: &[&str], expected: &[&str]) {
        let args = args.iter().map(OsString::from).collect();
        assert_eq!(with_help(args), expected);
    }

    #[test]
    fn help_or_host() {
        check(&["m", "-h"], &["m", "--help"]);
        check(&["m", "realm", "-h"], &["m", "realm", "--help"]);
        check(&["m", "-h", "--json"], &["m", "--help", "--json"]);
        check(&["m", "-h", "host", "stats"], &["m", "-h", "host", "stats"]);
    }
}
