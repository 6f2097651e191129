//! Reliable delivery: attempts, acknowledgements, timeouts, retries, dead letters, expiry.

use std::sync::Arc;

use super::input::ReplyToken;
use super::output::{AckError, Output, Reply};
use super::queue::{Entry, InFlight, Queue};
use super::realm::{Context, Purpose, QueueRef, Realm};
use crate::message::{MessageId, Receipt, SessionId};
use crate::store::{DeadLetter, Position, StoreOp, StoreResult, StoredMessage};

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
            self.forget_stored(ctx, queue, &entry, Purpose::Note);
            return Some(session);
        }
        let attempts = spec.retry.attempts();
        if !fresh && entry.attempts >= attempts {
            let reason = format!(
                "ack timeout: not acknowledged after {} attempts",
                entry.attempts
            );
            self.dead_letter(ctx, queue, entry, reason);
            return None;
        }
        let due_ms = ctx
            .now
            .mono_ms
            .saturating_add(spec.ack_timeout_ms.unwrap_or(ctx.config.ack_timeout_ms));
        if !fresh {
            entry.attempts += 1;
            self.store_attempts(ctx, queue, &entry);
        }
        let receipt = Receipt {
            id: entry.id.clone(),
            attempt: entry.attempts,
        };
        self.emit(ctx, sub, entry.message.clone(), Some(receipt));
        let order = self.next_order;
        self.next_order += 1;
        let id = entry.id.clone();
        let in_flight = InFlight {
            entry,
            sub,
            session,
            due_ms,
            retrying: false,
            order,
        };
        let slot = self.queues[queue].in_flight.insert(in_flight);
        self.tracked.insert(id, (queue, slot));
        self.subs[sub].in_flight += 1;
        self.arm(ctx, queue, due_ms);
        Some(session)
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
    fn forget_stored(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        entry: &Entry,
        purpose: Purpose,
    ) {
        if !entry.stored {
            return;
        }
        self.uncount(index, 1);
        let queue = &mut self.queues[index];
        queue.pass(&entry.id);
        let op = StoreOp::Remove {
            queue: queue.key.clone(),
            id: entry.id.clone(),
        };
        ctx.store(self.index, op, purpose);
    }

    pub(crate) fn uncount(&mut self, queue: usize, rows: u64) {
        let queue = &mut self.queues[queue];
        queue.stored = queue.stored.saturating_sub(rows);
        self.stored = self.stored.saturating_sub(rows);
    }

    fn expire(&mut self, ctx: &mut Context<'_>, queue: usize, entry: Entry) {
        self.counters.expired += 1;
        if ctx.config.expired_to_dlq {
            self.dead_letter(ctx, queue, entry, "expired".to_owned());
        } else {
            self.forget_stored(ctx, queue, &entry, Purpose::Note);
        }
    }

    fn dead_letter(&mut self, ctx: &mut Context<'_>, index: usize, entry: Entry, reason: String) {
        self.counters.dead_lettered += 1;
        if entry.stored {
            self.uncount(index, 1);
        }
        let queue = &mut self.queues[index];
        queue.pass(&entry.id);
        let letter = DeadLetter {
            stored: stored_message(queue, entry),
            reason,
            dead_lettered_at_ms: ctx.now.wall_ms,
        };
        ctx.store(
            self.index,
            StoreOp::DeadLetter(Box::new(letter)),
            Purpose::Note,
        );
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
        let entry = self.take_in_flight(queue, slot);
        if entry.stored {
            let reference = self.queue_ref(queue);
            let purpose = Purpose::Ack {
                queue: reference,
                id: entry.id.clone(),
                session,
                token,
            };
            self.forget_stored(ctx, queue, &entry, purpose);
        } else {
            answer(ctx, Ok(()));
        }
        self.pump(ctx, queue);
    }

    fn take_in_flight(&mut self, queue: usize, slot: usize) -> Entry {
        let in_flight = self.queues[queue].in_flight.remove(slot);
        self.tracked.remove(&in_flight.entry.id);
        if let Some(sub) = self.subs.get_mut(in_flight.sub) {
            sub.in_flight = sub.in_flight.saturating_sub(1);
        }
        in_flight.entry
    }

    /// The store forgot an acknowledged message, or could not: then it is read and delivered again.
    pub(crate) fn on_ack_stored(
        &mut self,
        ctx: &mut Context<'_>,
        wanted: QueueRef,
        ask: (MessageId, SessionId, Option<ReplyToken>),
        result: StoreResult,
    ) {
        let (id, session, token) = ask;
        let result = match result {
            Ok(_) => Ok(()),
            Err(error) => {
                self.counters.store_failures += 1;
                if let Some(queue) = self.queue_by_ref(wanted) {
                    queue.stored += 1;
                    queue.rescan();
                    self.stored += 1;
                    self.pump(ctx, wanted.index);
                }
                Err(AckError::Store(error))
            }
        };
        ctx.out.push(Output::Reply {
            session,
            token,
            reply: Reply::Acked { id, result },
        });
    }

    /// A row was stored, or not: a delivery under way then lives in memory alone.
    pub(crate) fn on_enqueued(
        &mut self,
        wanted: QueueRef,
        id: &MessageId,
        result: &Result<Position, ()>,
    ) {
        let Some(queue) = self
            .queues
            .get_mut(wanted.index)
            .filter(|queue| queue.unique == wanted.unique)
        else {
            return;
        };
        match result {
            Ok(position) if queue.backlog.is_none() => queue.tail = queue.tail.max(*position),
            Ok(_) => {}
            Err(()) => {
                if let Some(&(index, slot)) = self
                    .tracked
                    .get(id)
                    .filter(|(index, _)| *index == wanted.index)
                {
                    self.queues[index].in_flight[slot].entry.stored = false;
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
            (it.due_ms <= now_ms).then_some((it.due_ms, it.order, slot))
        };
        let mut slots: Vec<(u64, u64, usize)> = queue.in_flight.iter().filter_map(due).collect();
        slots.sort_unstable();
        for (_, _, slot) in slots {
            if self.queues[index].in_flight[slot].retrying {
                self.retry(ctx, index, slot);
            } else {
                self.on_ack_timeout(ctx, index, slot);
            }
        }
        self.pump(ctx, index);
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
        if let Some(at_ms) = next.into_iter().chain(read_at).min() {
            self.arm(ctx, index, at_ms);
        }
    }

    fn on_ack_timeout(&mut self, ctx: &mut Context<'_>, index: usize, slot: usize) {
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
            return;
        }
        let entry = self.take_in_flight(index, slot);
        let reason = format!("ack timeout: not acknowledged after {attempts} attempts");
        self.dead_letter(ctx, index, entry, reason);
    }

    fn retry(&mut self, ctx: &mut Context<'_>, index: usize, slot: usize) {
        let in_flight = &self.queues[index].in_flight[slot];
        if is_expired(&in_flight.entry, ctx.now.wall_ms) {
            let entry = self.take_in_flight(index, slot);
            return self.expire(ctx, index, entry);
        }
        let sub = in_flight.sub;
        let ack_timeout_ms = self.subs.get(sub).and_then(|sub| sub.spec.ack_timeout_ms);
        let stalled = self
            .sessions
            .get(&in_flight.session)
            .is_none_or(|session| session.stalled);
        let in_flight = &mut self.queues[index].in_flight[slot];
        if stalled {
            in_flight.due_ms = ctx.now.mono_ms + STALLED_RETRY_MS;
            return;
        }
        in_flight.retrying = false;
        in_flight.due_ms = ctx
            .now
            .mono_ms
            .saturating_add(ack_timeout_ms.unwrap_or(ctx.config.ack_timeout_ms));
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
    }
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
