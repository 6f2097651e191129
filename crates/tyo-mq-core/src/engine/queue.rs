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
}

/// A delivery that waits for its acknowledgement, or for its retry.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) entry: Entry,
    pub(crate) sub: usize,
    pub(crate) session: SessionId,
    pub(crate) due_ms: u64,
    /// Waiting for the next attempt instead of an acknowledgement.
    pub(crate) retrying: bool,
    /// Order of delivery.
    pub(crate) order: u64,
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

    fn is_unused(&self) -> bool {
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

    /// Forgets what is in memory of the store, to read it again from the start; what is in flight stays.
    pub(crate) fn rescan(&mut self) {
        if self.stored == 0 {
            self.backlog = None;
        } else {
            self.backlog = Some(Backlog::default());
        }
        self.ready.retain(|entry| !entry.stored);
        self.ready_bytes = self.ready.iter().map(|entry| entry.message.size()).sum();
    }
}

impl Realm {
    pub(crate) fn queue_ref(&self, index: usize) -> QueueRef {
        QueueRef {
            index,
            unique: self.queues[index].unique,
        }
    }

    pub(crate) fn queue_by_ref(&mut self, wanted: QueueRef) -> Option<&mut Queue> {
        self.queues
            .get_mut(wanted.index)
            .filter(|queue| queue.unique == wanted.unique)
    }

