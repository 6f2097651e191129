//! Queues: what waits for a consumer, in order, in memory and in the store, and who drains it.
//!
//! A queue is either *current* (everything stored is in memory too: in flight or ready) or has a *backlog*: stored
//! messages behind a position that are read page by page while somebody drains. Live messages join the end, so
//! they never overtake.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashSet;
use slab::Slab;

use super::config::{BURST_BYTES, FETCH_RETRY_MS, PAGE_BYTES, PAGE_MESSAGES};
use super::output::{Delivery, Output};
use super::realm::{Context, Purpose, QueueRef, Realm};
use crate::message::{Message, MessageId, SessionId};
use crate::store::{Position, QueueKey, StoreOp, StoreReply, StoreResult, StoredMessage};

/// Messages for one consumer id under one key.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Never given twice in a realm, unlike its index.
    pub(crate) unique: u64,
    pub(crate) key: Arc<QueueKey>,
    /// Subscriptions with this identity.
    pub(crate) subs: Vec<usize>,
    /// The group whose members may take over.
    pub(crate) group: Option<Arc<str>>,
    /// Online subscriptions that it is delivered to now.
    pub(crate) drainers: Vec<usize>,
    pub(crate) turn: usize,
    /// Next to deliver, oldest first.
    pub(crate) ready: VecDeque<Entry>,
    pub(crate) ready_bytes: usize,
    pub(crate) in_flight: Slab<InFlight>,
    /// Messages in the store.
    pub(crate) stored: u64,
    pub(crate) backlog: Option<Backlog>,
    /// Last position known to be in memory.
    pub(crate) tail: Position,
    /// When the earliest set timer fires.
    pub(crate) timer_at: Option<u64>,
    /// Number of the last publication it took.
    pub(crate) last_publication: u64,
    /// Number of the last row that the store answered for.
    pub(crate) answered: u64,
    /// Rows that were done with before the store answered for them.
    pub(crate) settled: HashSet<u64>,
    /// The store may hold rows that are not counted.
    pub(crate) doubtful: bool,
    /// The store refused an acknowledgement: nothing is delivered before this moment.
    pub(crate) paused_until_ms: u64,
}

/// A message in memory.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: MessageId,
    pub(crate) message: Arc<Message>,
    pub(crate) created_at_ms: u64,
    pub(crate) expires_at_ms: Option<u64>,
    pub(crate) attempts: u32,
    pub(crate) stored: bool,
    /// Number of its row in the realm; 0 if it was read from the store.
    pub(crate) row: u64,
    /// Order of its first delivery, [`UNDELIVERED`] before.
    pub(crate) order: u64,
}

/// Behind all that was delivered already.
pub(crate) const UNDELIVERED: u64 = u64::MAX;

/// A delivery that waits for its acknowledgement, or for its retry.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) entry: Entry,
    pub(crate) sub: usize,
    pub(crate) session: SessionId,
    pub(crate) due_ms: u64,
    /// Waiting for the next attempt instead of an acknowledgement.
    pub(crate) retrying: bool,
}

/// Stored messages that are not in memory.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) after: Position,
    /// Number of the read under way.
    pub(crate) reading: Option<u64>,
    /// Something was stored since that read began.
    pub(crate) grown: bool,
    /// Messages that left the store or came into memory since that read began.
    pub(crate) passed: HashSet<MessageId>,
    /// No read before this moment.
    pub(crate) not_before_ms: u64,
}

impl Queue {
    /// A new message may go straight to a drainer.
    pub(crate) fn is_idle(&self) -> bool {
        self.backlog.is_none() && self.ready.is_empty()
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.subs.is_empty() && self.stored == 0 && self.in_flight.is_empty()
    }

    fn push_ready(&mut self, entry: Entry) {
        self.ready_bytes += entry.message.size();
        self.ready.push_back(entry);
    }

    fn pop_ready(&mut self) -> Option<Entry> {
        let entry = self.ready.pop_front()?;
        self.ready_bytes -= entry.message.size();
        Some(entry)
    }

    /// Makes a message that was in hand the next to deliver, behind those that were in hand before it.
    pub(crate) fn push_back_in(&mut self, entry: Entry) {
        self.pass(&entry.id);
        self.ready_bytes += entry.message.size();
        let place = self.ready.partition_point(|it| it.order < entry.order);
        self.ready.insert(place, entry);
    }

    /// Notes that a message is no longer to be taken from a page that is being read.
    pub(crate) fn pass(&mut self, id: &MessageId) {
        if let Some(backlog) = self
            .backlog
            .as_mut()
            .filter(|backlog| backlog.reading.is_some())
        {
            backlog.passed.insert(id.clone());
        }
    }

    /// A message that had expired is stored again: what is in memory of it is no copy of its own.
    pub(crate) fn recover(&mut self, id: &MessageId) {
        let mut in_flight = self.in_flight.iter_mut().map(|(_, it)| &mut it.entry);
        if let Some(entry) = in_flight.find(|entry| entry.id == *id) {
            (entry.stored, entry.row) = (true, 0);
        }
        self.keep_ready(|entry| entry.id != *id);
    }

