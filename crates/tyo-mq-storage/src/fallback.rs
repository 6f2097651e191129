//! A store that stands in while another one is away at the start, and gives back when that one is there.
//!
//! What the stand-in kept is copied in order, then the operations go to the other store, then the stand-in is emptied. They
//! wait meanwhile. Positions go on growing over the change, and those that were given before keep their meaning.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;
use tracing::{info, warn};
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{
    BoxFuture, DeadLetter, DeadLetterPage, Position, Snapshot, Store, StoreError, StoreOp,
    StoreReply, StoreResult,
};

use crate::moving::Move;

/// Opens a store.
pub type Opener =
    Box<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Store>, StoreError>> + Send + Sync>;

/// Which stores there are and what to do when.
pub struct Plan {
    /// The store that is wanted.
    pub primary: Opener,
    /// The one that stands in.
    pub stand_in: Opener,
    /// The stand-in may hold something from before: it is opened and emptied even if the primary is there.
    pub stand_in_exists: bool,
    /// The wait between looks at a primary that is away.
    pub retry: Duration,
    /// Told what the primary held by itself when it came back; the broker has not heard of that.
    pub on_return: Box<dyn Fn(Snapshot) + Send + Sync>,
}

/// Keeps messages in a store, or in another one while that is away at the start.
pub struct FallbackStore {
    shared: Arc<Shared>,
    watcher: Mutex<Option<JoinHandle<()>>>,
    closing: watch::Sender<bool>,
}

struct Shared {
    /// Operations take one, the change takes all.
    gate: Semaphore,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    active: Arc<dyn Store>,
    /// The last position that it gave.
    last: Position,
}

/// Operations at a time; more than any broker has under way.
const PERMITS: u32 = 1024;

impl FallbackStore {
    /// Opens the primary; without it the stand-in, and then looks for the primary until it is there. It must be called inside
    /// a tokio runtime.
    ///
    /// # Errors
    /// When neither can be opened, or what the stand-in holds from before cannot be moved.
    pub async fn open(plan: Plan) -> Result<Self, StoreError> {
        let (closing, closed) = watch::channel(false);
        let error = match (plan.primary)().await {
            Ok(primary) => {
                if plan.stand_in_exists {
                    bring_over(&plan, &primary).await?;
                }
                return Ok(Self::new(primary, closing));
            }
            Err(error) => error,
        };
        let stand_in = (plan.stand_in)().await?;
        warn!(%error, stand_in = stand_in.name(), "the message store is away, another one stands in");
        let store = Self::new(stand_in, closing);
        let task = tokio::spawn(watch_for(store.shared.clone(), plan, closed));
        *store.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(store)
    }

    fn new(active: Arc<dyn Store>, closing: watch::Sender<bool>) -> Self {
        let state = State {
            active,
            last: Position::default(),
        };
        let shared = Shared {
            gate: Semaphore::new(PERMITS as usize),
            state: Mutex::new(state),
        };
        Self {
            shared: Arc::new(shared),
            watcher: Mutex::new(None),
            closing,
        }
    }
}

/// Empties a stand-in of an earlier run into the primary.
async fn bring_over(plan: &Plan, primary: &Arc<dyn Store>) -> Result<(), StoreError> {
    let stand_in = (plan.stand_in)().await?;
    let mut moving = Move::default();
    let copied = moving
        .copy(&*stand_in, primary.clone(), Position::default())
        .await;
    match copied {
        Ok(_) => moving.finish(&*stand_in).await,
        Err(_) => stand_in.close().await,
    }
    copied.map(|_| ())
}

/// Waits for the primary and lets it take over.
async fn watch_for(shared: Arc<Shared>, plan: Plan, mut closed: watch::Receiver<bool>) {
    let mut moving = Move::default();
    loop {
        tokio::select! {
            _ = closed.wait_for(|closed| *closed) => return,
            () = tokio::time::sleep(plan.retry) => {}
        }
        let Ok(primary) = (plan.primary)().await else {
            continue;
        };
        match shared.change_to(primary.clone(), &mut moving).await {
            Ok(own) => {
                info!(
                    store = primary.name(),
                    "the message store is back and has taken over"
                );
                (plan.on_return)(own);
                return;
            }
            Err(error) => {
                warn!(%error, "the message store is back but cannot take over yet");
                primary.close().await;
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn enter(&self) -> Result<(SemaphorePermit<'_>, State), StoreError> {
        let permit = self.gate.acquire().await.map_err(|_| closed())?;
        let state = self.state().clone();
        Ok((permit, state))
    }

    /// Gives what the primary held by itself.
    async fn change_to(
        &self,
        primary: Arc<dyn Store>,
        moving: &mut Move,
    ) -> Result<Snapshot, StoreError> {
        let _all = self
            .gate
            .acquire_many(PERMITS)
            .await
            .map_err(|_| closed())?;
        let State {
            active: stand_in,
            last,
        } = self.state().clone();
        let (store, own) = moving.copy(&*stand_in, primary, last).await?;
        self.state().active = store;
        std::mem::take(moving).finish(&*stand_in).await;
        Ok(own)
    }

    fn note(&self, results: &[StoreResult]) {
        let positions = results.iter().filter_map(|result| match result {
            Ok(StoreReply::Enqueued(position)) => Some(*position),
            Ok(StoreReply::Page { messages, .. }) => messages.last().map(|it| it.position),
            _ => None,
        });
        if let Some(last) = positions.max() {
            let mut state = self.state();
            state.last = state.last.max(last);
        }
    }
}

impl Store for FallbackStore {
    /// The name of the store in use.
    fn name(&self) -> &'static str {
        self.shared.state().active.name()
    }

    fn load(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async {
            let (_permit, state) = self.shared.enter().await?;
            state.active.load().await
        })
    }

    fn execute(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>> {
        Box::pin(async move {
            let (_permit, state) = match self.shared.enter().await {
                Ok(entered) => entered,
                Err(error) => return ops.iter().map(|_| Err(error.clone())).collect(),
            };
            let results = state.active.execute(ops).await;
            self.shared.note(&results);
            results
        })
    }

    fn dead_letters(
        &self,
        realm: Option<Arc<str>>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<DeadLetterPage, StoreError>> {
        Box::pin(async move {
            let (_permit, state) = self.shared.enter().await?;
            state.active.dead_letters(realm, after, limit).await
        })
    }

    fn dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<Option<DeadLetter>, StoreError>> {
        Box::pin(async move {
            let (_permit, state) = self.shared.enter().await?;
            state.active.dead_letter(realm, id).await
        })
    }

    fn discard_dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let (_permit, state) = self.shared.enter().await?;
            state.active.discard_dead_letter(realm, id).await
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.closing.send_replace(true);
            let watcher = self
                .watcher
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(watcher) = watcher {
                // A change under way is finished first.
                drop(watcher.await);
            }
            // Whatever has entered is answered first.
            if let Ok(all) = self.shared.gate.acquire_many(PERMITS).await {
                self.shared.gate.close();
                drop(all);
                let active = self.shared.state().active.clone();
                active.close().await;
            }
        })
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
