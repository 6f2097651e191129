//! A store that stands in while another one is away at the start, and gives back when that one is there.
//!
//! What the stand-in kept is copied in order, then the operations go to the other store, then the stand-in is emptied. They
//! wait meanwhile. Positions go on growing over the change, and those that were given before keep their meaning.

mod moving;
mod places;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;
use tracing::{info, warn};
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{
    BoxFuture, DeadLetter, DeadLetterPage, Snapshot, Store, StoreError, StoreOp, StoreReply,
    StoreResult,
};

use moving::Copied;
use places::Places;

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
    /// Set once the primary took over.
    places: Option<Arc<Places>>,
    /// The last position that the stand-in gave.
    last: u64,
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
                return Ok(Self::new(primary, None, closing));
            }
            Err(error) => error,
        };
        let stand_in = (plan.stand_in)().await?;
        warn!(%error, stand_in = stand_in.name(), "the message store is away, another one stands in");
        let store = Self::new(stand_in, None, closing);
        let task = tokio::spawn(watch_for(store.shared.clone(), plan, closed));
        *store.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(store)
    }

    fn new(
        active: Arc<dyn Store>,
        places: Option<Arc<Places>>,
        closing: watch::Sender<bool>,
    ) -> Self {
        let state = State {
            active,
            places,
            last: 0,
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
    let mut copied = Copied::default();
    let moved = copied.copy(&*stand_in, &**primary).await;
    let emptied = match moved {
        Ok(()) => copied.empty(&*stand_in).await,
        Err(error) => Err(error),
    };
    stand_in.close().await;
    emptied
}

/// Waits for the primary and lets it take over.
async fn watch_for(shared: Arc<Shared>, plan: Plan, mut closed: watch::Receiver<bool>) {
    let mut copied = Copied::default();
    loop {
        tokio::select! {
            _ = closed.wait_for(|closed| *closed) => return,
            () = tokio::time::sleep(plan.retry) => {}
        }
        let Ok(primary) = (plan.primary)().await else {
            continue;
        };
        match shared.change_to(&primary, &mut copied).await {
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
        primary: &Arc<dyn Store>,
        copied: &mut Copied,
    ) -> Result<Snapshot, StoreError> {
        let _all = self
            .gate
            .acquire_many(PERMITS)
            .await
            .map_err(|_| closed())?;
        copied.take_back(&**primary).await?;
        let own = primary.load().await?;
        let State {
            active: stand_in,
            last,
            ..
        } = self.state().clone();
        copied.copy(&*stand_in, &**primary).await?;
        let places = copied.places(last);
        *self.state() = State {
            active: primary.clone(),
            places: Some(Arc::new(places)),
            last,
        };
        if let Err(error) = copied.empty(&*stand_in).await {
            warn!(%error, "the stand-in was not emptied: its messages will come again after a restart");
        }
        stand_in.close().await;
        Ok(own)
    }

    /// Places of before follow the realms that were renamed.
    fn follow(&self, renamed: Vec<(usize, Arc<str>, Arc<str>)>, results: &[StoreResult]) {
        for (index, from, to) in renamed {
            if let (Some(Ok(_)), Some(places)) = (results.get(index), &mut self.state().places) {
                Arc::make_mut(places).rename_realm(&from, &to);
            }
        }
    }

    fn note(&self, results: &[StoreResult]) {
        let places = results.iter().filter_map(|result| match result {
            Ok(StoreReply::Enqueued(position)) => Some(position.0),
            Ok(StoreReply::Page { messages, .. }) => messages.last().map(|it| it.position.0),
            _ => None,
        });
        if let Some(last) = places.max() {
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

    fn execute(&self, mut ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>> {
        Box::pin(async move {
            let (_permit, state) = match self.shared.enter().await {
                Ok(entered) => entered,
                Err(error) => return ops.iter().map(|_| Err(error.clone())).collect(),
            };
            if let Some(places) = &state.places {
                ops.iter_mut().for_each(|op| places.translate(op));
            }
            let renamed = renamed(&ops);
            let mut results = state.active.execute(ops).await;
            self.shared.follow(renamed, &results);
            match &state.places {
                Some(places) => results
                    .iter_mut()
                    .for_each(|result| places.translate_back(result)),
                None => self.shared.note(&results),
            }
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

/// Which operations rename realms. What follows one in its batch may read again what it has read.
fn renamed(ops: &[StoreOp]) -> Vec<(usize, Arc<str>, Arc<str>)> {
    let renaming = |(index, op): (usize, &StoreOp)| match op {
        StoreOp::RenameRealm { from, to } => Some((index, from.clone(), to.clone())),
        _ => None,
    };
    ops.iter().enumerate().filter_map(renaming).collect()
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
