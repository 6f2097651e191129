//! Administers a tyo-mq broker: commands for scripts and people, and a menu.
#![forbid(unsafe_code)]

mod app;
mod call;
mod cli;
mod commands;
mod context_file;
mod env;
mod exit;
mod hidden;
mod http_get;
mod menu;
mod output;
mod prompt;
mod target;
mod time;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Id};

use cli::Cli;
use exit::Failure;
use output::Output;

fn main() -> ExitCode {
    let cli = parse(with_help(std::env::args_os().collect()));
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

/// Parses the command line. Only the program's own help shows the options that every command has.
fn parse(args: Vec<OsString>) -> Cli {
    let mut command = Cli::command();
    command.build();
    let globals: Vec<Id> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .map(|arg| arg.get_id().clone())
        .collect();
    let command = command.mut_subcommands(|sub| without_globals(sub, &globals));
    Cli::from_arg_matches(&command.get_matches_from(args)).unwrap_or_else(|error| error.exit())
}

fn without_globals(command: Command, globals: &[Id]) -> Command {
    let hidden = command
        .mut_args(|arg| {
            let is_global = globals.contains(arg.get_id());
            arg.hide(is_global)
        })
        .mut_subcommands(|sub| without_globals(sub, globals));
    hidden.after_help("Options that every command has: tyo-mq-manager --help")
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
