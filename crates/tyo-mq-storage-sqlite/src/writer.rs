//! The thread that writes: it takes what waits, commits it in one transaction, and answers then. Reads get a connection of their own that sees what was committed.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, warn};
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{StoreError, StoreOp, StoreResult};
use tyo_mq_storage::SqliteConfig;

use crate::apply::{RowNumbers, Statements, WriteOp, apply};
use crate::error::{is_locked, store_error};
use crate::reserve::Reserve;
use crate::schema;

/// The most operations of one transaction.
const MAX_GROUP_OPS: usize = 4096;

/// The most bytes of messages of one transaction, a last job apart.
const MAX_GROUP_BYTES: usize = 16 * 1024 * 1024;

/// Connections that read.
const READERS: usize = 2;

type Reading = Box<dyn FnOnce(Result<&Connection, StoreError>) + Send>;

/// Work for the writer, done in order.
pub(crate) enum Job {
    Write(WriteJob),
    Read {
        /// Sees what is committed now, however long it takes to begin.
        pinned: bool,
        run: Reading,
    },
    Discard {
        realm: Option<Arc<str>>,
        id: MessageId,
        answer: oneshot::Sender<Result<bool, StoreError>>,
    },
    Close(oneshot::Sender<()>),
}

/// Operations that were given together.
pub(crate) struct WriteJob {
    writes: Vec<WriteOp>,
    answer: oneshot::Sender<Vec<StoreResult>>,
    since: Instant,
}

impl WriteJob {
    pub(crate) fn new(writes: Vec<WriteOp>) -> (Self, oneshot::Receiver<Vec<StoreResult>>) {
        let (answer, receiver) = oneshot::channel();
        let job = Self {
            writes,
            answer,
            since: Instant::now(),
        };
        (job, receiver)
    }
}

/// Jobs that are committed together.
#[derive(Default)]
struct Group {
    jobs: Vec<WriteJob>,
    ops: usize,
    bytes: usize,
}

impl Group {
    fn push(&mut self, job: WriteJob) {
        self.ops += job.writes.len();
        self.bytes += job.writes.iter().map(WriteOp::size).sum::<usize>();
        self.jobs.push(job);
    }

    fn is_full(&self) -> bool {
        self.ops >= MAX_GROUP_OPS || self.bytes >= MAX_GROUP_BYTES
    }
}

pub(crate) struct Writer {
    conn: Connection,
    numbers: RowNumbers,
    readers: Readers,
    reserve: Reserve,
    lock_timeout: Duration,
}

impl Writer {
    pub(crate) fn open(config: &SqliteConfig) -> Result<Self, StoreError> {
        let conn = schema::open_writer(config)?;
        Ok(Self {
            conn,
            numbers: RowNumbers::default(),
            readers: Readers::open(config)?,
            reserve: Reserve::new(&config.path),
            lock_timeout: config.lock_timeout,
        })
    }

