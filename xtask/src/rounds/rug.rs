//! Pulling the rug: the store goes away or refuses under load, plain traffic goes on, and when it is back all is well again.

use std::time::Duration;

use anyhow::{Context, Result};

use super::consumer::{AckPolicy, Consumer, Identity};
use super::drain::{finish, introduce};
use super::kill::WINDOWS;
use super::ledger::{Ledger, Order, Tally};
use super::load::{Load, ProducerPlan, live_round_trips, wait_until};
use super::random::Random;
use super::stage::Stage;

/// Something done to a store, and undone.
pub(super) trait Rug {
    /// Takes the store away.
    fn pull(&mut self, stage: &mut Stage) -> Result<()>;

    /// Gives it back.
    fn restore(&mut self, stage: &mut Stage) -> Result<()>;

    /// How long it stays away at least, counted from when every producer has been refused; nothing if it is no longer than
    /// the broker waits, so that nobody is refused.
    fn refused_for(&self, random: &mut Random) -> Option<Duration> {
        Some(Duration::from_millis(random.between(0, 500)))
    }

    /// Bytes that each message carries.
    fn padding(&self) -> usize {
        100
    }
}

/// Confirms of each producer before the rug is pulled, and after it is back.
const CONFIRMS: (u64, u64) = (20, 300);

/// Plain messages that must arrive while the store is away.
const LIVE: u64 = 100;

/// In so many of a hundred rounds the broker is killed while its store is away.
const KILLED_PERCENT: u64 = 30;

/// How long a lock is held that nobody is refused for.
const SHORT_MS: (u64, u64) = (50, 1500);

pub(super) fn round(stage: &mut Stage, random: &mut Random, rug: &mut dyn Rug) -> Result<Tally> {
    let consumers = [Identity::alone("away"), Identity::alone("here")];
    let mut ledger = Ledger::default();
    stage.start()?;
    introduce(stage, &consumers, &mut ledger)?;
    let plans = plans(rug.padding());
    let load = begin(stage, random, &plans, &consumers[1], &ledger)?;
    load.wait_confirmed(&[0; WINDOWS.len()], random.between(CONFIRMS.0, CONFIRMS.1))?;
    rug.pull(stage)?;
    stay_away(stage, random, rug, &load)?;
    let mut problems = Vec::new();
    let load = if random.percent(KILLED_PERCENT) {
        stage.kill()?;
        load.collect(&mut ledger)?;
        rug.restore(stage)?;
        stage.start()?;
        begin(stage, random, &plans, &consumers[1], &ledger)?
    } else {
        rug.restore(stage)?;
        load
    };
    let than = load.confirmed();
    load.wait_confirmed(&than, CONFIRMS.0)
        .context("the store is back")?;
    stage.ensure_alive()?;
    problems.extend(load.collect(&mut ledger)?);
    let mut tally = finish(stage, &consumers, ledger, Order::PerProducer)?;
    tally.problems.append(&mut problems);
    Ok(tally)
}

fn begin(
    stage: &Stage,
    random: &mut Random,
    plans: &[ProducerPlan],
    here: &Identity,
    ledger: &Ledger,
) -> Result<Load> {
    let policy = AckPolicy::some(random);
    let here = Consumer::join(stage.addr()?, here, stage.life(), policy)?;
    Ok(Load::start(stage.addr()?, plans, vec![here], ledger))
}

/// The store is away: producers hear so, and everybody else notices nothing.
fn stay_away(stage: &mut Stage, random: &mut Random, rug: &dyn Rug, load: &Load) -> Result<()> {
    match rug.refused_for(random) {
        Some(longer) => {
            let refused = || load.refused().iter().all(|count| *count > 0);
            wait_until("refusal of each producer while the store is away", refused)?;
            std::thread::sleep(longer);
        }
        None => {
            let (least, most) = SHORT_MS;
            std::thread::sleep(Duration::from_millis(random.between(least, most)));
        }
    }
    live_round_trips(stage.addr()?, LIVE).context("the store is away")?;
    stage.ensure_alive()
}

fn plans(padding: usize) -> Vec<ProducerPlan> {
    let plan = |(producer, window)| ProducerPlan {
        producer,
        window,
        padding,
    };
    (0..).zip(WINDOWS).map(plan).collect()
}
