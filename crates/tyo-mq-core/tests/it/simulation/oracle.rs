//! The promises, checked at every output: what may be delivered to whom, when again, what may leave the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyo_mq_core::engine::{Now, RetryPolicy};
use tyo_mq_core::store::{QueueKey, Snapshot, StoreOp, StoredMessage};
use tyo_mq_core::{MessageId, Receipt, SessionId};

use super::message::{Holder, Sent, number};
use super::store::{Executed, is_requeued};
use crate::matcher::{Known, Target};

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) known: Vec<Known>,
    pub(crate) sent: Vec<Sent>,
    /// Copies with an id: those that are stored or to be acknowledged.
    copies: BTreeMap<MessageId, Copy>,
    ids: BTreeMap<(usize, Holder), MessageId>,
    /// Deliveries without receipt: in which life of the broker.
    plain: BTreeMap<(usize, Holder), u64>,
    /// The last message first delivered, by producer session and subscription.
    order: BTreeMap<(SessionId, Target), usize>,
    seen: BTreeSet<(usize, Target)>,
    /// Starts of the broker.
    life: u64,
    /// Plain deliveries of the inputs that are being taken: message and key.
    fresh: BTreeSet<(usize, Arc<str>)>,
    /// The acknowledgement that is being taken.
    acking: Option<MessageId>,
}

#[derive(Debug)]
struct Copy {
    message: usize,
    holder: Holder,
    policy: RetryPolicy,
    ack_timeout_ms: u64,
    expires_at_ms: Option<u64>,
    attempts: u32,
    last: Option<Last>,
    acked: bool,
    /// Some reason for another delivery is there.
    excused: bool,
    /// It was acknowledged in vain: no attempt is spent on that.
    refused: bool,
    /// What the store knows of attempts may be less.
    attempts_lost: bool,
    /// Its row is in the store.
    kept: bool,
    /// Its row has been in the store.
    stored: bool,
    departed: bool,
    requeued: bool,
}

#[derive(Debug)]
struct Last {
    at_ms: u64,
    session: SessionId,
    target: Target,
}

/// What the oracle says when a promise is broken.
pub(crate) type Verdict = Result<(), String>;

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(broken()) }
}

impl Oracle {
    /// An input begins.
    pub(crate) fn begin(&mut self, acking: Option<&MessageId>) {
        self.fresh.clear();
        self.acking = acking.cloned();
    }

    pub(crate) fn publish(
        &mut self,
        session: SessionId,
        producer: &str,
        event: &str,
        recipients: Option<&[usize]>,
    ) -> usize {
        let mut sent = Sent {
            session,
            single: Vec::new(),
            groups: Vec::new(),
        };
        for sub in self.known.iter().filter(|sub| sub.matches(producer, event)) {
            if recipients.is_some_and(|some| !some.contains(&sub.consumer)) {
                continue;
            }
            match &sub.spec.group {
                None => sent.single.push(sub.target()),
                Some(group) => match sent.groups.iter_mut().find(|(name, _)| name == group) {
                    Some((_, members)) => members.push(sub.target()),
                    None => sent.groups.push((group.clone(), vec![sub.target()])),
                },
            }
        }
        self.sent.push(sent);
        self.sent.len() - 1
    }

    pub(crate) fn subscribed(&mut self, known: Known) {
        let target = known.target();
        match self.known.iter_mut().find(|it| it.target() == target) {
            Some(old) => *old = known,
            None => self.known.push(known),
        }
    }

    pub(crate) fn unsubscribed(&mut self, target: &Target) {
        self.known.retain(|it| it.target() != *target);
        for copy in self.copies.values_mut() {
            copy.excused |= copy
                .last
                .as_ref()
                .is_some_and(|last| last.target == *target);
        }
    }

    pub(crate) fn closed(&mut self, session: SessionId) {
        for copy in self.copies.values_mut() {
            copy.excused |= copy
                .last
                .as_ref()
                .is_some_and(|last| last.session == session);
        }
    }

    pub(crate) fn restarted(&mut self, snapshot: &Snapshot) {
        self.life += 1;
        let kept = snapshot.subscriptions.iter();
        self.known = kept
            .map(|sub| Known::new(self.target(&sub.queue).0, &sub.spec))
            .collect();
        for copy in self.copies.values_mut() {
            copy.excused = true;
            copy.attempts_lost = true;
        }
    }

    /// The subscription that a delivery or a queue belongs to: its policy.
    fn spec(&self, target: &Target) -> Option<&Known> {
        self.known.iter().find(|it| it.target() == *target)
    }

