//! Producers and a consumer at work on threads of their own, and ordinary traffic that needs no store.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};

use super::consumer::{Consumer, EVENT, STEP};
use super::ledger::{Journal, Ledger, Produced, Seq};
use crate::client::{Client, Gone, Incoming};

/// How a producer works.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProducerPlan {
    pub(super) producer: u64,
    /// Messages that may wait for their confirms: 1 waits for each.
    pub(super) window: usize,
    /// Bytes that each message carries for nothing.
    pub(super) padding: usize,
}

/// What the threads share.
#[derive(Debug, Default)]
struct Progress {
    stop_producers: AtomicBool,
    stop_consumer: AtomicBool,
    confirmed: Vec<AtomicU64>,
    refused: Vec<AtomicU64>,
}

/// Producers and perhaps a consumer at work.
pub(super) struct Load {
    progress: Arc<Progress>,
    producers: Vec<JoinHandle<Produced>>,
    consumers: Vec<JoinHandle<(Journal, Option<Gone>)>>,
}

impl Load {
    /// Starts the threads. Each producer goes on where the ledger says it stopped.
    pub(super) fn start(
        addr: SocketAddr,
        plans: &[ProducerPlan],
        consumers: Vec<Consumer>,
        ledger: &Ledger,
    ) -> Self {
        let zeros = || plans.iter().map(|_| AtomicU64::new(0)).collect();
        let progress = Arc::new(Progress {
            confirmed: zeros(),
            refused: zeros(),
            ..Progress::default()
        });
        let start = |(index, plan): (usize, &ProducerPlan)| {
            let (plan, progress) = (*plan, progress.clone());
            let first = ledger.next_number(plan.producer);
            std::thread::spawn(move || produce(addr, plan, first, &progress, index))
        };
        let producers = plans.iter().enumerate().map(start).collect();
        let consume = |consumer: Consumer| {
            let progress = progress.clone();
            std::thread::spawn(move || consume(consumer, &progress.stop_consumer))
        };
        let consumers = consumers.into_iter().map(consume).collect();
        Self {
            progress,
            producers,
            consumers,
        }
    }

    /// Confirms that each producer has now.
    pub(super) fn confirmed(&self) -> Vec<u64> {
        load_all(&self.progress.confirmed)
    }

    /// Refusals that each producer has now.
    pub(super) fn refused(&self) -> Vec<u64> {
        load_all(&self.progress.refused)
    }

    /// Waits until each producer has so many confirms more than it had.
    pub(super) fn wait_confirmed(&self, than: &[u64], more: u64) -> Result<()> {
        let have = || self.confirmed();
        wait_until("further confirms", || {
            have()
                .iter()
                .zip(than)
                .all(|(now, then)| *now >= then + more)
        })
    }

    /// Ends producers, then consumers, and books what happened. For a broker that was killed: their connections are gone.
    pub(super) fn collect(self, ledger: &mut Ledger) -> Result<Vec<String>> {
        self.progress.stop_producers.store(true, Ordering::Relaxed);
        let mut ends = Vec::new();
        for thread in self.producers {
            let produced = thread.join().map_err(|_| anyhow!("a producer panicked"))?;
            if let Some(gone) = &produced.gone {
                ends.push(format!("producer {}: {gone}", produced.producer));
            } else if produced.unanswered() > 0 {
                let (producer, count) = (produced.producer, produced.unanswered());
                ends.push(format!(
                    "producer {producer}: {count} messages never answered"
                ));
            }
            ledger.add_produced(produced);
        }
        self.progress.stop_consumer.store(true, Ordering::Relaxed);
        for thread in self.consumers {
            let (journal, gone) = thread.join().map_err(|_| anyhow!("a consumer panicked"))?;
            if let Some(gone) = gone {
                ends.push(format!("consumer {}: {gone}", journal.queue));
            }
            ledger.add_journal(journal);
        }
        Ok(ends)
    }
}

fn load_all(of: &[AtomicU64]) -> Vec<u64> {
    of.iter().map(|it| it.load(Ordering::Relaxed)).collect()
}

