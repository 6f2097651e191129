//! What to run: scenarios, stores, rounds and seeds as the command line names them.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::random::Random;
use super::stage::Store;

pub(super) const USAGE: &str = "\
usage: cargo xtask rounds [--store sqlite|redis|memory] [--scenario NAME|all] [--rounds N] [--seed S] [--broker FILE]

  --store     where messages are kept [sqlite]
  --scenario  kill, worker, backlog, locked, full-disk, corrupt, redis-kill, redis-restart, redis-readonly, redis-oom, or
              all that the store can have [all]
  --rounds    rounds of each scenario [50 of kill, 1 of backlog, 5 of each other]
  --seed      the first round's seed; the others count on from it [a new one]
  --broker    a built broker, instead of building one";

/// What goes wrong in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    Kill,
    Worker,
    Backlog,
    Locked,
    FullDisk,
    Corrupt,
    RedisKill,
    RedisRestart,
    RedisReadOnly,
    RedisOutOfMemory,
}

/// A scenario, its name, and the stores that it can happen to.
const SCENARIOS: [(Scenario, &str, &[Store]); 10] = [
    (Scenario::Kill, "kill", &[Store::Sqlite, Store::Redis]),
    (
        Scenario::Worker,
        "worker",
        &[Store::Memory, Store::Sqlite, Store::Redis],
    ),
    (Scenario::Backlog, "backlog", &[Store::Sqlite, Store::Redis]),
    (Scenario::Locked, "locked", &[Store::Sqlite]),
    (Scenario::FullDisk, "full-disk", &[Store::Sqlite]),
    (Scenario::Corrupt, "corrupt", &[Store::Sqlite]),
    (Scenario::RedisKill, "redis-kill", &[Store::Redis]),
    (Scenario::RedisRestart, "redis-restart", &[Store::Redis]),
    (Scenario::RedisReadOnly, "redis-readonly", &[Store::Redis]),
    (Scenario::RedisOutOfMemory, "redis-oom", &[Store::Redis]),
];

impl Scenario {
    pub(super) fn name(self) -> &'static str {
        let entry = SCENARIOS.iter().find(|(scenario, ..)| *scenario == self);
        entry.map_or("", |(_, name, _)| name)
    }

    /// Rounds unless the command line says.
    pub(super) fn rounds(self) -> u64 {
        match self {
            Self::Kill => 50,
            Self::Backlog => 1,
            _ => 5,
        }
    }

    fn chosen(name: &str, store: Store) -> Result<Vec<Self>> {
        let can = |stores: &[Store]| stores.contains(&store);
        if name == "all" {
            let of_store = SCENARIOS.iter().filter(|(.., stores)| can(stores));
            return Ok(of_store.map(|(scenario, ..)| *scenario).collect());
        }
        let entry = SCENARIOS.iter().find(|(_, known, _)| *known == name);
        let (scenario, _, stores) = entry.with_context(|| format!("no scenario `{name}`"))?;
        if !can(stores) {
            bail!("{name} cannot happen to the {} store", store.name());
        }
        Ok(vec![*scenario])
    }
}

/// The command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) store: Store,
    pub(super) scenarios: Vec<Scenario>,
    pub(super) rounds: Option<u64>,
    pub(super) seed: u64,
    pub(super) broker: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(args: &[String]) -> Result<Self> {
        let (mut store, mut scenario) = (Store::Sqlite, "all");
        let (mut rounds, mut seed, mut broker) = (None, None, None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let value = args
                .next()
                .with_context(|| format!("{arg}: what?\n{USAGE}"))?;
            let number = || {
                value
                    .parse()
                    .with_context(|| format!("{arg}: not a number"))
            };
            match arg.as_str() {
                "--store" => {
                    store = Store::by_name(value).with_context(|| format!("no store `{value}`"))?;
                }
                "--scenario" => scenario = value,
                "--rounds" => rounds = Some(number()?),
                "--seed" => seed = Some(number()?),
                "--broker" => broker = Some(PathBuf::from(value)),
                _ => bail!("{arg}: unknown\n{USAGE}"),
            }
        }
        Ok(Self {
            store,
            scenarios: Scenario::chosen(scenario, store)?,
            rounds,
            seed: seed.unwrap_or_else(Random::fresh_seed),
            broker,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&args)
    }

    #[test]
    fn a_store_has_the_scenarios_that_can_happen_to_it() {
        let names = |line| {
            let scenarios = parse(line).unwrap().scenarios;
            scenarios
                .iter()
                .map(|it| it.name())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names(""), "kill worker backlog locked full-disk corrupt");
        assert_eq!(names("--store memory"), "worker");
        let redis = "kill worker backlog redis-kill redis-restart redis-readonly redis-oom";
        assert_eq!(names("--scenario all --store redis"), redis);
        assert_eq!(names("--scenario kill"), "kill");
        for wrong in [
            "--store memory --scenario kill",
            "--scenario redis-oom",
            "--scenario none",
            "--store none",
            "--rounds many",
            "--rounds",
            "--what 1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_taken() {
        let options = parse("--rounds 3 --seed 7 --broker x").unwrap();
        assert_eq!((options.rounds, options.seed), (Some(3), 7));
        assert_eq!(options.broker, Some(PathBuf::from("x")));
    }
}