    /// Which copy a target of a message stands for.
    fn holder(&self, message: usize, target: &Target) -> Result<Holder, String> {
        let sent = &self.sent[message];
        if sent.single.contains(target) {
            return Ok(Holder::Single(target.clone()));
        }
        let group = self.spec(target).and_then(|it| it.spec.group.clone());
        for (name, members) in &sent.groups {
            let member = members.contains(target);
            let successor =
                group.as_ref() == Some(name) && members.iter().any(|(_, key)| *key == target.1);
            if member || successor {
                return Ok(Holder::Group(name.clone()));
            }
        }
        Err(format!("message {message} is not for {target:?}"))
    }

    pub(crate) fn delivered(
        &mut self,
        now: Now,
        session: SessionId,
        target: Target,
        message: usize,
        receipt: Option<&Receipt>,
    ) -> Verdict {
        let holder = self.holder(message, &target)?;
        self.check_order(message, &holder, &target)?;
        let Some(receipt) = receipt else {
            self.fresh.insert((message, target.1));
            let before = self.plain.insert((message, holder.clone()), self.life);
            let stored = self.ids.get(&(message, holder.clone()));
            let kept = stored.is_some_and(|id| self.copies[id].kept || self.copies[id].requeued);
            return ensure(before.is_none_or(|life| life < self.life && kept), || {
                format!("message {message} was given to {holder:?} twice")
            });
        };
        let known = self.spec(&target);
        let known = known.ok_or_else(|| format!("{target:?} is no subscription"))?;
        let ack_timeout_ms = known.spec.ack_timeout_ms.unwrap_or(2_000);
        let policy = known.spec.retry;
        self.note(message, holder, &receipt.id, policy, ack_timeout_ms)?;
        let copy = self.copies.get_mut(&receipt.id).expect("it was noted");
        copy.ack_timeout_ms = ack_timeout_ms;
        copy.deliver(now, receipt.attempt)?;
        copy.last = Some(Last {
            at_ms: now.mono_ms,
            session,
            target,
        });
        Ok(())
    }

    /// First deliveries of one producer session to one subscription keep their order.
    fn check_order(&mut self, message: usize, holder: &Holder, target: &Target) -> Verdict {
        let Holder::Single(_) = holder else {
            return Ok(());
        };
        if !self.seen.insert((message, target.clone())) {
            return Ok(());
        }
        // A dead letter that went back, or one that had expired but for a crash and a clock that jumped.
        let back = |id: &MessageId| self.copies[id].requeued || self.copies[id].departed;
        let id = self.ids.get(&(message, holder.clone()));
        if id.is_some_and(back) {
            return Ok(());
        }
        let producer = self.sent[message].session;
        let before = self.order.insert((producer, target.clone()), message);
        ensure(before.is_none_or(|before| before < message), || {
            format!("message {message} came to {target:?} after {before:?}")
        })
    }

    fn note(
        &mut self,
        message: usize,
        holder: Holder,
        id: &MessageId,
        policy: RetryPolicy,
        ack_timeout_ms: u64,
    ) -> Verdict {
        let place = (message, holder.clone());
        let first = self.ids.entry(place).or_insert_with(|| id.clone()).clone();
        ensure(first == *id, || {
            format!("message {message} has two copies for {holder:?}: {first} and {id}")
        })?;
        self.copies.entry(id.clone()).or_insert(Copy {
            message,
            holder,
            policy,
            ack_timeout_ms,
            expires_at_ms: None,
            attempts: 0,
            last: None,
            acked: false,
            excused: true,
            refused: false,
            attempts_lost: false,
            kept: false,
            stored: false,
            departed: false,
            requeued: false,
        });
        Ok(())
    }

    /// A store operation is asked for.
    pub(crate) fn asked(&mut self, now: Now, op: &StoreOp) -> Verdict {
        match op {
            StoreOp::Enqueue(row) => {
                self.note_row(row)?;
                let copy = self.copies.get_mut(&row.id).expect("it was noted");
                copy.expires_at_ms = row.expires_at_ms;
                Ok(())
            }
            StoreOp::Remove { id, queue } => self.removal(now, id, &queue.key),
            StoreOp::DeadLetter(letter) => {
                self.note_row(&letter.stored)?;
                let id = &letter.stored.id;
                let copy = self.copies.get_mut(id).expect("it was noted");
                copy.expires_at_ms = letter.stored.expires_at_ms;
                let spent = letter.stored.attempts >= copy.policy.max_attempts;
                let expires_at_ms = letter.stored.expires_at_ms;
                let expired = expires_at_ms.is_some_and(|at_ms| at_ms <= now.wall_ms);
                let again = copy.departed;
                copy.departed = true;
                ensure((spent || expired || again) && !copy.acked, || {
                    format!("{id} became a dead letter without a reason: {copy:?}")
                })
            }
            _ => Ok(()),
        }
    }