    /// More is stored than was known: what is in memory of the store is forgotten, to read all of it in order.
    pub(crate) fn add_rows(&mut self, rows: u64) {
        self.stored += rows;
        self.keep_ready(|entry| !entry.stored);
        self.backlog = Some(Backlog::default());
    }

    fn keep_ready(&mut self, which: impl Fn(&Entry) -> bool) {
        self.ready.retain(which);
        self.ready_bytes = self.ready.iter().map(|entry| entry.message.size()).sum();
    }

    /// Forgets what is in memory of the store, to read it again from the start; what is in flight stays.
    pub(crate) fn rescan(&mut self) {
        if self.stored == 0 && !self.doubtful {
            self.backlog = None;
        } else {
            self.backlog = Some(Backlog::default());
        }
        self.ready.clear();
        self.ready_bytes = 0;
    }
}

impl Realm {
    pub(crate) fn queue_ref(&self, index: usize) -> QueueRef {
        QueueRef {
            index,
            unique: self.queues[index].unique,
        }
    }

    pub(crate) fn find_queue(&self, key: &Arc<str>, consumer: &Arc<str>) -> Option<usize> {
        self.queue_names.get(key)?.get(consumer).copied()
    }

    /// The queue of a name, made if there is none.
    pub(crate) fn queue_named(&mut self, key: &Arc<str>, consumer: &Arc<str>) -> usize {
        if let Some(index) = self.find_queue(key, consumer) {
            return index;
        }
        let unique = self.next_order;
        self.next_order += 1;
        let index = self.queues.insert(Queue {
            unique,
            key: Arc::new(self.queue_key(key, consumer)),
            subs: Vec::new(),
            group: None,
            drainers: Vec::new(),
            turn: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            in_flight: Slab::new(),
            stored: 0,
            backlog: None,
            tail: Position::default(),
            timer_at: None,
            last_publication: u64::MAX,
            answered: 0,
            settled: HashSet::new(),
            doubtful: false,
            paused_until_ms: 0,
        });
        self.queue_names
            .entry(key.clone())
            .or_default()
            .insert(consumer.clone(), index);
        index
    }

    /// The queue of a subscription, joined if it is not yet.
    pub(crate) fn queue_of(&mut self, sub: usize) -> usize {
        if let Some(index) = self.subs[sub].queue {
            return index;
        }
        let (key, consumer) = (
            self.subs[sub].key.clone(),
            self.subs[sub].consumer_id.clone(),
        );
        let index = self.queue_named(&key, &consumer);
        self.queues[index].subs.push(sub);
        self.queues[index].group = self.subs[sub].spec.group.clone();
        self.subs[sub].queue = Some(index);
        self.routes.invalidate();
        self.refresh_drainers(index);
        index
    }

    /// A subscription can take one more message now.
    pub(crate) fn has_room(&self, sub: usize) -> bool {
        let sub = &self.subs[sub];
        let Some(session) = self.live_session(self.consumers[sub.consumer].session) else {
            return false;
        };
        !session.stalled
            && !session.paced
            && (!sub.spec.ack || sub.in_flight < self.window(sub.spec.prefetch))
    }

    pub(crate) fn window(&self, prefetch: Option<u32>) -> u32 {
        match prefetch.unwrap_or(self.default_prefetch) {
            0 => u32::MAX,
            prefetch => prefetch,
        }
    }

    /// Delivers what waits, in order, as far as the drainers can take it.
    pub(crate) fn pump(&mut self, ctx: &mut Context<'_>, index: usize) {
        loop {
            let Some(queue) = self.queues.get(index) else {
                return;
            };
            if queue.is_idle() {
                break;
            }
            if queue.paused_until_ms > ctx.now.mono_ms {
                return;
            }
            let drainers = queue.drainers.len();
            let turns = (0..drainers).map(|step| (queue.turn + step) % drainers);
            let Some(place) = turns
                .into_iter()
                .find(|place| self.has_room(queue.drainers[*place]))
            else {
                return;
            };
            let sub = queue.drainers[place];
            let queue = &mut self.queues[index];
            queue.turn = place + 1;
            let Some(entry) = queue.pop_ready() else {
                self.read_page(ctx, index);
                return;
            };
            let size = entry.message.size();
            if let Some(session) = self.deliver_entry(ctx, index, sub, entry, false) {
                self.count_burst(ctx, session, size);
            }
        }
        self.retire_plain(index);
    }

    /// Room was made for a subscription whose window was full: all that it serves goes on.
    pub(crate) fn pump_all_of(&mut self, ctx: &mut Context<'_>, sub: usize) {
        if self.subs.contains(sub) {
            for queue in self.served_by(sub) {
                self.pump(ctx, queue);
            }
        }
    }

