//! Carries store operations to a store that takes its time: in order, batched by what waits, bounded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::outlet::Flushes;
use super::shard::Shard;
use super::slot::StoreSlot;
use crate::engine::StoreToken;
use crate::store::{Store, StoreError, StoreOp, StoreResult};

/// Operations that wait for the store.
pub(crate) struct Executor {
    waiting: Mutex<Waiting>,
    wake: Notify,
    limits: ExecutorLimits,
}

#[derive(Default)]
struct Waiting {
    ops: Vec<Waits>,
    bytes: usize,
    closed: bool,
}

/// Bounds of what may wait for the store; at each, an enqueue fails and its confirm says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorLimits {
    /// Operations.
    pub max_waiting: usize,
    /// Bytes of their messages.
    pub max_waiting_bytes: usize,
}

impl Default for ExecutorLimits {
    fn default() -> Self {
        Self {
            max_waiting: 200_000,
            max_waiting_bytes: 256 * 1024 * 1024,
        }
    }
}

/// The most operations given to the store at once.
const MAX_BATCH: usize = 4096;

impl Executor {
    pub(crate) fn new(limits: ExecutorLimits) -> Self {
        Self {
            waiting: Mutex::new(Waiting::default()),
            wake: Notify::new(),
            limits,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an operation. Only new messages are refused: everything else makes room or is bounded by what is kept.
    pub(crate) fn push(
        &self,
        shard: usize,
        token: StoreToken,
        op: StoreOp,
    ) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(StoreError::Unavailable(
                "the broker is shutting down".to_owned(),
            ));
        }
        if let StoreOp::Enqueue(stored) = &op {
            let size = stored.message.size();
            if waiting.ops.len() >= self.limits.max_waiting {
                return Err(StoreError::Unavailable(
                    "max_waiting store operations".to_owned(),
                ));
            }
            if waiting.bytes + size > self.limits.max_waiting_bytes {
                return Err(StoreError::Unavailable(
                    "max_waiting_bytes of store operations".to_owned(),
                ));
            }
            waiting.bytes += size;
        }
        let first = waiting.ops.is_empty();
        waiting.ops.push((shard, token, op));
        drop(waiting);
        if first {
            self.wake.notify_one();
        }
        Ok(())
    }

    fn take(&self) -> Vec<Waits> {
        let mut waiting = self.lock();
        if waiting.ops.len() <= MAX_BATCH {
            waiting.bytes = 0;
            return std::mem::take(&mut waiting.ops);
        }
        let rest = waiting.ops.split_off(MAX_BATCH);
        let batch = std::mem::replace(&mut waiting.ops, rest);
        let size = |op: &StoreOp| {
            if let StoreOp::Enqueue(stored) = op {
                stored.message.size()
            } else {
                0
            }
        };
        waiting.bytes -= batch.iter().map(|(_, _, op)| size(op)).sum::<usize>();
        batch
    }

    /// Takes no more operations; the task ends when the last one is done.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// Runs until it is closed and everything is done.
    pub(crate) async fn run(self: Arc<Self>, store: Arc<StoreSlot>, shards: Arc<[Arc<Shard>]>) {
        loop {
            let store = store.enter().await;
            let batch = self.take();
            if batch.is_empty() {
                drop(store);
                if self.lock().closed {
                    return;
                }
                self.wake.notified().await;
                continue;
            }
            self.carry_out(batch, &*store, &shards).await;
        }
    }

    /// A renaming is carried out apart: if it fails, what follows it goes by the old name, as its shard does then.
    async fn carry_out(&self, mut batch: Vec<Waits>, store: &dyn Store, shards: &[Arc<Shard>]) {
        while !batch.is_empty() {
            let is_rename = |(_, _, op): &Waits| matches!(op, StoreOp::RenameRealm { .. });
            let next = batch.iter().position(is_rename).unwrap_or(batch.len());
            let mut rest = batch.split_off(if next == 0 { 1 } else { next });
            let renaming = batch.first().and_then(renaming_of).filter(|_| next == 0);
            let (origins, ops): (Vec<_>, Vec<_>) = batch
                .into_iter()
                .map(|(shard, token, op)| ((shard, token), op))
                .unzip();
            let results = store.execute(ops).await;
            let failed = !matches!(results.first(), Some(Ok(_)));
            report(shards, origins, results);
            if let Some(renaming) = renaming.filter(|_| failed) {
                let mut waiting = self.lock();
                let behind = rest.iter_mut().chain(&mut waiting.ops);
                behind.for_each(|waits| renaming.take_back(waits));
            }
            batch = rest;
        }
    }
}

/// An operation that waits, with its shard and token.
type Waits = (usize, StoreToken, StoreOp);

/// What is to be taken back when a renaming fails.
struct Renaming {
    shard: usize,
    from: Arc<str>,
    to: Arc<str>,
}

impl Renaming {
    fn take_back(&self, (shard, _, op): &mut Waits) {
        // A later attempt, made when this one had failed, stays what it is.
        if *shard == self.shard && !matches!(op, StoreOp::RenameRealm { .. }) {
            op.move_realm(&self.to, &self.from);
        }
    }
}

fn renaming_of((shard, _, op): &Waits) -> Option<Renaming> {
    match op {
        StoreOp::RenameRealm { from, to } => Some(Renaming {
            shard: *shard,
            from: from.clone(),
            to: to.clone(),
        }),
        _ => None,
    }
}

/// Gives each shard its results, in order; a store that gives too few has failed the rest.
fn report(shards: &[Arc<Shard>], origins: Vec<(usize, StoreToken)>, results: Vec<StoreResult>) {
    let missing = || {
        Err(StoreError::Unavailable(
            "the store gave no result".to_owned(),
        ))
    };
    let mut by_shard: Vec<Vec<(StoreToken, StoreResult)>> =
        shards.iter().map(|_| Vec::new()).collect();
    let mut results = results.into_iter();
    for (shard, token) in origins {
        by_shard[shard].push((token, results.next().unwrap_or_else(missing)));
    }
    let mut flushes = Flushes::new();
    for (shard, results) in shards.iter().zip(by_shard) {
        if !results.is_empty() {
            shard.stored(results.into_iter(), &mut flushes);
        }
    }
}
