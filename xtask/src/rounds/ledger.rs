//! What was sent, confirmed, delivered and acknowledged, and what of it must not have happened. Pure: no broker, no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

/// A message, by its producer and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seq {
    pub(super) producer: u64,
    pub(super) n: u64,
}

/// What one producer sent on one connection, in order, and how it was answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Produced {
    pub(super) producer: u64,
    /// The first number sent.
    pub(super) first: u64,
    /// The number after the last sent.
    pub(super) end: u64,
    pub(super) confirmed: BTreeSet<u64>,
    /// Numbers and the codes that refused them.
    pub(super) refused: BTreeMap<u64, u64>,
    /// How the connection ended, if not by the producer.
    pub(super) gone: Option<String>,
}

impl Produced {
    pub(super) fn unanswered(&self) -> u64 {
        let answered = self.confirmed.len() + self.refused.len();
        (self.end - self.first).saturating_sub(answered as u64)
    }
}

/// What happened to one consumer on one connection, in order.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    /// Whose messages these are: a consumer, or a group's members together.
    pub(super) queue: String,
    /// How often the broker had been started again.
    pub(super) life: usize,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Delivered(Seq),
    /// An ACK was sent: from here on the message may be gone.
    AckSent(Seq),
    /// It was answered by ok: the message must be gone.
    Acked(Seq),
    /// It was refused with this code.
    AckRefused(Seq, u64),
}

/// What must hold for the deliveries of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Each connection sees each producer's messages in order.
    PerProducer,
    /// Messages of a member that left come late.
    Any,
}

/// Everything known of a round.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    produced: Vec<Produced>,
    journals: Vec<Journal>,
}

/// Counts of a round, or of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) confirmed: u64,
    pub(super) refused: u64,
    /// Of these, how many a consumer got all the same: who was refused sends again, and it comes twice.
    pub(super) refused_and_delivered: u64,
    pub(super) unanswered: u64,
    /// Different messages of different queues.
    pub(super) delivered: u64,
    /// Of these, how many came after a restart.
    pub(super) after_restart: u64,
    /// Deliveries of what had been delivered before and not acknowledged.
    pub(super) redelivered: u64,
    pub(super) acked: u64,
    pub(super) lost: u64,
    /// What must not be, in words.
    pub(super) problems: Vec<String>,
}

impl Ledger {
    pub(super) fn add_produced(&mut self, produced: Produced) {
        self.produced.push(produced);
    }

    pub(super) fn add_journal(&mut self, journal: Journal) {
        self.journals.push(journal);
    }

    /// The number that a producer goes on with.
    pub(super) fn next_number(&self, producer: u64) -> u64 {
        let of_producer = self.produced.iter().filter(|it| it.producer == producer);
        of_producer.map(|it| it.end).max().unwrap_or(0)
    }

    /// What was confirmed and may not be gone from the queue: no ACK was sent for it.
    pub(super) fn owed(&self, queue: &str) -> BTreeSet<Seq> {
        let mut owed = self.confirmed();
        for entry in self.entries(queue) {
            if let Entry::AckSent(seq) = entry {
                owed.remove(seq);
            }
        }
        owed
    }

    /// Judges queues that every message goes to, after everything in them was acknowledged.
    pub(super) fn judge(&self, queues: &[(&str, Order)]) -> Tally {
        let mut tally = Tally {
            confirmed: self.confirmed().len() as u64,
            refused: self.produced.iter().map(|it| it.refused.len() as u64).sum(),
            unanswered: self.produced.iter().map(Produced::unanswered).sum(),
            ..Tally::default()
        };
        let delivered = queues.iter().flat_map(|(queue, _)| self.delivered(queue));
        let delivered: BTreeSet<Seq> = delivered.collect();
        tally.refused_and_delivered =
            self.refused().filter(|seq| delivered.contains(seq)).count() as u64;
        for (queue, order) in queues {
            self.count(queue, &mut tally);
            self.find_lost(queue, &mut tally);
            self.find_holes(queue, &mut tally);
            self.find_returned(queue, &mut tally);
            self.find_refused_acks(queue, &mut tally);
            self.find_repeated(queue, *order, &mut tally);
        }
        tally
    }

    fn confirmed(&self) -> BTreeSet<Seq> {
        let of = |it: &Produced| {
            let producer = it.producer;
            let seq = move |&n| Seq { producer, n };
            it.confirmed.iter().map(seq).collect::<Vec<_>>()
        };
        self.produced.iter().flat_map(of).collect()
    }

    fn refused(&self) -> impl Iterator<Item = Seq> {
        self.produced.iter().flat_map(|it| {
            let producer = it.producer;
            it.refused.keys().map(move |&n| Seq { producer, n })
        })
    }

    fn journals(&self, queue: &str) -> impl Iterator<Item = &Journal> {
        self.journals.iter().filter(move |it| it.queue == queue)
    }

    fn entries(&self, queue: &str) -> impl Iterator<Item = &Entry> {
        self.journals(queue).flat_map(|it| &it.entries)
    }

    fn delivered(&self, queue: &str) -> BTreeSet<Seq> {
        let delivered = |entry: &Entry| match entry {
            Entry::Delivered(seq) => Some(*seq),
            _ => None,
        };
        self.entries(queue).filter_map(delivered).collect()
    }

    fn count(&self, queue: &str, tally: &mut Tally) {
        let mut seen = BTreeSet::new();
        let mut after = BTreeSet::new();
        for journal in self.journals(queue) {
            for entry in &journal.entries {
                match entry {
                    Entry::Delivered(seq) => {
                        tally.redelivered += u64::from(!seen.insert(*seq));
                        if journal.life > 0 {
                            after.insert(*seq);
                        }
                    }
                    Entry::Acked(_) => tally.acked += 1,
                    Entry::AckSent(_) | Entry::AckRefused(..) => {}
                }
            }
        }
        tally.delivered += seen.len() as u64;
        tally.after_restart += after.len() as u64;
    }

