//! Reliable delivery: attempts, acknowledgements, timeouts, retries, dead letters, expiry.

use std::sync::Arc;

use super::config::{Config, REFUSED_ACK_MS};
use super::input::ReplyToken;
use super::output::{AckError, Output, Reply};
use super::queue::{Entry, InFlight, Queue, UNDELIVERED};
use super::realm::{Context, Purpose, QueueRef, Realm};
use super::settle::Departure;
use crate::message::{MessageId, Receipt, SessionId};
use crate::store::{DeadLetter, Position, QueueKey, StoreOp, StoreResult, StoredMessage};

impl Realm {
    /// Hands one message to a subscription; the session that got it, unless it expired or was given up.
    ///
    /// `fresh`: its row is being stored with this attempt counted already.
    pub(crate) fn deliver_entry(
        &mut self,
        ctx: &mut Context<'_>,
        queue: usize,
        sub: usize,
        mut entry: Entry,
        fresh: bool,
    ) -> Option<SessionId> {
        if !fresh && is_expired(&entry, ctx.now.wall_ms) {
            self.expire(ctx, queue, entry);
            return None;
        }
        let spec = &self.subs[sub].spec;
        let session = self.consumers[self.subs[sub].consumer].session?;
        if !spec.ack {
            self.emit(ctx, sub, entry.message.clone(), None);
            self.forget_stored(ctx, queue, &entry);
            return Some(session);
        }
        if !fresh && entry.attempts >= spec.retry.attempts() {
            let reason = spent(entry.attempts);
            self.dead_letter(ctx, queue, entry, reason);
            return None;
        }
        let wait_ms = ack_timeout(ctx.config, spec.ack_timeout_ms);
        let due_ms = ctx.now.mono_ms.saturating_add(wait_ms);
        if !fresh {
            entry.attempts += 1;
            self.store_attempts(ctx, queue, &entry);
        }
        let receipt = Receipt {
            id: entry.id.clone(),
            attempt: entry.attempts,
        };
        self.emit(ctx, sub, entry.message.clone(), Some(receipt));
        if entry.order == UNDELIVERED {
            entry.order = self.next_order;
            self.next_order += 1;
        }
        let in_flight = InFlight {
            entry,
            sub,
            session,
            due_ms,
            retrying: false,
        };
        self.track(ctx, queue, in_flight);
        Some(session)
    }

    fn track(&mut self, ctx: &mut Context<'_>, queue: usize, in_flight: InFlight) {
        let (id, due_ms) = (in_flight.entry.id.clone(), in_flight.due_ms);
        self.subs[in_flight.sub].in_flight += 1;
        let slot = self.queues[queue].in_flight.insert(in_flight);
        self.tracked.insert(id, (queue, slot));
        self.arm(ctx, queue, due_ms);
    }

    fn store_attempts(&self, ctx: &mut Context<'_>, queue: usize, entry: &Entry) {
        if entry.stored {
            let op = StoreOp::SetAttempts {
                queue: self.queues[queue].key.clone(),
                id: entry.id.clone(),
                attempts: entry.attempts,
            };
            ctx.store(self.index, op, Purpose::Note);
        }
    }

    /// Takes a message out of the store, if it is there.
    fn forget_stored(&mut self, ctx: &mut Context<'_>, index: usize, entry: &Entry) {
        if entry.stored {
            self.uncount_row(index, entry);
            let departure = Departure::Removed(self.queues[index].key.clone());
            self.depart(ctx, entry.id.clone(), departure);
        }
    }

    /// The row of an entry is counted no longer, and taken from no page.
    fn uncount_row(&mut self, index: usize, entry: &Entry) {
        let queue = &mut self.queues[index];
        queue.pass(&entry.id);
        if entry.row > queue.answered {
            queue.settled.insert(entry.row);
        }
        if let Some(purge) = &mut self.purge
            && entry.row <= purge.rows
            && is_expired(entry, purge.now_ms)
        {
            *purge.settled.entry(queue.unique).or_default() += 1;
        }
        self.uncount(index, 1);
    }

