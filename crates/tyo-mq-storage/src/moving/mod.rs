//! Moving what one store holds into another one, which goes on in its place.
//!
//! Positions go on growing over the change, and those that were given before keep their meaning.

mod copied;
mod places;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::warn;
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{
    BoxFuture, DeadLetter, DeadLetterPage, InlineStore, Position, Snapshot, Store, StoreError,
    StoreOp, StoreResult,
};

use copied::Copied;
use places::Places;

/// A move, which may need more than one attempt. Nothing else may use the source meanwhile.
#[derive(Default)]
pub struct Move(Copied);

impl Move {
    /// Copies everything; the source keeps it. `last` is the last position of the source that anybody remembers. Gives
    /// the store to go on with, and what the target held by itself. A copy of an earlier attempt is taken back first.
    ///
    /// # Errors
    /// What either store says; the source is as it was.
    pub async fn copy(
        &mut self,
        from: &dyn Store,
        to: Arc<dyn Store>,
        last: Position,
    ) -> Result<(Arc<dyn Store>, Snapshot), StoreError> {
        self.take_back(&*to).await?;
        let own = to.load().await?;
        self.0.copy(from, &*to).await?;
        let places = self.0.places(last.0);
        Ok((Arc::new(MovedStore::new(to, places)), own))
    }

    /// Takes the copies out of the target again.
    ///
    /// # Errors
    /// What the target says; it may be tried again.
    pub async fn take_back(&mut self, to: &dyn Store) -> Result<(), StoreError> {
        self.0.take_back(to).await
    }

    /// The target has taken over: the source is emptied and closed.
    pub async fn finish(self, from: &dyn Store) {
        if let Err(error) = self.0.empty(from).await {
            warn!(
                %error,
                store = from.name(),
                "a message store was not emptied: its messages will come again when it is used again"
            );
        }
        from.close().await;
    }
}

/// A store that took over from another one.
struct MovedStore {
    inner: Arc<dyn Store>,
    places: Mutex<Arc<Places>>,
}

impl MovedStore {
    fn new(inner: Arc<dyn Store>, places: Places) -> Self {
        Self {
            inner,
            places: Mutex::new(Arc::new(places)),
        }
    }

    fn places(&self) -> MutexGuard<'_, Arc<Places>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Places of before follow the realms that were renamed.
    fn follow(&self, renamed: &(usize, Arc<str>, Arc<str>), results: &[StoreResult]) {
        let (index, from, to) = renamed;
        if let Some(Ok(_)) = results.get(*index) {
            Arc::make_mut(&mut self.places()).rename_realm(from, to);
        }
    }
}

impl Store for MovedStore {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn load(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.inner.load()
    }

    fn execute(&self, mut ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>> {
        Box::pin(async move {
            let places = self.places().clone();
            ops.iter_mut().for_each(|op| places.translate(op));
            let renamed = renamed(&ops);
            let mut results = self.inner.execute(ops).await;
            let back = |result| places.translate_back(result);
            results.iter_mut().for_each(back);
            drop(places);
            renamed.iter().for_each(|it| self.follow(it, &results));
            results
        })
    }

    fn dead_letters(
        &self,
        realm: Option<Arc<str>>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<DeadLetterPage, StoreError>> {
        self.inner.dead_letters(realm, after, limit)
    }

    fn dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<Option<DeadLetter>, StoreError>> {
        self.inner.dead_letter(realm, id)
    }

    fn discard_dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.discard_dead_letter(realm, id)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }

    fn as_inline(&self) -> Option<&dyn InlineStore> {
        self.inner.as_inline().map(|_| self as &dyn InlineStore)
    }
}

impl InlineStore for MovedStore {
    fn execute_now(&self, mut op: StoreOp) -> StoreResult {
        let inner = self.inner.as_inline().ok_or(StoreError::Unsupported)?;
        self.places().translate(&mut op);
        let renamed = renaming(0, &op);
        let mut results = [inner.execute_now(op)];
        self.places().translate_back(&mut results[0]);
        if let Some(renamed) = renamed {
            self.follow(&renamed, &results);
        }
        let [result] = results;
        result
    }
}

/// Which operations rename realms. What follows one in its batch may read again what it has read.
fn renamed(ops: &[StoreOp]) -> Vec<(usize, Arc<str>, Arc<str>)> {
    let each = ops.iter().enumerate();
    each.filter_map(|(index, op)| renaming(index, op)).collect()
}

fn renaming(index: usize, op: &StoreOp) -> Option<(usize, Arc<str>, Arc<str>)> {
    match op {
        StoreOp::RenameRealm { from, to } => Some((index, from.clone(), to.clone())),
        _ => None,
    }
}