    /// Confirmed, and at the end neither delivered for good nor on its way.
    fn find_lost(&self, queue: &str, tally: &mut Tally) {
        let lost = self.owed(queue);
        tally.lost += lost.len() as u64;
        let never = lost.difference(&self.delivered(queue)).count();
        report(&lost, tally, |count, some| {
            format!(
                "{queue}: {count} confirmed messages lost, {never} of them never delivered: {some}"
            )
        });
    }

    /// Of each connection's messages those kept are the first ones: nothing kept was sent after something not kept. Where some
    /// were refused, those without an answer may have been, too.
    fn find_holes(&self, queue: &str, tally: &mut Tally) {
        let delivered = self.delivered(queue);
        let mut holes = BTreeSet::new();
        for run in self.produced.iter().filter(|run| run.refused.is_empty()) {
            let seq = |n| Seq {
                producer: run.producer,
                n,
            };
            let last = delivered.range(seq(run.first)..seq(run.end)).next_back();
            let before = run.first..last.map_or(run.first, |last| last.n);
            let is_hole = |n: &u64| !delivered.contains(&seq(*n)) && !run.confirmed.contains(n);
            holes.extend(before.filter(is_hole).map(seq));
        }
        report(&holes, tally, |count, some| {
            format!("{queue}: {count} holes before messages that were kept: {some}")
        });
    }

    /// Nothing that was acknowledged comes back, and nothing is acknowledged twice.
    fn find_returned(&self, queue: &str, tally: &mut Tally) {
        let mut acked = BTreeSet::new();
        let mut returned = BTreeSet::new();
        for entry in self.entries(queue) {
            let is_wrong = match entry {
                Entry::Delivered(seq) => acked.contains(seq).then_some(seq),
                Entry::Acked(seq) => (!acked.insert(*seq)).then_some(seq),
                Entry::AckSent(_) | Entry::AckRefused(..) => None,
            };
            returned.extend(is_wrong);
        }
        report(&returned, tally, |count, some| {
            format!("{queue}: {count} messages came again after their ACK_OK: {some}")
        });
    }

    /// A store that is away may fail an ACK; nothing else may refuse what was delivered on the same connection.
    fn find_refused_acks(&self, queue: &str, tally: &mut Tally) {
        let refused = |entry: &Entry| match entry {
            Entry::AckRefused(seq, code) if *code < 500 => Some(*seq),
            _ => None,
        };
        let refused: BTreeSet<Seq> = self.entries(queue).filter_map(refused).collect();
        report(&refused, tally, |count, some| {
            format!("{queue}: {count} ACKs of delivered messages refused: {some}")
        });
    }

    /// One connection gets nothing twice unless its ACK was refused, and where order is promised it gets it in order.
    fn find_repeated(&self, queue: &str, order: Order, tally: &mut Tally) {
        let (mut twice, mut late) = (BTreeSet::new(), BTreeSet::new());
        for journal in self.journals(queue) {
            let mut seen = BTreeSet::new();
            let mut may_return = BTreeSet::new();
            let mut latest: BTreeMap<u64, u64> = BTreeMap::new();
            for entry in &journal.entries {
                match entry {
                    Entry::Delivered(seq) if !seen.insert(*seq) => {
                        if !may_return.remove(seq) {
                            twice.insert(*seq);
                        }
                    }
                    Entry::Delivered(seq) => {
                        let latest = latest.entry(seq.producer).or_insert(seq.n);
                        if seq.n < *latest && order == Order::PerProducer {
                            late.insert(*seq);
                        }
                        *latest = seq.n.max(*latest);
                    }
                    Entry::AckRefused(seq, _) => {
                        may_return.insert(*seq);
                    }
                    Entry::AckSent(_) | Entry::Acked(_) => {}
                }
            }
        }
        report(&twice, tally, |count, some| {
            format!("{queue}: {count} messages twice on one connection: {some}")
        });
        report(&late, tally, |count, some| {
            format!("{queue}: {count} messages after later ones of their producer: {some}")
        });
    }
}

fn report(wrong: &BTreeSet<Seq>, tally: &mut Tally, text: impl FnOnce(usize, String) -> String) {
    if wrong.is_empty() {
        return;
    }
    let name = |seq: &Seq| format!("{}/{}", seq.producer, seq.n);
    let mut some: Vec<String> = wrong.iter().take(SHOWN).map(name).collect();
    if wrong.len() > SHOWN {
        some.push("…".to_owned());
    }
    tally.problems.push(text(wrong.len(), some.join(" ")));
}

/// Messages named in a problem.
const SHOWN: usize = 5;

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.confirmed += other.confirmed;
        self.refused += other.refused;
        self.refused_and_delivered += other.refused_and_delivered;
        self.unanswered += other.unanswered;
        self.delivered += other.delivered;
        self.after_restart += other.after_restart;
        self.redelivered += other.redelivered;
        self.acked += other.acked;
        self.lost += other.lost;
        self.problems.extend(other.problems);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "confirmed {}, delivered {} ({} after a restart), redelivered {}, acknowledged {}, refused {} ({} delivered all the same), unanswered {}, lost {}",
            self.confirmed,
            self.delivered,
            self.after_restart,
            self.redelivered,
            self.acked,
            self.refused,
            self.refused_and_delivered,
            self.unanswered,
            self.lost
        )
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