    /// A subscription without state that has caught up needs its queue no longer.
    fn retire_plain(&mut self, index: usize) {
        if !self.queues[index].in_flight.is_empty() {
            return;
        }
        self.recount(index);
        let queue = &self.queues[index];
        let plain = |sub: &usize| !self.subs[*sub].spec.ack && !self.subs[*sub].spec.durable;
        let leaving: Vec<usize> = queue.subs.iter().copied().filter(plain).collect();
        for sub in &leaving {
            self.subs[*sub].queue = None;
            self.queues[index].subs.retain(|kept| kept != sub);
            self.routes.invalidate();
        }
        self.drop_if_unused(index);
    }

    /// A queue that is current holds in memory all that is stored of it.
    fn recount(&mut self, index: usize) {
        let queue = &mut self.queues[index];
        let in_flight = queue.in_flight.iter().map(|(_, it)| &it.entry);
        let known = in_flight.chain(&queue.ready).filter(|entry| entry.stored);
        let rows = known.count() as u64;
        self.stored = self.stored.saturating_sub(queue.stored) + rows;
        queue.stored = rows;
        queue.doubtful = false;
    }

    fn count_burst(&mut self, ctx: &mut Context<'_>, id: SessionId, size: usize) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.burst += size + 64;
        if session.burst >= BURST_BYTES && !session.paced {
            session.paced = true;
            ctx.out.push(Output::Pace { session: id });
        }
    }

    fn read_page(&mut self, ctx: &mut Context<'_>, index: usize) {
        let reference = self.queue_ref(index);
        let queue = &mut self.queues[index];
        let key = queue.key.clone();
        let Some(backlog) = queue
            .backlog
            .as_mut()
            .filter(|backlog| backlog.reading.is_none())
        else {
            return;
        };
        if backlog.not_before_ms > ctx.now.mono_ms {
            return;
        }
        let round = self.next_order;
        self.next_order += 1;
        backlog.reading = Some(round);
        backlog.grown = false;
        backlog.passed.clear();
        let op = StoreOp::Fetch {
            queue: key,
            after: backlog.after,
            limit: PAGE_MESSAGES,
            max_bytes: PAGE_BYTES,
        };
        ctx.store(
            self.index,
            op,
            Purpose::Fetch {
                queue: reference,
                round,
            },
        );
    }

    pub(crate) fn on_page(
        &mut self,
        ctx: &mut Context<'_>,
        wanted: QueueRef,
        round: u64,
        result: StoreResult,
    ) {
        let index = wanted.index;
        let queue = self.queues.get_mut(index);
        let Some(queue) = queue.filter(|queue| queue.unique == wanted.unique) else {
            return;
        };
        let backlog = queue.backlog.as_mut();
        let Some(backlog) = backlog.filter(|backlog| backlog.reading == Some(round)) else {
            return;
        };
        backlog.reading = None;
        let Ok(StoreReply::Page {
            messages,
            exhausted,
        }) = result
        else {
            self.counters.store_failures += 1;
            backlog.not_before_ms = ctx.now.mono_ms + FETCH_RETRY_MS;
            self.arm(ctx, index, ctx.now.mono_ms + FETCH_RETRY_MS);
            return;
        };
        let passed = std::mem::take(&mut backlog.passed);
        let current = exhausted && !backlog.grown;
        if let Some(last) = messages.last() {
            backlog.after = last.position;
            queue.tail = last.position;
        }
        if current {
            queue.backlog = None;
        }
        for message in messages {
            let known = passed.contains(&message.id) || self.tracked.contains_key(&message.id);
            if !known && !self.unsettled.holds(&message.id) {
                queue.push_ready(Entry::from(message));
            }
        }
        if current {
            self.recount(index);
        }
        self.pump(ctx, index);
    }

    /// Sets the timer of a queue unless an earlier one is set.
    pub(crate) fn arm(&mut self, ctx: &mut Context<'_>, index: usize, at_ms: u64) {
        let queue = &mut self.queues[index];
        if queue.timer_at.is_none_or(|set| at_ms < set) {
            queue.timer_at = Some(at_ms);
            ctx.timers.set(
                at_ms,
                super::clock::Timer::Queue {
                    realm: self.index,
                    queue: index,
                },
            );
        }
    }

    /// Emits a delivery to a subscription's session.
    pub(crate) fn emit(
        &mut self,
        ctx: &mut Context<'_>,
        sub: usize,
        message: Arc<Message>,
        receipt: Option<crate::Receipt>,
    ) {
        let sub = &self.subs[sub];
        if let Some(session) = self.consumers[sub.consumer].session {
            self.counters.delivered += 1;
            self.delivered.count(sub.counter, 1);
            let delivery = Delivery {
                key: sub.delivery_key(),
                message,
                receipt,
            };
            ctx.out.push(Output::Deliver { session, delivery });
        }
    }
}

impl From<StoredMessage> for Entry {
    fn from(stored: StoredMessage) -> Self {
        Self {
            id: stored.id,
            message: stored.message,
            created_at_ms: stored.created_at_ms,
            expires_at_ms: stored.expires_at_ms,
            attempts: stored.attempts,
            stored: true,
            row: 0,
            order: UNDELIVERED,
        }
    }
}
