//! The store in memory: constant time for each operation, bounded, gone with the process.

mod realms;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use slab::Slab;

use crate::message::MessageId;
use crate::store::{
    BoxFuture, DeadLetter, DeadLetterPage, DurableSubscription, InlineStore, Position, QueueKey,
    Snapshot, Store, StoreError, StoreOp, StoreReply, StoreResult, StoredMessage,
};

/// Bounds of a [`MemoryStore`]; at each, an enqueue fails with [`StoreError::Full`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Messages and dead letters together.
    pub max_messages: usize,
    /// Bytes of their content.
    pub max_bytes: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            max_messages: 10_000_000,
            max_bytes: 4 * 1024 * 1024 * 1024,
        }
    }
}

/// Keeps messages in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    limits: MemoryLimits,
    /// Queues that hold messages.
    queues: Slab<Rows>,
    queue_names: HashMap<Arc<QueueKey>, usize>,
    /// Where each message is: its queue and its position there.
    places: HashMap<MessageId, (usize, Position)>,
    letters: BTreeMap<u64, DeadLetter>,
    letter_numbers: HashMap<MessageId, u64>,
    subscriptions: BTreeMap<(QueueKey, Arc<str>), DurableSubscription>,
    bytes: usize,
    next: u64,
}

/// Messages of one queue by position; gaps are messages that are gone.
#[derive(Debug)]
struct Rows {
    key: Arc<QueueKey>,
    slots: VecDeque<Slot>,
    live: usize,
}