    /// A row is to be stored, as one more copy or as a known one.
    fn note_row(&mut self, row: &StoredMessage) -> Verdict {
        if self.copies.contains_key(&row.id) {
            return Ok(());
        }
        let target = self.target(&row.queue);
        let message = number(&row.message.body);
        let holder = self.holder(message, &target)?;
        // Its own subscription may be gone; all of one key have the same policy.
        let same_key = || self.known.iter().find(|it| it.key == target.1);
        let known = self.spec(&target).or_else(same_key);
        let spec = &known
            .ok_or_else(|| format!("{target:?} is no subscription"))?
            .spec;
        let (policy, timeout_ms) = (spec.retry, spec.ack_timeout_ms.unwrap_or(2_000));
        self.note(message, holder, &row.id, policy, timeout_ms)
    }

    /// Rows leave for a reason: acknowledged, handed over, expired.
    fn removal(&mut self, now: Now, id: &MessageId, key: &Arc<str>) -> Verdict {
        let handed = self.acking.as_ref() == Some(id);
        let Some(copy) = self.copies.get_mut(id) else {
            return Err(format!("{id} is removed but was never stored"));
        };
        let plain = self.fresh.contains(&(copy.message, key.clone()));
        let expired = copy.expires_at_ms.is_some_and(|at_ms| at_ms <= now.wall_ms);
        let again = copy.departed;
        copy.departed = !handed;
        ensure(handed || plain || expired || again || copy.acked, || {
            format!("{id} is removed without a reason: {copy:?}")
        })
    }

    /// A store operation was carried out, or failed.
    pub(crate) fn executed(&mut self, executed: &Executed) {
        let ok = executed.result.is_ok();
        match &executed.op {
            StoreOp::Enqueue(row) => {
                if let Some(copy) = self.copies.get_mut(&row.id) {
                    (copy.kept, copy.stored) = (ok, ok);
                }
            }
            StoreOp::Remove { id, .. } if ok => self.gone(id),
            StoreOp::DeadLetter(letter) if ok => self.gone(&letter.stored.id),
            StoreOp::SetAttempts { id, .. } if !ok => {
                if let Some(copy) = self.copies.get_mut(id) {
                    copy.attempts_lost = true;
                }
            }
            StoreOp::Requeue { id, .. } if is_requeued(&executed.result) => self.requeued(id),
            _ => {}
        }
    }

    fn gone(&mut self, id: &MessageId) {
        if let Some(copy) = self.copies.get_mut(id) {
            copy.kept = false;
        }
    }

    fn requeued(&mut self, id: &MessageId) {
        if let Some(copy) = self.copies.get_mut(id) {
            copy.attempts = 0;
            copy.attempts_lost = true;
            (copy.kept, copy.departed) = (true, false);
            (copy.excused, copy.requeued) = (true, true);
            // What expired in hand is a dead letter too, even if it is acknowledged then.
            copy.acked = false;
            self.plain.remove(&(copy.message, copy.holder.clone()));
        }
    }

    pub(crate) fn acked(&mut self, id: &MessageId, ok: bool) -> Verdict {
        let Some(copy) = self.copies.get_mut(id) else {
            return ensure(!ok, || format!("{id} was never delivered but acknowledged"));
        };
        if ok {
            // What expired in hand may be acknowledged after its letter went back to the queue.
            let twice = std::mem::replace(&mut copy.acked, !copy.requeued);
            return ensure(!twice, || format!("{id} was acknowledged twice"));
        }
        (copy.excused, copy.refused) = (true, true);
        copy.departed = false;
        Ok(())
    }

    /// A confirm says that so many copies are stored: their rows have been.
    pub(crate) fn confirmed(&self, message: usize, queued: usize) -> Verdict {
        let of_message = self.copies.values().filter(|copy| copy.message == message);
        let stored = of_message.filter(|copy| copy.stored);
        ensure(stored.count() >= queued, || {
            format!("message {message} was confirmed before {queued} copies were stored")
        })
    }

    pub(crate) fn target(&self, queue: &QueueKey) -> Target {
        let number = queue.consumer[1..].parse().expect("ids are c and a number");
        (number, queue.key.clone())
    }
}

impl Copy {
    fn deliver(&mut self, now: Now, attempt: u32) -> Verdict {
        ensure(!self.acked, || {
            format!("delivered after it was acknowledged: {self:?}")
        })?;
        ensure(attempt <= self.policy.max_attempts, || {
            format!("attempt {attempt} is one too many: {self:?}")
        })?;
        let follows = attempt == self.attempts + 1 || (self.refused && attempt == self.attempts);
        ensure(follows || (self.attempts_lost && attempt > 0), || {
            format!("attempt {attempt} does not follow: {self:?}")
        })?;
        let waited = self.last.as_ref().is_none_or(|last| {
            let wait_ms = self.ack_timeout_ms + self.policy.delay_after(self.attempts);
            now.mono_ms >= last.at_ms + wait_ms
        });
        ensure(self.excused || waited, || {
            format!("delivered again too early: {self:?}")
        })?;
        self.attempts = attempt;
        (self.excused, self.refused) = (false, false);
        self.attempts_lost = false;
        Ok(())
    }
}