    /// Works until it is told to close or nobody is left to tell it.
    pub(crate) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut closing = None;
        while closing.is_none() {
            let Some(job) = jobs.blocking_recv() else {
                break;
            };
            closing = self.work(job, &mut jobs);
        }
        drop(jobs);
        self.end();
        if let Some(done) = closing {
            // Who closes may have gone.
            let _ = done.send(());
        }
    }

    /// Does a job and what waits behind it, as one group. Gives whom to tell if it is to close.
    fn work(&mut self, first: Job, jobs: &mut mpsc::Receiver<Job>) -> Option<oneshot::Sender<()>> {
        let mut group = Group::default();
        let mut closing = None;
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Write(write) => group.push(write),
                Job::Read { pinned, run } => {
                    self.commit(&mut group);
                    self.readers.start(pinned, run);
                }
                Job::Discard { realm, id, answer } => {
                    self.commit(&mut group);
                    drop(answer.send(self.discard(realm.as_deref(), &id)));
                }
                Job::Close(done) => {
                    closing = Some(done);
                    break;
                }
            }
            next = if group.is_full() {
                None
            } else {
                jobs.try_recv().ok()
            };
        }
        self.commit(&mut group);
        closing
    }

    fn end(self) {
        self.readers.end();
        if let Err((_, error)) = self.conn.close() {
            warn!(%error, "the database file was not closed cleanly");
        }
    }

    fn discard(&mut self, realm: Option<&str>, id: &MessageId) -> Result<bool, StoreError> {
        self.conn
            .busy_timeout(self.lock_timeout)
            .and_then(|()| {
                self.conn
                    .prepare_cached("DELETE FROM dlq WHERE id = ?1 AND (?2 IS NULL OR realm = ?2)")
            })
            .and_then(|mut it| it.execute(rusqlite::params![id.as_str(), realm]))
            .map(|rows| rows > 0)
            .map_err(store_error)
    }

    /// Writes all jobs in one transaction and answers them; if that fails, each operation by itself.
    fn commit(&mut self, group: &mut Group) {
        let jobs = std::mem::take(group).jobs;
        if jobs.is_empty() {
            return;
        }
        self.reserve.tend(&self.conn);
        let results = if self.reserve.allows_growth(&self.conn) {
            self.write_or_retry(&jobs)
        } else {
            self.write_apart(&jobs)
        };
        for (job, results) in jobs.into_iter().zip(results) {
            // Who does not wait any more needs no answer.
            drop(job.answer.send(results));
        }
    }

    fn write_or_retry(&mut self, jobs: &[WriteJob]) -> Vec<Vec<StoreResult>> {
        match self.write_together(jobs) {
            Ok(results) => results,
            Err(error) if is_locked(&error) => fail_all(jobs, error),
            Err(error) => {
                warn!(%error, "a group of store operations failed; trying each alone");
                self.make_room(error);
                self.write_apart(jobs)
            }
        }
    }

    fn write_together(&mut self, jobs: &[WriteJob]) -> rusqlite::Result<Vec<Vec<StoreResult>>> {
        self.begin(jobs)?;
        let written = self.write_group(jobs).and_then(|results| {
            self.conn.prepare_cached("COMMIT")?.execute([])?;
            Ok(results)
        });
        if written.is_err() {
            self.roll_back();
        }
        written
    }

    fn write_group(&mut self, jobs: &[WriteJob]) -> rusqlite::Result<Vec<Vec<StoreResult>>> {
        self.numbers.catch_up(&self.conn)?;
        let mut statements = Statements::new(&self.conn)?;
        let spared = spared(jobs);
        let mut spared = spared.iter();
        let mut results = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut of_job = Vec::with_capacity(job.writes.len());
            for write in &job.writes {
                of_job.push(Ok(if spared.next() == Some(&true) {
                    self.numbers.skip_message()
                } else {
                    apply(&mut statements, &mut self.numbers, write)?
                }));
            }
            results.push(of_job);
        }
        Ok(results)
    }

    /// One transaction an operation: what can be done is done, the rest says why not.
    fn write_apart(&mut self, jobs: &[WriteJob]) -> Vec<Vec<StoreResult>> {
        let of_job = |job: &WriteJob| {
            let each = job.writes.iter().map(|write| {
                let grows = matches!(write.op, StoreOp::Enqueue(_));
                if grows && !self.reserve.allows_growth(&self.conn) {
                    return Err(StoreError::Full("the disk is full".to_owned()));
                }
                self.write_alone(jobs, write).map_err(store_error)
            });
            each.collect()
        };
        jobs.iter().map(of_job).collect()
    }

    fn write_alone(
        &mut self,
        jobs: &[WriteJob],
        write: &WriteOp,
    ) -> rusqlite::Result<tyo_mq_core::store::StoreReply> {
        self.begin(jobs)?;
        let written = self.numbers.catch_up(&self.conn).and_then(|()| {
            let reply = apply(&mut Statements::new(&self.conn)?, &mut self.numbers, write)?;
            self.conn.prepare_cached("COMMIT")?.execute([])?;
            Ok(reply)
        });
        if written.is_err() {
            self.roll_back();
        }
        written
    }

    /// Waits for a lock no longer than the youngest job may: the others have waited before.
    fn begin(&mut self, jobs: &[WriteJob]) -> rusqlite::Result<()> {
        let waited = jobs
            .iter()
            .map(|job| job.since.elapsed())
            .min()
            .unwrap_or_default();
        self.conn
            .busy_timeout(self.lock_timeout.saturating_sub(waited))?;
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    fn roll_back(&mut self) {
        // Some errors have ended the transaction already.
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            warn!(%error, "a transaction was not rolled back");
        }
    }

    /// On a full disk: gives up the room kept aside and moves the log into the file, so that its space can be used again.
    fn make_room(&mut self, error: rusqlite::Error) {
        if !matches!(store_error(error), StoreError::Full(_)) {
            return;
        }
        self.reserve.give_up();
        let moved = self
            .conn
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = moved {
            debug!(%error, "the log could not be moved into the file");
        }
    }
}

