//! A durable consumer that acknowledges: one connection of it, and a journal of what happened there.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::ledger::{Entry, Journal, Seq};
use super::random::Random;
use crate::client::{Client, Gone, Incoming};

/// The event that everybody subscribes to, of any producer.
pub(super) const EVENT: &str = "job";

/// Who a consumer is.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) group: Option<String>,
    /// The most messages that may be with it unacknowledged; 0 is no limit.
    pub(super) prefetch: u64,
}

impl Identity {
    pub(super) fn alone(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: None,
            prefetch: 0,
        }
    }

    /// Whose messages it gets.
    pub(super) fn queue(&self) -> &str {
        self.group.as_ref().unwrap_or(&self.name)
    }
}

/// When deliveries are acknowledged.
#[derive(Debug, Clone)]
pub(super) struct AckPolicy {
    /// So many of a hundred at once; the others are held.
    pub(super) at_once_percent: u64,
    /// Above this many held ones, any of them is acknowledged.
    pub(super) most_held: usize,
    pub(super) random: Random,
}

impl AckPolicy {
    pub(super) fn all() -> Self {
        Self {
            at_once_percent: 100,
            most_held: 0,
            random: Random::new(0),
        }
    }

    pub(super) fn none() -> Self {
        Self {
            at_once_percent: 0,
            most_held: usize::MAX,
            random: Random::new(0),
        }
    }

    pub(super) fn some(random: &mut Random) -> Self {
        Self {
            at_once_percent: random.between(20, 80),
            most_held: 50,
            random: random.split(),
        }
    }
}

/// A connected consumer.
pub(super) struct Consumer {
    client: Client,
    journal: Journal,
    policy: AckPolicy,
    held: VecDeque<Delivery>,
    /// ACKs without an answer yet, by their ack ids.
    waiting: BTreeMap<u64, Seq>,
    barrier: Option<u64>,
    refused: Option<String>,
}

#[derive(Debug, Clone)]
struct Delivery {
    seq: Seq,
    msg_id: String,
}

impl Consumer {
    /// Connects, subscribes, and returns when the broker has taken that in. A name that is still held by a connection which
    /// is about to be noticed as lost is asked for again.
    pub(super) fn join(
        addr: SocketAddr,
        who: &Identity,
        life: usize,
        policy: AckPolicy,
    ) -> Result<Self> {
        let began = Instant::now();
        loop {
            let mut consumer = Self::connect(addr, who, life, policy.clone())?;
            match consumer.register(who) {
                Ok(()) => return Ok(consumer),
                Err(gone) if consumer.refused.is_none() => return Err(gone.into()),
                Err(_) if began.elapsed() < NAME_LIMIT => std::thread::sleep(ASK_AGAIN),
                Err(_) => bail!(
                    "the name {} is refused: {}",
                    who.name,
                    consumer.refused.unwrap_or_default()
                ),
            }
        }
    }

    fn connect(
        addr: SocketAddr,
        who: &Identity,
        life: usize,
        policy: AckPolicy,
    ) -> Result<Self, Gone> {
        Ok(Self {
            client: Client::connect(addr)?,
            journal: Journal {
                queue: who.queue().to_owned(),
                life,
                entries: Vec::new(),
            },
            policy,
            held: VecDeque::new(),
            waiting: BTreeMap::new(),
            barrier: None,
            refused: None,
        })
    }

    fn register(&mut self, who: &Identity) -> Result<(), Gone> {
        let name = &who.name;
        self.client
            .emit("CONSUMER", &json!({ "name": name, "id": name }))?;
        let mut subscribe = json!({
            "event": EVENT, "producer": "TYO-MQ-ALL", "consumer": name, "consumer_id": name,
            "durable": true, "ack": true, "ack_timeout": ACK_TIMEOUT_S, "prefetch": who.prefetch,
            "retry": { "max_attempts": MAX_ATTEMPTS },
        });
        if let Some(group) = &who.group {
            subscribe["group"] = json!(group);
        }
        self.client.emit("SUBSCRIBE", &subscribe)?;
        self.barrier = Some(self.client.call("PING", &json!({}))?);
        while self.barrier.is_some() {
            self.step(STEP)?;
        }
        Ok(())
    }

