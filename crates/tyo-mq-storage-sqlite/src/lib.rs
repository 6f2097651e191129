//! The message store in an SQLite file: the reference broker's tables in WAL mode, one writer with group commit, readers apart.
//!
//! A result is given after its commit. Operations that arrive while a commit runs share the next one. A file of the
//! reference is taken over as it is, and the reference can open ours: it gets nullable columns, a table and indexes of ours
//! besides, and `user_version` names the schema. Not for two programs at once.
#![forbid(unsafe_code)]

mod apply;
mod error;
mod read;
mod reserve;
mod schema;
mod writer;

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{
    BoxFuture, DeadLetter, DeadLetterPage, Snapshot, Store, StoreError, StoreOp, StoreResult,
};
use tyo_mq_storage::SqliteConfig;

use apply::WriteOp;
use error::store_error;
use writer::{Job, WriteJob, Writer};

/// Keeps messages in an SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    jobs: mpsc::Sender<Job>,
}

/// The most jobs that wait for the writer; more wait with their callers.
const MAX_JOBS: usize = 1024;

impl SqliteStore {
    /// Opens the file, or makes it, and starts the threads. This blocks while the file is checked.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is no database or a broken one, [`StoreError::NewerVersion`] when a newer program made
    /// it, [`StoreError::Unavailable`] when it cannot be opened or stays locked.
    pub fn open(config: &SqliteConfig) -> Result<Self, StoreError> {
        let writer = Writer::open(config)?;
        let (jobs, waiting) = mpsc::channel(MAX_JOBS);
        std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || writer.run(waiting))
            .map_err(|error| {
                StoreError::Unavailable(format!("no thread for the writer: {error}"))
            })?;
        Ok(Self { jobs })
    }

    /// Writes a copy of everything kept now to a file, while work goes on. A file of that name is replaced when the copy is
    /// complete.
    ///
    /// # Errors
    /// When the copy cannot be written.
    pub async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let to = to.to_owned();
        let copied = self
            .ask(false, move |conn| schema::copy_to(conn, &to))
            .await;
        copied.and_then(|copied| copied)
    }

    async fn submit(&self, job: Job) {
        // The answer's channel closes with the job if the writer is gone.
        drop(self.jobs.send(job).await);
    }

    /// Runs a query behind everything submitted so far; `pinned` to what was committed at that moment.
    async fn ask<T: Send + 'static>(
        &self,
        pinned: bool,
        query: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, answer) = read_job(pinned, query);
        self.submit(job).await;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// As [`Self::ask`], for a query that gives a result of its own.
    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(true, query).await?.map_err(store_error)
    }

    async fn submit_all(&self, ops: Vec<StoreOp>) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut writes = Vec::new();
        for op in ops {
            match op {
                StoreOp::Fetch {
                    queue,
                    after,
                    limit,
                    max_bytes,
                } => {
                    answers.extend(self.submit_writes(&mut writes).await);
                    let (job, answer) = read_job(true, move |conn| {
                        read::page(conn, queue, after, limit, max_bytes)
                    });
                    self.submit(job).await;
                    answers.push(Answer::Page(answer));
                }
                op => writes.push(WriteOp::new(op)),
            }
        }
        answers.extend(self.submit_writes(&mut writes).await);
        answers
    }

    async fn submit_writes(&self, writes: &mut Vec<WriteOp>) -> Option<Answer> {
        if writes.is_empty() {
            return None;
        }
        let count = writes.len();
        let (job, answer) = WriteJob::new(std::mem::take(writes));
        self.submit(Job::Write(job)).await;
        Some(Answer::Writes(count, answer))
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn load(&self) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(self.query(read::snapshot))
    }

    fn execute(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreResult>> {
        Box::pin(async move {
            let mut results = Vec::with_capacity(ops.len());
            for answer in self.submit_all(ops).await {
                answer.append_to(&mut results).await;
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
        Box::pin(self.query(move |conn| read::dead_letters(conn, realm.as_deref(), after, limit)))
    }

    fn dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<Option<DeadLetter>, StoreError>> {
        Box::pin(self.query(move |conn| read::dead_letter(conn, realm.as_deref(), id.as_str())))
    }

    fn discard_dead_letter(
        &self,
        realm: Option<Arc<str>>,
        id: MessageId,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let (answer, discarded) = oneshot::channel();
            self.submit(Job::Discard { realm, id, answer }).await;
            discarded.await.unwrap_or_else(|_| Err(closed()))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let (done, closed) = oneshot::channel();
            self.submit(Job::Close(done)).await;
            // An error is a writer that had ended before.
            drop(closed.await);
        })
    }
}

/// Results under way, for one or several operations.
enum Answer {
    Writes(usize, oneshot::Receiver<Vec<StoreResult>>),
    Page(oneshot::Receiver<Result<StoreResult, StoreError>>),
}

impl Answer {
    async fn append_to(self, results: &mut Vec<StoreResult>) {
        match self {
            Self::Writes(count, answer) => match answer.await {
                Ok(answer) => results.extend(answer),
                Err(_) => results.extend((0..count).map(|_| Err(closed()))),
            },
            Self::Page(answer) => {
                let page = answer.await.unwrap_or_else(|_| Err(closed()));
                results.push(page.and_then(|page| page));
            }
        }
    }
}

fn read_job<T: Send + 'static>(
    pinned: bool,
    query: impl FnOnce(&Connection) -> T + Send + 'static,
) -> (Job, oneshot::Receiver<Result<T, StoreError>>) {
    let (answer, receiver) = oneshot::channel();
    let run = Box::new(move |conn: Result<&Connection, StoreError>| {
        // Who does not wait any more needs no answer.
        drop(answer.send(conn.map(query)));
    });
    (Job::Read { pinned, run }, receiver)
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
