//! The store in use, and the change to another one.

use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::Broker;
use crate::engine::{Engine, Input};
use crate::store::{Position, Store};

/// Holds the store. Whoever uses it enters; a change waits until nobody does.
pub(crate) struct StoreSlot {
    gate: Semaphore,
    /// One change at a time.
    changes: Semaphore,
    active: Mutex<Arc<dyn Store>>,
}

/// The store, while it stays in use.
pub(crate) struct Entered<'a> {
    store: Arc<dyn Store>,
    _permit: SemaphorePermit<'a>,
}

/// Uses at a time; more than there are callers.
const PERMITS: u32 = 4096;

/// Nobody closes the semaphores.
const OPEN: &str = "the semaphores are never closed";

impl StoreSlot {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            gate: Semaphore::new(PERMITS as usize),
            changes: Semaphore::new(1),
            active: Mutex::new(store),
        }
    }

    pub(crate) fn current(&self) -> Arc<dyn Store> {
        self.active
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, store: Arc<dyn Store>) {
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = store;
    }

    pub(crate) async fn enter(&self) -> Entered<'_> {
        let permit = self.gate.acquire().await.expect(OPEN);
        Entered {
            store: self.current(),
            _permit: permit,
        }
    }
}

impl Deref for Entered<'_> {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl Broker {
    /// Lets another store take over while the broker runs.
    ///
    /// `change` is given the present store and the last position that anybody remembers of it, and gives the store to go
    /// on with: it has to hold what the present one does, with positions of before keeping their meaning and new ones
    /// behind them. Meanwhile nobody uses the store, and operations wait within [`ExecutorLimits`](super::ExecutorLimits). If
    /// it fails, or is dropped, the present store stays. To close that one is up to the caller.
    ///
    /// # Errors
    /// What `change` says.
    pub async fn change_store<F, E>(
        &self,
        change: impl FnOnce(Arc<dyn Store>, Position) -> F,
    ) -> Result<(), E>
    where
        F: Future<Output = Result<Arc<dyn Store>, E>>,
    {
        let (slot, shards) = (&self.inner.store, &self.inner.shards);
        let _turn = slot.changes.acquire().await.expect(OPEN);
        shards.iter().for_each(|shard| shard.leave_inline());
        let everybody = slot.gate.acquire_many(PERMITS).await.expect(OPEN);
        let last = shards
            .iter()
            .map(|shard| shard.read(Engine::last_position))
            .max();
        let changed = change(slot.current(), last.unwrap_or_default()).await;
        let outcome = changed.map(|store| slot.set(store));
        drop(everybody);
        let store = slot.current();
        if store.as_inline().is_some() {
            shards
                .iter()
                .for_each(|shard| shard.go_inline(store.clone()));
        }
        outcome
    }

    /// Sets how long a stored message lives if nobody says; `None` is for ever.
    pub fn set_default_ttl(&self, ttl_ms: Option<u64>) {
        for shard in self.inner.shards.iter() {
            shard.input(Input::DefaultTtl(ttl_ms), &mut super::Flushes::new());
        }
    }
}
