//! A long queue: a hundred thousand messages wait, the broker is killed, starts with them and gives them out in order.

use anyhow::{Context, Result};

use super::consumer::Identity;
use super::drain::{finish, introduce};
use super::kill::WINDOW;
use super::ledger::{Ledger, Order, Tally};
use super::load::{Load, ProducerPlan};
use super::stage::Stage;

/// Messages that each of the producers leaves at least.
const MESSAGES: u64 = 25_000;

const PRODUCERS: u64 = 4;

/// Confirms that are waited for at a time.
const AT_A_TIME: u64 = 500;

pub(super) fn round(stage: &mut Stage) -> Result<Tally> {
    let consumers = [Identity::alone("away")];
    let mut ledger = Ledger::default();
    stage.start()?;
    introduce(stage, &consumers, &mut ledger)?;
    let plan = |producer| ProducerPlan {
        producer,
        window: WINDOW,
        padding: 100,
    };
    let plans: Vec<ProducerPlan> = (0..PRODUCERS).map(plan).collect();
    let load = Load::start(stage.addr()?, &plans, Vec::new(), &ledger);
    let none = vec![0; plans.len()];
    for part in 1..=MESSAGES / AT_A_TIME {
        let count = part * AT_A_TIME;
        load.wait_confirmed(&none, count)
            .with_context(|| format!("a queue of {count}"))?;
    }
    let mut problems = load.collect(&mut ledger)?;
    stage.kill()?;
    stage.start()?;
    let mut tally = finish(stage, &consumers, ledger, Order::PerProducer)?;
    tally.problems.append(&mut problems);
    Ok(tally)
}