/// Looks again until something holds; an error after [`PATIENCE`].
pub(super) fn wait_until(what: &str, holds: impl Fn() -> bool) -> Result<()> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > PATIENCE {
            bail!("no {what} in {PATIENCE:?}");
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn produce(
    addr: SocketAddr,
    plan: ProducerPlan,
    first: u64,
    progress: &Progress,
    index: usize,
) -> Produced {
    let mut produced = Produced {
        producer: plan.producer,
        first,
        end: first,
        ..Produced::default()
    };
    if let Err(gone) = produce_on(addr, plan, &mut produced, progress, index) {
        produced.gone = Some(gone.to_string());
    }
    produced
}

fn produce_on(
    addr: SocketAddr,
    plan: ProducerPlan,
    produced: &mut Produced,
    progress: &Progress,
    index: usize,
) -> Result<(), Gone> {
    let mut client = Client::connect(addr)?;
    client.emit("PRODUCER", &json!({ "name": producer_name(plan.producer) }))?;
    let mut asked = std::collections::BTreeMap::new();
    let mut stopped_at = None;
    loop {
        if progress.stop_producers.load(Ordering::Relaxed) {
            let stopped_at = stopped_at.get_or_insert_with(Instant::now);
            if asked.is_empty() || stopped_at.elapsed() > PATIENCE {
                return Ok(());
            }
        } else {
            while asked.len() < plan.window {
                let n = produced.end;
                produced.end += 1;
                let seq = Seq {
                    producer: plan.producer,
                    n,
                };
                asked.insert(client.call("PRODUCE", &message(seq, plan.padding))?, n);
            }
        }
        let Some(Incoming::Answer { ack, payload }) = client.next(STEP)? else {
            continue;
        };
        let Some(n) = asked.remove(&ack) else {
            continue;
        };
        if payload["ok"] == true {
            produced.confirmed.insert(n);
            progress.confirmed[index].fetch_add(1, Ordering::Relaxed);
        } else {
            produced
                .refused
                .insert(n, payload["code"].as_u64().unwrap_or(0));
            progress.refused[index].fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(AFTER_REFUSAL);
        }
    }
}

fn consume(mut consumer: Consumer, stop: &AtomicBool) -> (Journal, Option<Gone>) {
    let mut stopped_at = None;
    loop {
        if stop.load(Ordering::Relaxed) {
            let stopped_at = stopped_at.get_or_insert_with(Instant::now);
            if consumer.is_settled() || stopped_at.elapsed() > PATIENCE {
                return (consumer.leave(), None);
            }
        }
        if let Err(gone) = consumer.step(STEP) {
            return (consumer.leave(), Some(gone));
        }
    }
}

/// Publishes one message and waits for its confirm.
pub(super) fn publish(addr: SocketAddr, seq: Seq, ledger: &mut Ledger) -> Result<Value> {
    let mut client = Client::connect(addr)?;
    let asked = client.call("PRODUCE", &message(seq, 0))?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match client.next(STEP)? {
            Some(Incoming::Answer { ack, payload }) if ack == asked => {
                if payload["ok"] != true {
                    bail!("a message to a store that works is refused: {payload}");
                }
                ledger.add_produced(Produced {
                    producer: seq.producer,
                    first: seq.n,
                    end: seq.n + 1,
                    confirmed: [seq.n].into(),
                    ..Produced::default()
                });
                return Ok(payload);
            }
            _ => {}
        }
    }
    bail!("no confirm in {PATIENCE:?}")
}

/// Sends plain messages to itself, one after the other: the broker serves what needs no store.
pub(super) fn live_round_trips(addr: SocketAddr, count: u64) -> Result<()> {
    let mut client = Client::connect(addr)?;
    client.emit("CONSUMER", &json!({ "name": "live" }))?;
    client.emit(
        "SUBSCRIBE",
        &json!({ "event": "live", "producer": "pulse", "consumer": "live" }),
    )?;
    let began = Instant::now();
    for n in 0..count {
        client.emit(
            "PRODUCE",
            &json!({ "event": "live", "from": "pulse", "message": n }),
        )?;
        loop {
            match client.next(STEP)? {
                Some(Incoming::Event { name, payload })
                    if name == "CONSUME-pulse-live" && payload["message"] == n =>
                {
                    break;
                }
                _ if began.elapsed() > PATIENCE => {
                    bail!("plain message {n} of {count} did not arrive in {PATIENCE:?}")
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn message(seq: Seq, padding: usize) -> Value {
    json!({
        "event": EVENT,
        "from": producer_name(seq.producer),
        "message": { "p": seq.producer, "n": seq.n, "pad": "x".repeat(padding) },
    })
}

fn producer_name(producer: u64) -> String {
    format!("p{producer}")
}

/// How long anything may take that should come at once, on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A refused producer tries the next message after this.
const AFTER_REFUSAL: Duration = Duration::from_millis(5);