fn fail_all(jobs: &[WriteJob], error: rusqlite::Error) -> Vec<Vec<StoreResult>> {
    let error = store_error(error);
    let fail = |job: &WriteJob| job.writes.iter().map(|_| Err(error.clone())).collect();
    jobs.iter().map(fail).collect()
}

/// Which enqueues, counted over all jobs, need not be written since their message leaves in the same group.
fn spared(jobs: &[WriteJob]) -> Vec<bool> {
    let mut spared = Vec::new();
    let mut enqueued: HashMap<&MessageId, usize> = HashMap::new();
    for write in jobs.iter().flat_map(|job| &job.writes) {
        match &write.op {
            StoreOp::Enqueue(stored) => {
                enqueued.insert(&stored.id, spared.len());
            }
            StoreOp::Remove { id, .. } => {
                if let Some(index) = enqueued.remove(id) {
                    spared[index] = true;
                }
            }
            StoreOp::DeadLetter(letter) => {
                if let Some(index) = enqueued.remove(&letter.stored.id) {
                    spared[index] = true;
                }
            }
            // These look at rows, which then must be there.
            StoreOp::PurgeExpired { .. }
            | StoreOp::PurgeRealm { .. }
            | StoreOp::RenameRealm { .. }
            | StoreOp::Requeue { .. } => enqueued.clear(),
            StoreOp::SetAttempts { .. }
            | StoreOp::Fetch { .. }
            | StoreOp::PutSubscription(_)
            | StoreOp::RemoveSubscription { .. } => {}
        }
        spared.push(false);
    }
    spared
}

/// Connections that read, each with at most one query under way, and the threads that run these.
struct Readers {
    idle: Receiver<Connection>,
    back: Sender<Connection>,
    work: SyncSender<(Connection, bool, Reading)>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    fn open(config: &SqliteConfig) -> Result<Self, StoreError> {
        let (back, idle) = std::sync::mpsc::channel();
        let (work, waiting) = std::sync::mpsc::sync_channel::<(Connection, bool, Reading)>(READERS);
        let waiting = Arc::new(Mutex::new(waiting));
        let mut threads = Vec::new();
        for number in 0..READERS {
            let conn = schema::open_reader(config).map_err(store_error)?;
            back.send(conn).expect("the receiver is held here");
            let (waiting, back) = (waiting.clone(), back.clone());
            let thread = std::thread::Builder::new()
                .name(format!("sqlite-reader-{number}"))
                .spawn(move || read_on(&waiting, &back))
                .map_err(|error| {
                    StoreError::Unavailable(format!("no thread for a reader: {error}"))
                })?;
            threads.push(thread);
        }
        Ok(Self {
            idle,
            back,
            work,
            threads,
        })
    }

    /// Begins a query. It waits while all connections are busy.
    fn start(&self, pinned: bool, run: Reading) {
        let Ok(conn) = self.idle.recv() else {
            return;
        };
        if pinned && let Err(error) = pin(&conn) {
            run(Err(store_error(error)));
            self.give_back(conn);
            return;
        }
        // Readers end only after the writer.
        drop(self.work.send((conn, pinned, run)));
    }

    fn give_back(&self, conn: Connection) {
        unpin(&conn);
        drop(self.back.send(conn));
    }

    fn end(self) {
        drop(self.work);
        for thread in self.threads {
            drop(thread.join());
        }
    }
}

fn read_on(waiting: &Mutex<Receiver<(Connection, bool, Reading)>>, back: &Sender<Connection>) {
    loop {
        let work = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok((conn, pinned, run)) = work else {
            return;
        };
        run(Ok(&conn));
        if pinned {
            unpin(&conn);
        }
        if back.send(conn).is_err() {
            return;
        }
    }
}

/// Begins a transaction that sees what is committed now.
fn pin(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached("BEGIN")?.execute([])?;
    conn.prepare_cached("SELECT 1 FROM sqlite_schema LIMIT 1")?
        .query_row([], |_| Ok(()))
}

fn unpin(conn: &Connection) {
    if !conn.is_autocommit()
        && let Err(error) = conn.execute_batch("ROLLBACK")
    {
        warn!(%error, "a reading transaction did not end");
    }
}