    pub(crate) fn uncount(&mut self, queue: usize, rows: u64) {
        let queue = &mut self.queues[queue];
        let rows = rows.min(queue.stored);
        queue.stored -= rows;
        self.stored = self.stored.saturating_sub(rows);
    }

    pub(crate) fn expire(&mut self, ctx: &mut Context<'_>, queue: usize, entry: Entry) {
        self.counters.expired += 1;
        if ctx.config.expired_to_dlq {
            self.dead_letter(ctx, queue, entry, "expired".to_owned());
        } else {
            self.forget_stored(ctx, queue, &entry);
        }
    }

    fn dead_letter(&mut self, ctx: &mut Context<'_>, index: usize, entry: Entry, reason: String) {
        self.counters.dead_lettered += 1;
        if entry.stored {
            self.uncount_row(index, &entry);
        }
        let queue = &mut self.queues[index];
        queue.pass(&entry.id);
        let id = entry.id.clone();
        let letter = DeadLetter {
            stored: stored_message(queue, entry),
            reason,
            dead_lettered_at_ms: ctx.now.wall_ms,
        };
        self.depart(ctx, id, Departure::Buried(Box::new(letter)));
    }

    pub(crate) fn ack(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        id: &str,
        token: Option<ReplyToken>,
    ) {
        let answer = |ctx: &mut Context<'_>, result| {
            let reply = Reply::Acked {
                id: id.into(),
                result,
            };
            ctx.out.push(Output::Reply {
                session,
                token,
                reply,
            });
        };
        let Some(&(queue, slot)) = self.tracked.get(id) else {
            return answer(ctx, Err(AckError::Unknown));
        };
        if self.queues[queue].in_flight[slot].session != session {
            return answer(ctx, Err(AckError::NotYours));
        }
        let (entry, blocked) = self.take_in_flight(queue, slot);
        if entry.stored {
            self.uncount_row(queue, &entry);
            let key = self.queues[queue].key.clone();
            let op = StoreOp::Remove {
                queue: key.clone(),
                id: entry.id.clone(),
            };
            let purpose = Purpose::Ack {
                queue: key,
                entry: Box::new(entry),
                session,
                token,
            };
            ctx.store(self.index, op, purpose);
        } else {
            self.forget_unsure(ctx, queue, entry);
            answer(ctx, Ok(()));
        }
        self.pump(ctx, queue);
        if let Some(sub) = blocked {
            self.pump_all_of(ctx, sub);
        }
    }

    /// A store that failed to take a message, or lost its answer, may have kept it all the same.
    fn forget_unsure(&mut self, ctx: &mut Context<'_>, index: usize, entry: Entry) {
        if entry.row > 0 {
            let departure = Departure::Removed(self.queues[index].key.clone());
            self.depart(ctx, entry.id, departure);
        }
    }

    /// Takes a delivery out of the hands of its subscription; also gives that one if its window was full.
    fn take_in_flight(&mut self, queue: usize, slot: usize) -> (Entry, Option<usize>) {
        let in_flight = self.queues[queue].in_flight.remove(slot);
        self.tracked.remove(&in_flight.entry.id);
        let mut blocked = None;
        if let Some(sub) = self.subs.get(in_flight.sub) {
            let full = sub.in_flight >= self.window(sub.spec.prefetch);
            blocked = full.then_some(in_flight.sub);
            let sub = &mut self.subs[in_flight.sub];
            sub.in_flight = sub.in_flight.saturating_sub(1);
        }
        (in_flight.entry, blocked)
    }

    /// The store forgot an acknowledged message, or could not: then it is delivered again, before all others, but not at
    /// once, for a store that is full or away stays so for a while.
    pub(crate) fn on_ack_stored(
        &mut self,
        ctx: &mut Context<'_>,
        key: &QueueKey,
        ask: (Entry, SessionId, Option<ReplyToken>),
        result: StoreResult,
    ) {
        let (entry, session, token) = ask;
        let reply = Reply::Acked {
            id: entry.id.clone(),
            result: result
                .as_ref()
                .map(drop)
                .map_err(|error| error.clone().into()),
        };
        ctx.out.push(Output::Reply {
            session,
            token,
            reply,
        });
        if result.is_ok() {
            return;
        }
        self.counters.store_failures += 1;
        let index = self.queue_named(&key.key, &key.consumer);
        self.attach_waiting(key);
        self.stored += 1;
        let queue = &mut self.queues[index];
        queue.stored += 1;
        if queue.drainers.is_empty() {
            queue.rescan();
        } else {
            self.hold_back(ctx, index, entry);
        }
    }

    /// A message that was acknowledged in vain waits at the front of its queue.
    fn hold_back(&mut self, ctx: &mut Context<'_>, index: usize, mut entry: Entry) {
        let queue = &mut self.queues[index];
        // Its consumer is done with it: it is never given up for that.
        let retries = queue.drainers.iter().map(|sub| &self.subs[*sub].spec.retry);
        let most = retries.map(|retry| retry.attempts() - 1).min();
        entry.attempts = entry.attempts.min(most.unwrap_or(u32::MAX));
        queue.push_back_in(entry);
        if queue.paused_until_ms <= ctx.now.mono_ms {
            queue.paused_until_ms = ctx.now.mono_ms + REFUSED_ACK_MS;
        }
        let until_ms = queue.paused_until_ms;
        self.arm(ctx, index, until_ms);
    }

    /// A row was stored, or not: a delivery under way then lives in memory alone.
    pub(crate) fn on_enqueued(
        &mut self,
        wanted: QueueRef,
        row: (u64, &MessageId),
        result: &Result<Position, ()>,
    ) {
        let Some(queue) = self
            .queues
            .get_mut(wanted.index)
            .filter(|queue| queue.unique == wanted.unique)
        else {
            return;
        };
        let (row, id) = row;
        queue.answered = row;
        let settled = queue.settled.remove(&row);
        match result {
            Ok(position) if queue.backlog.is_none() => queue.tail = queue.tail.max(*position),
            Ok(_) => {}
            Err(()) if settled => {}
            Err(()) => {
                let in_flight = queue.in_flight.iter_mut().map(|(_, it)| &mut it.entry);
                let mut in_memory = in_flight.chain(&mut queue.ready);
                if let Some(entry) = in_memory.find(|entry| entry.id == *id) {
                    entry.stored = false;
                }
                self.uncount(wanted.index, 1);
            }
        }
    }

    /// The timer of a queue fired: timeouts become retries or dead letters, retries are delivered.
    pub(crate) fn on_queue_timer(&mut self, ctx: &mut Context<'_>, index: usize) {
        let now_ms = ctx.now.mono_ms;
        let Some(queue) = self.queues.get_mut(index) else {
            return;
        };
        if queue.timer_at.is_none_or(|at_ms| at_ms > now_ms) {
            return;
        }
        queue.timer_at = None;
        let due = |(slot, it): (usize, &InFlight)| {
            (it.due_ms <= now_ms).then_some((it.due_ms, it.entry.order, slot))
        };
        let mut slots: Vec<(u64, u64, usize)> = queue.in_flight.iter().filter_map(due).collect();
        slots.sort_unstable();
        let mut blocked = Vec::new();
        for (_, _, slot) in slots {
            blocked.extend(if self.queues[index].in_flight[slot].retrying {
                self.retry(ctx, index, slot)
            } else {
                self.on_ack_timeout(ctx, index, slot)
            });
        }
        self.pump(ctx, index);
        for sub in blocked {
            self.pump_all_of(ctx, sub);
        }
        self.resume_late(ctx, index);
        self.arm_next(ctx, index);
    }

    /// Sets the timer of a queue to what falls due next.
    fn arm_next(&mut self, ctx: &mut Context<'_>, index: usize) {
        let now_ms = ctx.now.mono_ms;
        let Some(queue) = self.queues.get(index) else {
            return;
        };
        let next = queue
            .in_flight
            .iter()
            .map(|(_, in_flight)| in_flight.due_ms)
            .min();
        let read_at = queue
            .backlog
            .as_ref()
            .map(|backlog| backlog.not_before_ms)
            .filter(|at_ms| *at_ms > now_ms);
        let paused = (queue.paused_until_ms > now_ms).then_some(queue.paused_until_ms);
        let resume_at = self.next_resume(index);
        let times = next.into_iter().chain(read_at).chain(paused);
        if let Some(at_ms) = times.chain(resume_at).min() {
            self.arm(ctx, index, at_ms);
        }
    }

    /// Gives the subscription that has room again, if it had none.
    fn on_ack_timeout(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        slot: usize,
    ) -> Option<usize> {
        self.counters.ack_timeouts += 1;
        let in_flight = &mut self.queues[index].in_flight[slot];
        let retry = self
            .subs
            .get(in_flight.sub)
            .map(|sub| sub.spec.retry)
            .unwrap_or_default();
        let attempts = in_flight.entry.attempts;
        if attempts < retry.attempts() {
            in_flight.retrying = true;
            in_flight.due_ms = ctx.now.mono_ms.saturating_add(retry.delay_after(attempts));
            return None;
        }
        self.give_up(ctx, index, slot)
    }

    fn give_up(&mut self, ctx: &mut Context<'_>, index: usize, slot: usize) -> Option<usize> {
        let (entry, blocked) = self.take_in_flight(index, slot);
        let reason = spent(entry.attempts);
        self.dead_letter(ctx, index, entry, reason);
        blocked
    }

    /// Delivers again; gives the subscription that has room instead, if it had none.
    fn retry(&mut self, ctx: &mut Context<'_>, index: usize, slot: usize) -> Option<usize> {
        let in_flight = &self.queues[index].in_flight[slot];
        if is_expired(&in_flight.entry, ctx.now.wall_ms) {
            let (entry, blocked) = self.take_in_flight(index, slot);
            self.expire(ctx, index, entry);
            return blocked;
        }
        let sub = in_flight.sub;
        let spec = &self.subs[sub].spec;
        if in_flight.entry.attempts >= spec.retry.attempts() {
            return self.give_up(ctx, index, slot);
        }
        let ack_timeout_ms = ack_timeout(ctx.config, spec.ack_timeout_ms);
        let stalled = self
            .sessions
            .get(&in_flight.session)
            .is_none_or(|session| session.stalled);
        let in_flight = &mut self.queues[index].in_flight[slot];
        if stalled {
            in_flight.due_ms = ctx.now.mono_ms + STALLED_RETRY_MS;
            return None;
        }
        in_flight.retrying = false;
        in_flight.due_ms = ctx.now.mono_ms.saturating_add(ack_timeout_ms);
        in_flight.entry.attempts += 1;
        let entry = in_flight.entry.clone();
        self.store_attempts(ctx, index, &entry);
        self.emit(
            ctx,
            sub,
            entry.message,
            Some(Receipt {
                id: entry.id,
                attempt: entry.attempts,
            }),
        );
        None
    }
}

/// The time for an acknowledgement; never none, or a message could use up its attempts in one moment.
fn ack_timeout(config: &Config, wanted_ms: Option<u64>) -> u64 {
    wanted_ms.unwrap_or(config.ack_timeout_ms).max(1)
}

fn spent(attempts: u32) -> String {
    format!("ack timeout: not acknowledged after {attempts} attempts")
}

/// Wait of a retry whose session does not keep up.
const STALLED_RETRY_MS: u64 = 1_000;

pub(crate) fn is_expired(entry: &Entry, wall_ms: u64) -> bool {
    entry.expires_at_ms.is_some_and(|at_ms| at_ms <= wall_ms)
}

/// The record of a message in memory.
pub(crate) fn stored_message(queue: &Queue, entry: Entry) -> StoredMessage {
    StoredMessage {
        id: entry.id,
        queue: Arc::clone(&queue.key),
        message: entry.message,
        created_at_ms: entry.created_at_ms,
        expires_at_ms: entry.expires_at_ms,
        attempts: entry.attempts,
        position: Position::default(),
    }
}