    /// Takes in what comes next, if anything comes in that time. Returns whether something did.
    pub(super) fn step(&mut self, wait: Duration) -> Result<bool, Gone> {
        let Some(incoming) = self.client.next(wait)? else {
            return Ok(false);
        };
        match incoming {
            Incoming::Answer { ack, payload } => self.on_answer(ack, &payload),
            Incoming::Event { name, payload } if name == "ERROR" => {
                self.refused = Some(payload.to_string());
            }
            Incoming::Event { name, payload } if name.starts_with("CONSUME-") => {
                self.on_delivery(&payload)?;
            }
            Incoming::Event { .. } => {}
        }
        Ok(true)
    }

    /// Acknowledges the message that has been held longest.
    pub(super) fn ack_oldest(&mut self) -> Result<(), Gone> {
        match self.held.pop_front() {
            Some(delivery) => self.ack(&delivery),
            None => Ok(()),
        }
    }

    /// Messages delivered here and not acknowledged yet.
    pub(super) fn held(&self) -> impl ExactSizeIterator<Item = Seq> {
        self.held.iter().map(|delivery| delivery.seq)
    }

    /// Whether all ACKs have been answered.
    pub(super) fn is_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Closes the connection; what happened on it is returned.
    pub(super) fn leave(self) -> Journal {
        self.journal
    }

    /// Resets the connection.
    pub(super) fn reset(self) -> Result<Journal> {
        self.client.reset()?;
        Ok(self.journal)
    }

    fn on_delivery(&mut self, payload: &Value) -> Result<(), Gone> {
        let message = &payload["message"];
        let (Some(producer), Some(n)) = (message["p"].as_u64(), message["n"].as_u64()) else {
            return Ok(());
        };
        let seq = Seq { producer, n };
        self.journal.entries.push(Entry::Delivered(seq));
        let msg_id = payload["msgId"].as_str().unwrap_or_default().to_owned();
        let delivery = Delivery { seq, msg_id };
        if self.policy.random.percent(self.policy.at_once_percent) {
            return self.ack(&delivery);
        }
        self.held.push_back(delivery);
        if self.held.len() > self.policy.most_held {
            let of = self.held.len() as u64 - 1;
            let index = usize::try_from(self.policy.random.between(0, of)).unwrap_or(0);
            if let Some(delivery) = self.held.swap_remove_back(index) {
                return self.ack(&delivery);
            }
        }
        Ok(())
    }

    fn ack(&mut self, delivery: &Delivery) -> Result<(), Gone> {
        // It counts as sent even if sending fails: nobody knows then what arrived.
        self.journal.entries.push(Entry::AckSent(delivery.seq));
        let ack = self
            .client
            .call("ACK", &json!({ "msgId": delivery.msg_id }))?;
        self.waiting.insert(ack, delivery.seq);
        Ok(())
    }

    fn on_answer(&mut self, ack: u64, payload: &Value) {
        if self.barrier == Some(ack) {
            self.barrier = None;
        }
        let Some(seq) = self.waiting.remove(&ack) else {
            return;
        };
        let entry = if payload["ok"] == true {
            Entry::Acked(seq)
        } else {
            Entry::AckRefused(seq, payload["code"].as_u64().unwrap_or(0))
        };
        self.journal.entries.push(entry);
    }
}

/// How long one look for news takes.
pub(super) const STEP: Duration = Duration::from_millis(20);

/// So long that no retry happens in a round: what comes again comes for another reason.
const ACK_TIMEOUT_S: u64 = 3600;

/// More than any round has deliveries of one message.
const MAX_ATTEMPTS: u64 = 1000;

/// A lost connection is noticed by its heartbeat in this time.
const NAME_LIMIT: Duration = Duration::from_secs(20);

const ASK_AGAIN: Duration = Duration::from_millis(50);
