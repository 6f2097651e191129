//! The world of a transcript: engine, store, clock, sessions by label.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tyo_mq_core::engine::{Config, Input, Now, Output, StoreToken};
use tyo_mq_core::memory_store::MemoryStore;
use tyo_mq_core::store::{InlineStore, Snapshot, Store, StoreError, StoreOp, StoreResult};
use tyo_mq_core::{Engine, SessionId};

pub(crate) struct World {
    pub(super) config: Config,
    pub(super) engine: Engine,
    pub(super) store: MemoryStore,
    pub(super) now: Now,
    /// Time zero of the `@` lines.
    pub(super) since: u64,
    pub(super) sessions: HashMap<String, SessionId>,
    pub(super) labels: HashMap<SessionId, String>,
    /// Message ids in order of appearance.
    pub(super) ids: Vec<String>,
    pub(super) held: Option<VecDeque<(StoreToken, StoreOp)>>,
    /// Whether notices of presence are printed.
    pub(super) presence: bool,
    pub(super) failing: HashSet<&'static str>,
    /// Store operations so far.
    pub(crate) operations: usize,
    /// Numbers of operations that fail.
    pub(crate) failing_operations: Range<usize>,
    /// What the store came by, and the engine has not heard of.
    pub(super) unheard: Snapshot,
    next_slot: u32,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            engine: Engine::new(config.clone()),
            config,
            store: MemoryStore::default(),
            now: Now {
                mono_ms: 1_000,
                wall_ms: 1_700_000_000_000,
            },
            since: 0,
            sessions: HashMap::new(),
            labels: HashMap::new(),
            ids: Vec::new(),
            held: None,
            presence: true,
            failing: HashSet::new(),
            operations: 0,
            failing_operations: 0..0,
            unheard: Snapshot::default(),
            next_slot: 0,
        }
    }

    pub(super) fn open(&mut self, label: &str, realm: &str) -> Vec<String> {
        let session = SessionId::new(self.next_slot, 0);
        self.next_slot += 1;
        self.sessions.insert(label.to_owned(), session);
        self.labels.insert(session, label.to_owned());
        let socket = format!("{label}-socket");
        self.feed(Input::Opened {
            session,
            realm,
            socket: &socket,
        })
    }

    /// Gives one input, and the store's results as long as there are any; returns what came out, printed.
    pub(super) fn feed(&mut self, input: Input<'_>) -> Vec<String> {
        let (mut printed, mut out) = (Vec::new(), Vec::new());
        self.engine.handle(self.now, input, &mut out);
        let mut results = self.take_outputs(&mut out, &mut printed);
        while let Some((token, result)) = results.pop_front() {
            self.engine
                .handle(self.now, Input::Stored { token, result }, &mut out);
            results.extend(self.take_outputs(&mut out, &mut printed));
        }
        printed
    }

    fn take_outputs(
        &mut self,
        out: &mut Vec<Output>,
        printed: &mut Vec<String>,
    ) -> VecDeque<(StoreToken, StoreResult)> {
        let mut results = VecDeque::new();
        for output in out.drain(..) {
            let Output::Store { token, op } = output else {
                self.print(&output, printed);
                continue;
            };
            if let Some(held) = &mut self.held {
                held.push_back((token, op));
            } else {
                results.push_back((token, self.execute(op)));
            }
        }
        results
    }

    fn execute(&mut self, op: StoreOp) -> StoreResult {
        let number = self.operations;
        self.operations += 1;
        if self.failing.contains(kind(&op)) || self.failing_operations.contains(&number) {
            return Err(StoreError::Unavailable("by the test".to_owned()));
        }
        self.store.execute_now(op)
    }

    /// Messages that wait in the store.
    pub(crate) fn kept_rows(&self) -> u64 {
        let snapshot = now_or_never(self.store.load()).expect("the memory store always loads");
        snapshot.queues.iter().map(|(_, rows)| rows).sum()
    }

    /// Completes held operations, all or so many.
    pub(super) fn flush(&mut self, count: usize) -> Vec<String> {
        let mut printed = Vec::new();
        for _ in 0..count {
            let next = self.held.as_mut().and_then(VecDeque::pop_front);
            let Some((token, op)) = next else { break };
            let result = self.execute(op);
            printed.extend(self.feed(Input::Stored { token, result }));
        }
        printed
    }

    /// Lets time pass, with a timeout at each deadline.
    pub(super) fn tick(&mut self, passed_ms: u64) -> Vec<String> {
        let (end, mut printed) = (self.now.mono_ms + passed_ms, Vec::new());
        while let Some(at_ms) = self.engine.deadline().filter(|at_ms| *at_ms <= end) {
            self.now.wall_ms += at_ms.saturating_sub(self.now.mono_ms);
            self.now.mono_ms = self.now.mono_ms.max(at_ms);
            let lines = self.feed(Input::Timeout);
            let at = self.now.mono_ms - self.since;
            printed.extend(lines.into_iter().map(|line| format!("@{at} {line}")));
        }
        self.now.wall_ms += end - self.now.mono_ms;
        self.now.mono_ms = end;
        printed
    }

    /// The broker ends, with what is under way lost, and starts again from the store.
    pub(super) fn restart(&mut self) -> Vec<String> {
        self.config.seed += 1;
        self.engine = Engine::new(self.config.clone());
        self.sessions.clear();
        self.labels.clear();
        if let Some(held) = &mut self.held {
            held.clear();
        }
        let snapshot = now_or_never(self.store.load()).expect("the memory store always loads");
        self.feed(Input::Loaded(snapshot))
    }
}

/// The short name of an operation's kind.
pub(crate) fn kind(op: &StoreOp) -> &'static str {
    match op {
        StoreOp::Enqueue(_) => "enqueue",
        StoreOp::Remove { .. } => "remove",
        StoreOp::SetAttempts { .. } => "attempts",
        StoreOp::DeadLetter(_) => "bury",
        StoreOp::Fetch { .. } => "fetch",
        StoreOp::PurgeExpired { .. } => "purge",
        StoreOp::PutSubscription(_) => "put",
        StoreOp::RemoveSubscription { .. } => "drop",
        StoreOp::Requeue { .. } => "requeue",
        StoreOp::PurgeRealm { .. } => "wipe",
        StoreOp::RenameRealm { .. } => "rename",
    }
}

/// The result of a future that never waits.
pub(crate) fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waited"),
    }
}
