//! The end of a round: consumers come back and take everything, and then everything is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::consumer::{AckPolicy, Consumer, Identity};
use super::ledger::{Entry, Ledger, Order, Seq, Tally};
use super::load::{PATIENCE, publish};
use super::stage::Stage;

/// The producer whose messages tell the beginning and the end.
const MARKER: u64 = 1_000;

/// How long each of several consumers is looked at before the next.
pub(super) const TURN: Duration = Duration::from_millis(2);

/// Lets the consumers subscribe and leave. On return their subscriptions are kept: a confirmed message came after them.
pub(super) fn introduce(stage: &Stage, consumers: &[Identity], ledger: &mut Ledger) -> Result<()> {
    for who in consumers {
        let policy = AckPolicy::none();
        Consumer::join(stage.addr()?, who, stage.life(), policy)?.leave();
    }
    let confirm = mark(stage, ledger)?;
    let queued = confirm["queued"].as_u64();
    if queued != Some(consumers.len() as u64) {
        bail!(
            "{} durable consumers, yet the confirm is {confirm}",
            consumers.len()
        );
    }
    Ok(())
}

fn mark(stage: &Stage, ledger: &mut Ledger) -> Result<serde_json::Value> {
    let seq = Seq {
        producer: MARKER,
        n: ledger.next_number(MARKER),
    };
    publish(stage.addr()?, seq, ledger)
}

/// Takes and acknowledges everything that the consumers are owed.
pub(super) fn drain(stage: &Stage, consumers: &[Identity], ledger: &mut Ledger) -> Result<()> {
    let join = |who| Consumer::join(stage.addr()?, who, stage.life(), AckPolicy::all());
    let mut joined: Vec<Consumer> = consumers.iter().map(join).collect::<Result<_>>()?;
    mark(stage, ledger)?;
    let queue = |who: &Identity| (who.queue().to_owned(), ledger.owed(who.queue()));
    let mut owed: BTreeMap<String, BTreeSet<Seq>> = consumers.iter().map(queue).collect();
    let mut read = vec![0; joined.len()];
    let mut moved = Instant::now();
    // Without news for so long it ends, and the ledger finds what is missing.
    while moved.elapsed() < PATIENCE {
        let is_settled = joined.iter().all(Consumer::is_settled);
        if is_settled && owed.values().all(BTreeSet::is_empty) {
            break;
        }
        for (consumer, read) in joined.iter_mut().zip(&mut read) {
            while consumer.step(TURN)? {
                moved = Instant::now();
            }
            let journal = consumer.journal();
            let owed = owed.entry(journal.queue.clone()).or_default();
            for entry in &journal.entries[*read..] {
                if let Entry::AckSent(seq) = entry {
                    owed.remove(seq);
                }
            }
            *read = journal.entries.len();
        }
    }
    for consumer in joined {
        ledger.add_journal(consumer.leave());
    }
    Ok(())
}

/// Drains, kills and starts the broker once more to see that what was acknowledged stays away, and judges.
pub(super) fn finish(
    stage: &mut Stage,
    consumers: &[Identity],
    mut ledger: Ledger,
    order: Order,
) -> Result<Tally> {
    drain(stage, consumers, &mut ledger)?;
    let mut dead = stage.dead_letters()?;
    if stage.is_lasting() {
        stage.kill()?;
        stage.start()?;
        drain(stage, consumers, &mut ledger)?;
        dead = dead.max(stage.dead_letters()?);
    }
    stage.ensure_alive()?;
    let queues: BTreeSet<&str> = consumers.iter().map(Identity::queue).collect();
    let queues: Vec<(&str, Order)> = queues.into_iter().map(|queue| (queue, order)).collect();
    let mut tally = ledger.judge(&queues);
    if dead > 0 {
        tally.problems.push(format!("{dead} dead letters"));
    }
    Ok(tally)
}