#[derive(Debug)]
struct Slot {
    position: Position,
    stored: Option<StoredMessage>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(limits: MemoryLimits) -> Self {
        Self {
            state: Mutex::new(State {
                limits,
                ..State::default()
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InlineStore for MemoryStore {
    fn execute_now(&self, op: StoreOp) -> StoreResult {
        self.lock().execute(op)
    }
}

impl Store for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn load(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async { Ok(self.lock().snapshot()) })
    }

    fn execute(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>> {
        Box::pin(async {
            let mut state = self.lock();
            ops.into_iter().map(|op| state.execute(op)).collect()
        })
    }

    fn dead_letters(
        &self,
        realm: Option<Arc<str>>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<DeadLetterPage, StoreError>> {
        Box::pin(async move { Ok(self.lock().dead_letters(realm.as_deref(), after, limit)) })
    }

    fn dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<Option<DeadLetter>, StoreError>> {
        Box::pin(async move {
            Ok(self
                .lock()
                .letter(realm.as_deref(), &id)
                .map(|(_, letter)| letter.clone()))
        })
    }

    fn discard_dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.lock().take_letter(realm.as_deref(), &id).is_some()) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn as_inline(&self) -> Option<&dyn InlineStore> {
        Some(self)
    }
}

impl Rows {
    fn place(&self, position: Position) -> Option<usize> {
        self.slots
            .binary_search_by_key(&position, |slot| slot.position)
            .ok()
    }

    fn take(&mut self, position: Position) -> Option<StoredMessage> {
        let place = self.place(position)?;
        let stored = self.slots[place].stored.take()?;
        self.live -= 1;
        while self.slots.front().is_some_and(|slot| slot.stored.is_none()) {
            self.slots.pop_front();
        }
        // Messages that stay at the head must not keep the gaps behind them.
        if self.slots.len() > 2 * self.live + MAX_GAPS {
            self.slots.retain(|slot| slot.stored.is_some());
        }
        Some(stored)
    }
}

/// Gaps that a queue may have besides as many as it has messages.
const MAX_GAPS: usize = 64;

impl State {
    fn execute(&mut self, op: StoreOp) -> StoreResult {
        match op {
            StoreOp::Enqueue(stored) => self.enqueue(stored).map(StoreReply::Enqueued),
            StoreOp::Fetch {
                queue,
                after,
                limit,
                max_bytes,
            } => Ok(self.page(&queue, after, limit, max_bytes)),
            StoreOp::PurgeExpired {
                realm,
                now_ms,
                to_dead_letters,
            } => {
                let purged = self.purge_expired(&realm, now_ms, to_dead_letters);
                Ok(StoreReply::Purged(purged))
            }
            StoreOp::Requeue {
                realm,
                id,
                expires_at_ms,
                now_ms,
            } => {
                let queue = self.requeue(&realm, &id, expires_at_ms, now_ms);
                Ok(StoreReply::Requeued(queue))
            }
            other => {
                self.change(other);
                Ok(StoreReply::Done)
            }
        }
    }

    /// Operations that cannot fail and give nothing back.
    fn change(&mut self, op: StoreOp) {
        match op {
            StoreOp::Remove { id, .. } => _ = self.take(&id),
            StoreOp::SetAttempts { id, attempts, .. } => self.set_attempts(&id, attempts),
            StoreOp::DeadLetter(letter) => {
                self.take(&letter.stored.id);
                self.bury(*letter);
            }
            StoreOp::PutSubscription(subscription) => {
                let name = subscription.consumer_name.clone();
                let key = (subscription.queue.clone(), name);
                self.subscriptions.insert(key, *subscription);
            }
            StoreOp::RemoveSubscription {
                queue,
                consumer_name,
            } => _ = self.subscriptions.remove(&(queue, consumer_name)),
            StoreOp::PurgeRealm { realm } => self.purge_realm(&realm),
            StoreOp::RenameRealm { from, to } => self.rename_realm(&from, &to),
            StoreOp::Enqueue(_)
            | StoreOp::Fetch { .. }
            | StoreOp::PurgeExpired { .. }
            | StoreOp::Requeue { .. } => {}
        }
    }

    fn enqueue(&mut self, stored: StoredMessage) -> Result<Position, StoreError> {
        let size = stored.message.size();
        if self.places.len() + self.letters.len() >= self.limits.max_messages {
            return Err(StoreError::Full("max_messages".to_owned()));
        }
        if self.bytes + size > self.limits.max_bytes {
            return Err(StoreError::Full("max_bytes".to_owned()));
        }
        Ok(self.append(stored))
    }

    fn append(&mut self, mut stored: StoredMessage) -> Position {
        let size = stored.message.size();
        self.take(&stored.id);
        self.next += 1;
        let position = Position(self.next);
        stored.position = position;
        self.bytes += size;
        let queue = self.queue_named(&stored.queue);
        self.places.insert(stored.id.clone(), (queue, position));
        let rows = &mut self.queues[queue];
        rows.live += 1;
        rows.slots.push_back(Slot {
            position,
            stored: Some(stored),
        });
        position
    }

    /// The place of a queue, made if there is none.
    fn queue_named(&mut self, key: &Arc<QueueKey>) -> usize {
        if let Some(queue) = self.queue_names.get(key) {
            return *queue;
        }
        let queue = self.queues.insert(Rows {
            key: key.clone(),
            slots: VecDeque::new(),
            live: 0,
        });
        self.queue_names.insert(key.clone(), queue);
        queue
    }

    fn remove_queue(&mut self, queue: usize) -> Rows {
        let rows = self.queues.remove(queue);
        self.queue_names.remove(&rows.key);
        rows
    }

    fn take(&mut self, id: &MessageId) -> Option<StoredMessage> {
        let (queue, position) = self.places.remove(id)?;
        let rows = &mut self.queues[queue];
        let stored = rows.take(position)?;
        if rows.live == 0 {
            self.remove_queue(queue);
        }
        self.bytes -= stored.message.size();
        Some(stored)
    }

    fn set_attempts(&mut self, id: &MessageId, attempts: u32) {
        let Some((queue, position)) = self.places.get(id) else {
            return;
        };
        let rows = &mut self.queues[*queue];
        if let Some(stored) = rows
            .place(*position)
            .and_then(|place| rows.slots[place].stored.as_mut())
        {
            stored.attempts = attempts;
        }
    }

    fn bury(&mut self, letter: DeadLetter) {
        self.next += 1;
        self.bytes += letter.stored.message.size();
        let id = letter.stored.id.clone();
        self.letters.insert(self.next, letter);
        if let Some(old) = self.letter_numbers.insert(id, self.next) {
            self.remove_letter(old);
        }
    }

    fn remove_letter(&mut self, number: u64) -> Option<DeadLetter> {
        let letter = self.letters.remove(&number)?;
        self.bytes -= letter.stored.message.size();
        Some(letter)
    }

    fn letter(&self, realm: Option<&str>, id: &MessageId) -> Option<(u64, &DeadLetter)> {
        let number = *self.letter_numbers.get(id)?;
        let letter = self.letters.get(&number)?;
        realm
            .is_none_or(|realm| *letter.stored.queue.realm == *realm)
            .then_some((number, letter))
    }

    fn take_letter(&mut self, realm: Option<&str>, id: &MessageId) -> Option<DeadLetter> {
        let (number, _) = self.letter(realm, id)?;
        self.letter_numbers.remove(id);
        self.remove_letter(number)
    }

    fn page(
        &self,
        queue: &QueueKey,
        after: Position,
        limit: usize,
        max_bytes: usize,
    ) -> StoreReply {
        let Some(rows) = self
            .queue_names
            .get(queue)
            .map(|queue| &self.queues[*queue])
        else {
            return StoreReply::Page {
                messages: Vec::new(),
                exhausted: true,
            };
        };
        let start = rows.slots.partition_point(|slot| slot.position <= after);
        let mut behind = rows
            .slots
            .range(start..)
            .filter_map(|slot| slot.stored.as_ref());
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while messages.len() < limit && bytes < max_bytes {
            let Some(stored) = behind.next() else {
                return StoreReply::Page {
                    messages,
                    exhausted: true,
                };
            };
            bytes += stored.message.size();
            messages.push(stored.clone());
        }
        StoreReply::Page {
            exhausted: behind.next().is_none(),
            messages,
        }
    }

    fn requeue(
        &mut self,
        realm: &str,
        id: &MessageId,
        expires_at_ms: Option<u64>,
        now_ms: u64,
    ) -> Option<QueueKey> {
        let mut stored = self.take_letter(Some(realm), id)?.stored;
        stored.attempts = 0;
        if stored.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            stored.expires_at_ms = expires_at_ms;
        }
        let key = (*stored.queue).clone();
        // It only changes its place: no limit can refuse it.
        self.append(stored);
        Some(key)
    }

    fn dead_letters(
        &self,
        realm: Option<&str>,
        after: Option<u64>,
        limit: usize,
    ) -> DeadLetterPage {
        let behind = self.letters.range(after.map_or(0, |after| after + 1)..);
        let mut of_realm = behind
            .filter(|(_, it)| realm.is_none_or(|realm| *it.stored.queue.realm == *realm))
            .peekable();
        let mut page = DeadLetterPage::default();
        while page.letters.len() < limit {
            let Some((number, letter)) = of_realm.next() else {
                break;
            };
            page.letters.push(letter.clone());
            page.next = of_realm.peek().map(|_| *number);
        }
        page
    }

    fn snapshot(&self) -> Snapshot {
        let mut queues: Vec<(QueueKey, u64)> = self
            .queues
            .iter()
            .map(|(_, rows)| ((*rows.key).clone(), rows.live as u64))
            .collect();
        queues.sort_unstable();
        Snapshot {
            subscriptions: self.subscriptions.values().cloned().collect(),
            queues,
        }
    }
}
