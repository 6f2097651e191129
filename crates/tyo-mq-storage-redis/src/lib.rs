//! The message store in Redis: the reference broker's keys, changed by scripts, so that each batch is one step for everybody.
//!
//! Beside the reference's keys stand ours: `clock` (order), `counts`, `attempts:…`, `expiry:…` and `subscriptions:…`. An index
//! score is a time in milliseconds with a fraction, larger than any before it, so first in is first out.
//! Several brokers may share the keys, also with the reference's.
#![forbid(unsafe_code)]

mod batch;
mod connection;
mod error;
mod keys;
mod letters;
mod load;
mod queue;
mod rename;
mod script;

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{
    BoxFuture, DeadLetter, DeadLetterPage, Snapshot, Store, StoreError, StoreOp, StoreReply,
    StoreResult,
};
use tyo_mq_storage::RedisConfig;

use batch::Batch;
use connection::Connection;
use keys::Keys;

/// Keeps messages in Redis.
pub struct RedisStore {
    connection: Connection,
    keys: Keys,
    keep_expired_ms: u64,
    /// One batch at a time, in the order of arrival.
    turn: Semaphore,
}

impl RedisStore {
    /// Connects and waits for the first answer, at most for the probe's time.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when there is none, or the settings are no address.
    pub async fn open(config: &RedisConfig) -> Result<Self, StoreError> {
        let store = Self::start(config)?;
        if let Err(error) = store.probe().await {
            store.close().await;
            return Err(error);
        }
        Ok(store)
    }

    /// Begins to connect and goes on trying; operations fail while it has not succeeded. It must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// When the settings are no address.
    pub fn start(config: &RedisConfig) -> Result<Self, StoreError> {
        let keys = Keys::new(&config.prefix);
        Ok(Self {
            connection: Connection::start(config, keys.clock())?,
            keys,
            keep_expired_ms: u64::try_from(config.keep_expired.as_millis()).unwrap_or(u64::MAX),
            turn: Semaphore::new(1),
        })
    }

    /// Asks the server for a sign of life, at most for the probe's time.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] without one.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.connection.probe().await
    }

    /// How many messages of a realm wait, of all brokers that share the keys.
    ///
    /// # Errors
    /// When Redis is away.
    pub async fn count(&self, realm: &str) -> Result<u64, StoreError> {
        let _turn = self.turn().await?;
        load::count(self, realm).await
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        self.turn
            .acquire()
            .await
            .map_err(|_| StoreError::Unavailable("the store is closed".to_owned()))
    }

    async fn execute_all(&self, ops: Vec<StoreOp>) -> Vec<StoreResult> {
        let count = ops.len();
        let mut results = Vec::with_capacity(count);
        let mut batch = Batch::new(&self.keys, self.keep_expired_ms);
        for op in ops {
            if let Some(op) = batch.push(op) {
                self.run(&mut batch, &mut results).await;
                results.push(self.execute_apart(op).await);
            } else if batch.is_full() {
                self.run(&mut batch, &mut results).await;
            }
            if let Some(Err(StoreError::Unavailable(why))) = results.last() {
                // The rest would wait as long each, and fail or overtake.
                let why = StoreError::Unavailable(why.clone());
                results.resize(count, Err(why));
                return results;
            }
        }
        self.run(&mut batch, &mut results).await;
        results
    }

    async fn run<'a>(&'a self, batch: &mut Batch<'a>, results: &mut Vec<StoreResult>) {
        let batch = std::mem::replace(batch, Batch::new(&self.keys, self.keep_expired_ms));
        batch.run(&self.connection, results).await;
    }

    /// Operations of more than one step.
    async fn execute_apart(&self, op: StoreOp) -> StoreResult {
        match op {
            StoreOp::Fetch {
                queue,
                after,
                limit,
                max_bytes,
            } => queue::page(self, &queue, after, limit, max_bytes).await,
            StoreOp::PurgeExpired {
                realm,
                now_ms,
                to_dead_letters,
            } => {
                let purged = queue::purge_expired(self, &realm, now_ms, to_dead_letters).await;
                purged.map(StoreReply::Purged)
            }
            StoreOp::Requeue {
                realm,
                id,
                expires_at_ms,
                now_ms,
            } => {
                let requeued = letters::requeue(self, &realm, &id, expires_at_ms, now_ms).await;
                requeued.map(StoreReply::Requeued)
            }
            StoreOp::PurgeRealm { realm } => queue::purge_realm(self, &realm)
                .await
                .map(|()| StoreReply::Done),
            StoreOp::RenameRealm { from, to } => rename::rename_realm(self, &from, &to)
                .await
                .map(|()| StoreReply::Done),
            StoreOp::Enqueue(_)
            | StoreOp::Remove { .. }
            | StoreOp::SetAttempts { .. }
            | StoreOp::DeadLetter(_)
            | StoreOp::PutSubscription(_)
            | StoreOp::RemoveSubscription { .. } => Err(StoreError::Unsupported),
        }
    }
}

impl Store for RedisStore {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn load(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async {
            let _turn = self.turn().await?;
            load::snapshot(self).await
        })
    }

    fn execute(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>> {
        Box::pin(async move {
            match self.turn().await {
                Ok(_turn) => self.execute_all(ops).await,
                Err(error) => ops.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }

    fn dead_letters(
        &self,
        realm: Option<Arc<str>>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<DeadLetterPage, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn().await?;
            letters::page(self, realm.as_deref(), after, limit).await
        })
    }

    fn dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<Option<DeadLetter>, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn().await?;
            letters::show(self, realm.as_deref(), &id).await
        })
    }

    fn discard_dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let _turn = self.turn().await?;
            letters::discard(self, realm.as_deref(), &id).await
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // Whatever has its turn is answered first.
            if let Ok(turn) = self.turn.acquire().await {
                self.turn.close();
                drop(turn);
            }
            self.connection.close().await;
        })
    }
}
