//! A worker that dies in mid-task: its connection is reset while it holds messages. Others get them, or it gets them again.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Result, bail};

use super::consumer::{AckPolicy, Consumer, Identity, STEP};
use super::drain::{TURN, finish, introduce};
use super::ledger::{Entry, Ledger, Order, Seq, Tally};
use super::load::{Load, PATIENCE, ProducerPlan};
use super::random::Random;
use super::stage::Stage;
use crate::client::Gone;

/// Messages that the worker holds when it dies.
const HELD: (u64, u64) = (1, 20);

const GROUP: &str = "crew";

pub(super) fn round(stage: &mut Stage, random: &mut Random) -> Result<Tally> {
    stage.start()?;
    if random.percent(50) {
        in_group(stage, random)
    } else {
        alone(stage, random)
    }
}

/// The worker comes back by itself and gets what it had not acknowledged.
fn alone(stage: &mut Stage, random: &mut Random) -> Result<Tally> {
    let who = [Identity::alone("worker")];
    let mut ledger = Ledger::default();
    introduce(stage, &who, &mut ledger)?;
    let policy = AckPolicy::none();
    let mut worker = Consumer::join(stage.addr()?, &who[0], stage.life(), policy)?;
    let load = Load::start(stage.addr()?, &plans(), Vec::new(), &ledger);
    let held = usize::try_from(random.between(HELD.0, HELD.1))?;
    take(&mut worker, held, random)?;
    ledger.add_journal(worker.reset()?);
    let mut problems = load.collect(&mut ledger)?;
    let mut tally = finish(stage, &who, ledger, Order::PerProducer)?;
    tally.problems.append(&mut problems);
    Ok(tally)
}

/// Works until so many messages are held, with some acknowledged on the way.
fn take(worker: &mut Consumer, held: usize, random: &mut Random) -> Result<()> {
    let began = Instant::now();
    while worker.held().len() < held {
        worker.step(STEP)?;
        if random.percent(30) {
            worker.ack_oldest()?;
        }
        if began.elapsed() > PATIENCE {
            bail!(
                "the worker has {} messages, not {held}",
                worker.held().len()
            );
        }
    }
    Ok(())
}

/// The others of its group get what it held, while they go on working.
fn in_group(stage: &mut Stage, random: &mut Random) -> Result<Tally> {
    let member = |name: &str| Identity {
        group: Some(GROUP.to_owned()),
        ..Identity::alone(name)
    };
    let who = [member("first"), member("second"), member("third")];
    let mut ledger = Ledger::default();
    let addr = stage.addr()?;
    let mut worker = Consumer::join(addr, &who[0], 0, AckPolicy::none())?;
    let mut join = |who| Consumer::join(addr, who, 0, AckPolicy::some(random));
    let mut others = who[1..].iter().map(&mut join).collect::<Result<Vec<_>>>()?;
    let load = Load::start(addr, &plans(), Vec::new(), &ledger);
    let held = usize::try_from(random.between(HELD.0, HELD.1))?;
    let began = Instant::now();
    while worker.held().len() < held {
        worker.step(TURN)?;
        turn(&mut others)?;
        if began.elapsed() > PATIENCE {
            bail!(
                "the group's member has {} messages, not {held}",
                worker.held().len()
            );
        }
    }
    let mut missing: BTreeSet<Seq> = worker.held().collect();
    ledger.add_journal(worker.reset()?);
    wait_handed_over(&mut others, &mut missing)?;
    let mut problems = load.collect(&mut ledger)?;
    for other in others {
        ledger.add_journal(other.leave());
    }
    let mut tally = finish(stage, &who, ledger, Order::Any)?;
    tally.problems.append(&mut problems);
    if !missing.is_empty() {
        let (missing, patience) = (missing.len(), PATIENCE);
        let problem = format!("{missing} messages were not handed over in {patience:?}");
        tally.problems.push(problem);
    }
    Ok(tally)
}

/// Everybody takes in some of what is there.
fn turn(members: &mut [Consumer]) -> Result<(), Gone> {
    for member in members {
        for _ in 0..AT_ONCE {
            if !member.step(TURN)? {
                break;
            }
        }
    }
    Ok(())
}

/// Messages that one takes in while the others wait.
const AT_ONCE: usize = 32;

/// Works on until the others have had what is missing, or nothing of it comes.
fn wait_handed_over(others: &mut [Consumer], missing: &mut BTreeSet<Seq>) -> Result<()> {
    let mut read = vec![0; others.len()];
    let began = Instant::now();
    while !missing.is_empty() && began.elapsed() < PATIENCE {
        turn(others)?;
        for (other, read) in others.iter().zip(&mut read) {
            let entries = &other.journal().entries;
            for entry in &entries[*read..] {
                if let Entry::Delivered(seq) = entry {
                    missing.remove(seq);
                }
            }
            *read = entries.len();
        }
    }
    Ok(())
}

fn plans() -> [ProducerPlan; 2] {
    [(0, 1), (1, 16)].map(|(producer, window)| ProducerPlan {
        producer,
        window,
        padding: 0,
    })
}
