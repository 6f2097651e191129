//! Transcripts: a script of commands, each followed by the lines that must come out, run against an engine and a
//! memory store.
//!
//! `S> open [realm]` opens a session with the label `S`. Commands of a session: `consumer`, `producer`, `sub`,
//! `unsub`, `pub`, `ack`, `close`, `stall`, `drain`. Commands without a session: `tick MS` (fires what falls due),
//! `wall MS` (the wall clock jumps), `hold` and `flush [N]` (store results), `fail KIND…` and `mend`, `restart`,
//! `requeue ID`, `purge REALM`, `rename FROM TO`, `letters`, `usage`, `counters`; `kept KEY CONSUMER BODY` and
//! `kept-sub PRODUCER EVENT CONSUMER` (the store comes by what the engine does not know) and `adopt` (now it hears of
//! it). Message ids are called m1, m2, … in order of appearance.

mod commands;
mod kept;
mod print;
mod world;

pub(crate) use world::{World, kind, now_or_never};

use tyo_mq_core::engine::Config;

/// Runs a script with the default settings.
pub(crate) fn check(script: &str) {
    check_with(Config::default(), script);
}

/// Runs a script with these settings.
pub(crate) fn check_with(config: Config, script: &str) {
    run(World::new(config), script);
}

/// As [`check`], but producers and consumers are not told of each other.
pub(crate) fn check_deliveries(script: &str) {
    check_deliveries_with(Config::default(), script);
}

/// As [`check_with`], but producers and consumers are not told of each other.
pub(crate) fn check_deliveries_with(config: Config, script: &str) {
    let mut world = World::new(config);
    world.presence = false;
    run(world, script);
}

/// Fails at the first command whose output is another one.
fn run(mut world: World, script: &str) {
    let lines: Vec<&str> = script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect();
    let mut at = 0;
    while at < lines.len() {
        let command = lines[at];
        at += 1;
        let mut expected = Vec::new();
        while at < lines.len() && is_output(lines[at]) {
            expected.push(lines[at]);
            at += 1;
        }
        let seen = world.run(command);
        assert_eq!(
            seen.join("\n"),
            expected.join("\n"),
            "after `{command}`: left is what came out, right is what should have"
        );
    }
}

/// Output lines begin with `<`, `S<` or `@time`.
fn is_output(line: &str) -> bool {
    let first = line.split(' ').next().unwrap_or_default();
    first.ends_with('<') || first.starts_with('@')
}
