//! What the command line of `bench` asks for.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::growth::CURVES;
use super::scenario::{SCENARIOS, Scenario};
use crate::process;

const USAGE: &str = "\
usage: cargo xtask bench [FLAGS]

  --only ID,…          these scenarios; without it all
  --rounds N           runs of each, in turns; 3 without it
  --compare REVISION   another revision of ours in the same run
  --peers              brokers of others and two more floors in the same run
  --quick              one short round, to see that all works; its figures are good for nothing
  --json FILE          where all runs go; target/bench.json without it
  --growth             curves instead of scenarios: the cost of a message while something else grows
  --pictures FOLDER    where those are drawn; docs/pictures without it, target/growth of a quick run or some curves";

/// The flags.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) rounds: usize,
    pub(super) compare: Option<String>,
    pub(super) peers: bool,
    pub(super) quick: bool,
    pub(super) growth: bool,
    pub(super) json: PathBuf,
    pictures: Option<PathBuf>,
    only: Vec<String>,
}

impl Options {
    /// Nothing if only help was asked for, which is printed then.
    pub(super) fn parse(args: &[String]) -> Result<Option<Self>> {
        let mut options = Self {
            rounds: 3,
            compare: None,
            peers: false,
            quick: false,
            growth: false,
            pictures: None,
            json: process::root().join("target/bench.json"),
            only: Vec::new(),
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
                "--pictures" => options.pictures = Some(value()?.into()),
                "--peers" => options.peers = true,
                "--growth" => options.growth = true,
                "--quick" => (options.quick, options.rounds) = (true, 1),
                "--help" | "-h" => {
                    println!("{USAGE}\n\nscenarios: {}", ids(false).join(", "));
                    println!("curves: {}", ids(true).join(", "));
                    return Ok(None);
                }
                other => bail!("unknown flag {other}\n{USAGE}"),
            }
        }
        options.check()?;
        Ok(Some(options))
    }

    pub(super) fn scenarios(&self) -> impl Iterator<Item = &'static Scenario> {
        SCENARIOS.iter().filter(|scenario| self.wants(scenario.id))
    }

    pub(super) fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == id)
    }

    pub(super) fn pictures(&self) -> PathBuf {
        let whole = !self.quick && self.only.is_empty();
        let usual = if whole {
            "docs/pictures"
        } else {
            "target/growth"
        };
        let usual = || process::root().join(usual);
        self.pictures.clone().unwrap_or_else(usual)
    }

    fn check(&self) -> Result<()> {
        if self.growth && self.peers {
            bail!("--growth has no --peers");
        }
        let ids = ids(self.growth);
        match self.only.iter().find(|id| !ids.contains(&id.as_str())) {
            Some(id) => bail!("nothing is called {id}; there are: {}", ids.join(", ")),
            None => Ok(()),
        }
    }
}

fn ids(growth: bool) -> Vec<&'static str> {
    if growth {
        return CURVES.iter().map(|curve| curve.id).collect();
    }
    SCENARIOS.iter().map(|scenario| scenario.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Options::parse(&args)
    }

    #[test]
    fn flags_are_read() {
        let options = parse("--only 1-1,pairs --peers --rounds 5")
            .unwrap()
            .unwrap();
        assert_eq!(
            (options.rounds, options.peers, options.quick),
            (5, true, false)
        );
        assert_eq!(options.scenarios().count(), 2);
        assert_eq!(parse("--quick").unwrap().unwrap().rounds, 1);
        assert!(parse("--help").unwrap().is_none());
    }

    #[test]
    fn only_a_whole_run_replaces_the_pictures() {
        let check = |line: &str, end: &str| {
            let folder = parse(line).unwrap().unwrap().pictures();
            assert!(folder.ends_with(end), "{line}: {}", folder.display());
        };
        check("--growth", "docs/pictures");
        check("--growth --quick", "target/growth");
        check("--growth --only realms", "target/growth");
        check("--growth --pictures x", "x");
    }

    #[test]
    fn wrong_flags_are_refused() {
        for line in [
            "--nonsense",
            "--rounds",
            "--rounds x",
            "--only no-such",
            "--growth --only 1-1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