    /// The queue of a name, made if there is none.
    pub(crate) fn queue_named(&mut self, key: &Arc<str>, consumer: &Arc<str>) -> usize {
        if let Some(&index) = self
            .queue_names
            .get(key)
            .and_then(|consumers| consumers.get(consumer))
        {
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

    /// A subscription is there, or changed, or its consumer came online: it takes what waits for it.
    pub(crate) fn revive(&mut self, ctx: &mut Context<'_>, sub: usize) {
        let spec = &self.subs[sub].spec;
        let (wants_queue, group) = (spec.ack || spec.durable, spec.group.clone());
        let waits = self
            .queue_names
            .get(&self.subs[sub].key)
            .is_some_and(|it| it.contains_key(&self.subs[sub].consumer_id));
        if wants_queue || waits {
            let queue = self.queue_of(sub);
            self.queues[queue].group = group.clone();
            self.refresh_drainers(queue);
            self.pump(ctx, queue);
        }
        if let Some(group) = group {
            self.rebalance(ctx, &group, &self.subs[sub].key.clone());
        }
    }

    /// Lets the online members of a group take over the queues of those that are away.
    pub(crate) fn rebalance(&mut self, ctx: &mut Context<'_>, group: &Arc<str>, key: &Arc<str>) {
        let Some(members) = self.groups.get(group).map(|group| group.members.clone()) else {
            return;
        };
        let queues: Vec<usize> = members
            .iter()
            .filter_map(|member| self.subs[*member].queue)
            .collect();
        for queue in queues {
            if self
                .queues
                .get(queue)
                .is_some_and(|queue| queue.key.key == *key)
            {
                self.refresh_drainers(queue);
                self.pump(ctx, queue);
            }
        }
    }

    /// Who drains: online subscriptions of this identity, else online members of its group with the same key.
    pub(crate) fn refresh_drainers(&mut self, index: usize) {
        let queue = &self.queues[index];
        let online = |sub: &usize| self.consumers[self.subs[*sub].consumer].session.is_some();
        let mut drainers: Vec<usize> = queue.subs.iter().copied().filter(online).collect();
        if drainers.is_empty()
            && let Some(group) = queue
                .group
                .as_ref()
                .and_then(|group| self.groups.get(group))
        {
            let same_key = |sub: &usize| self.subs[*sub].key == queue.key.key;
            drainers = group
                .members
                .iter()
                .copied()
                .filter(same_key)
                .filter(online)
                .collect();
        }
        self.queues[index].drainers = drainers;
    }

    /// A subscription ends or changes its identity: what it has in hand goes back.
    pub(crate) fn leave_queue(&mut self, ctx: &mut Context<'_>, sub: usize) {
        let Some(index) = self.subs[sub].queue.take() else {
            return;
        };
        self.queues[index].subs.retain(|kept| *kept != sub);
        self.release(ctx, |in_flight| in_flight.sub == sub, index);
        self.drop_if_unused(index);
        self.routes.invalidate();
    }

    pub(crate) fn drop_if_unused(&mut self, index: usize) {
        let Some(queue) = self.queues.get(index).filter(|queue| queue.is_unused()) else {
            return;
        };
        let key = queue.key.clone();
        self.queues.remove(index);
        if let Some(consumers) = self.queue_names.get_mut(&key.key) {
            consumers.remove(&key.consumer);
            if consumers.is_empty() {
                self.queue_names.remove(&key.key);
            }
        }
    }

    /// Everything that a gone session had in hand is free at once, for whoever drains now.
    pub(crate) fn release_session(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        consumers: &[usize],
    ) {
        let mut concerned: Vec<usize> = Vec::new();
        let mut groups: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        for consumer in consumers
            .iter()
            .filter(|consumer| self.consumers[**consumer].session.is_none())
        {
            for index in self.consumers[*consumer].subs.clone() {
                let sub = &self.subs[index];
                if sub.spec.durable {
                    self.save_subscription(ctx, index, Some(ctx.now.wall_ms));
                }
                concerned.extend(sub.queue);
                if let Some(group) = &sub.spec.group {
                    groups.push((group.clone(), sub.key.clone()));
                }
            }
        }
        // Queues of others that this session had taken over.
        for (group, key) in groups {
            let members = self
                .groups
                .get(&group)
                .map(|group| group.members.as_slice())
                .unwrap_or_default();
            let of_key = members
                .iter()
                .filter_map(|it| self.subs[*it].queue)
                .filter(|it| self.queues[*it].key.key == key);
            concerned.extend(of_key);
        }
        concerned.sort_unstable();
        concerned.dedup();
        for queue in concerned {
            if self.queues.contains(queue) {
                self.release(ctx, |in_flight| in_flight.session == session, queue);
            }
        }
    }

    /// Takes deliveries back. With a drainer left they come first again; else the store keeps those it has.
    fn release(&mut self, ctx: &mut Context<'_>, which: impl Fn(&InFlight) -> bool, index: usize) {
        self.refresh_drainers(index);
        let queue = &mut self.queues[index];
        let slots: Vec<usize> = queue
            .in_flight
            .iter()
            .filter(|(_, it)| which(it))
            .map(|(slot, _)| slot)
            .collect();
        let mut taken: Vec<InFlight> = slots
            .into_iter()
            .map(|slot| queue.in_flight.remove(slot))
            .collect();
        taken.sort_unstable_by_key(|in_flight| in_flight.order);
        for in_flight in &taken {
            self.tracked.remove(&in_flight.entry.id);
            if let Some(sub) = self.subs.get_mut(in_flight.sub) {
                sub.in_flight = sub.in_flight.saturating_sub(1);
            }
        }
        let queue = &mut self.queues[index];
        if queue.drainers.is_empty() {
            queue.ready.clear();
            queue.rescan();
            return;
        }
        for in_flight in taken.into_iter().rev() {
            queue.pass(&in_flight.entry.id);
            queue.ready_bytes += in_flight.entry.message.size();
            queue.ready.push_front(in_flight.entry);
        }
        self.pump(ctx, index);
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

    fn window(&self, prefetch: Option<u32>) -> u32 {
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

    /// A subscription without state that has caught up needs its queue no longer.
    fn retire_plain(&mut self, index: usize) {
        let queue = &self.queues[index];
        if queue.stored > 0 || !queue.in_flight.is_empty() {
            return;
        }
        let plain = |sub: &usize| !self.subs[*sub].spec.ack && !self.subs[*sub].spec.durable;
        let leaving: Vec<usize> = queue.subs.iter().copied().filter(plain).collect();
        for sub in &leaving {
            self.subs[*sub].queue = None;
            self.queues[index].subs.retain(|kept| kept != sub);
            self.routes.invalidate();
        }
        self.drop_if_unused(index);
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
        let Some(queue) = self
            .queues
            .get_mut(index)
            .filter(|queue| queue.unique == wanted.unique)
        else {
            return;
        };
        let Some(backlog) = queue
            .backlog
            .as_mut()
            .filter(|backlog| backlog.reading == Some(round))
        else {
            return;
        };
        backlog.reading = None;
        let Ok(StoreReply::Page {
            messages,
            exhausted,
        }) = result
        else {
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
            if !passed.contains(&message.id) && !self.tracked.contains_key(&message.id) {
                queue.push_ready(Entry::from(message));
            }
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
        }
    }
}
