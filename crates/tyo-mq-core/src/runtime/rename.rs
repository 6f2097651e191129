//! Realms with a new name: they stay in the shard of their old one, and their sessions learn what they are called.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Broker;
use crate::engine::{LimitReached, RenameError};
use crate::store::StoreError;

/// Renamed realms that a broker keeps apart from where their names belong; beyond, renaming is refused.
pub const MAX_MOVED_REALMS: usize = 100_000;

/// Where renamed realms are.
#[derive(Default)]
pub(super) struct Moved {
    shards: RwLock<Shards>,
    /// Rises when names have changed.
    changes: AtomicU64,
}

/// Shards by the names of realms that are not where their name belongs.
#[derive(Default)]
pub(super) struct Shards(HashMap<Arc<str>, usize>);

/// What a session knows of its realm's name, and after how many changes.
#[derive(Default)]
pub(super) struct KnownRealm(Mutex<(u64, Arc<str>)>);

impl Moved {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Shards> {
        self.shards.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shards> {
        self.shards.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shard_of(&self, realm: &str) -> Option<usize> {
        self.read().shard_of(realm)
    }

    pub(super) fn forget(&self, realm: &str) {
        if self.shard_of(realm).is_some() {
            self.write().0.remove(realm);
        }
    }

    fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}

impl Shards {
    pub(super) fn shard_of(&self, realm: &str) -> Option<usize> {
        self.0.get(realm).copied()
    }
}

impl KnownRealm {
    /// The name, looked up only if names have changed since the last time.
    pub(super) fn name(&self, moved: &Moved, look: impl FnOnce() -> Option<Arc<str>>) -> Arc<str> {
        // Counted from 1, so that nothing is known at first.
        let changes = moved.changes.load(Ordering::Acquire) + 1;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != changes
            && let Some(name) = look()
        {
            *known = (changes, name);
        }
        known.1.clone()
    }
}

impl Broker {
    /// Gives a realm another name, with its sessions, subscriptions, messages and dead letters. Sessions go on in it.
    /// When this returns, the store has followed.
    ///
    /// # Errors
    /// When there is a realm of that name, the realm is `default` or `*`, or the store fails; then nothing has changed.
    pub async fn rename_realm(&self, from: &str, to: &str) -> Result<(), RenameError> {
        let answer = self.begin_rename(from, to)?;
        self.inner.moved.note_change();
        let result = answer.await.unwrap_or_else(|_| {
            let why = "the broker is shutting down".to_owned();
            Err(StoreError::Unavailable(why).into())
        });
        // Who asked before knows the old name, and it is again that of another realm, or of this one.
        self.inner.moved.forget(match &result {
            Ok(()) => from,
            Err(_) => to,
        });
        self.inner.moved.note_change();
        result
    }

    fn begin_rename(&self, from: &str, to: &str) -> Result<Answer, RenameError> {
        let mut shards = self.inner.moved.write();
        let index_of = |realm: &str| {
            let moved = shards.shard_of(realm);
            moved.unwrap_or_else(|| self.hashed_index(realm))
        };
        let (here, there) = (index_of(from), index_of(to));
        let is_taken = self.inner.shards[there].read(|engine| engine.holds_realm(to));
        if is_taken {
            return Err(RenameError::Exists(to.to_owned()));
        }
        if there != here {
            if shards.0.len() >= MAX_MOVED_REALMS {
                return Err(LimitReached("max_moved_realms").into());
            }
            shards.0.insert(to.into(), here);
        }
        Ok(self.inner.shards[here].rename_realm(from, to))
    }
}

/// The engine's answer, when it has one.
type Answer = tokio::sync::oneshot::Receiver<Result<(), RenameError>>;
