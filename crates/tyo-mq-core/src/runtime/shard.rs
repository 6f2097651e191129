//! One shard: an engine behind a lock, the outlets of its sessions, and the way of outputs to them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slab::Slab;
use tokio::sync::{Notify, oneshot};

use super::clock::Clock;
use super::executor::Executor;
use super::outlet::{Flushes, Memo, Outlet, Pressure, Sink};
use crate::engine::{Delivery, Engine, Input, Output, RenameError, ReplyToken, StoreToken};
use crate::message::SessionId;
use crate::store::{InlineStore, Store, StoreError, StoreOp, StoreResult};

pub(crate) struct Shard {
    index: usize,
    core: Mutex<Core>,
    executor: Arc<Executor>,
    clock: Clock,
    /// Wakes the shard's task: an earlier deadline, or replays to go on with.
    pub(crate) wake: Notify,
    /// The deadline that the task sleeps to.
    armed_ms: AtomicU64,
    /// Somebody in this shard's realm `*` observes.
    pub(crate) observed: AtomicBool,
}

struct Core {
    engine: Engine,
    sessions: Slab<Entry>,
    opened: u32,
    out: Vec<Output>,
    /// The store, if it answers at once and no operation is on another way to it.
    inline: Option<Arc<dyn Store>>,
    /// The store becomes that when nothing is on another way any more.
    becomes_inline: Option<Arc<dyn Store>>,
    /// Operations that the executor has.
    under_way: usize,
    /// Results of a store that answers at once.
    results: VecDeque<(StoreToken, StoreResult)>,
    paced: Vec<SessionId>,
    requeues: Slab<oneshot::Sender<Result<bool, StoreError>>>,
    renames: Slab<oneshot::Sender<Result<(), RenameError>>>,
    memo: Memo,
}

struct Entry {
    sink: Arc<Sink>,
    id: SessionId,
    stalled: bool,
}

impl Shard {
    pub(crate) fn new(
        index: usize,
        engine: Engine,
        store: Arc<dyn Store>,
        executor: Arc<Executor>,
        clock: Clock,
    ) -> Self {
        let core = Core {
            engine,
            sessions: Slab::new(),
            opened: 0,
            out: Vec::new(),
            inline: Some(store).filter(|store| store.as_inline().is_some()),
            becomes_inline: None,
            under_way: 0,
            results: VecDeque::new(),
            paced: Vec::new(),
            requeues: Slab::new(),
            renames: Slab::new(),
            memo: Memo::default(),
        };
        Self {
            index,
            core: Mutex::new(core),
            executor,
            clock,
            wake: Notify::new(),
            armed_ms: AtomicU64::new(u64::MAX),
            observed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, realm: &str, socket: &str, outlet: Arc<dyn Outlet>) -> SessionId {
        let mut core = self.lock();
        core.opened = core.opened.wrapping_add(1);
        let generation = core.opened;
        let entry = core.sessions.vacant_entry();
        let slot = u32::try_from(entry.key()).expect("there are fewer connections than 2^32");
        let id = SessionId::new(slot, generation);
        entry.insert(Entry {
            sink: Arc::new(Sink::new(outlet)),
            id,
            stalled: false,
        });
        self.run(
            &mut core,
            Input::Opened {
                session: id,
                realm,
                socket,
            },
            &mut Flushes::new(),
        );
        id
    }

    pub(crate) fn close(&self, id: SessionId) {
        let mut flushes = Flushes::new();
        let mut core = self.lock();
        if core.entry(id).is_some() {
            core.sessions.remove(id.slot());
            self.run(&mut core, Input::Closed { session: id }, &mut flushes);
        }
        drop(core);
    }

    pub(crate) fn input(&self, input: Input<'_>, flushes: &mut Flushes) {
        self.run(&mut self.lock(), input, flushes);
    }

    pub(crate) fn drained(&self, id: SessionId, flushes: &mut Flushes) {
        let mut core = self.lock();
        if let Some(entry) = core.entry(id) {
            entry.stalled = false;
            self.run(&mut core, Input::Drained { session: id }, flushes);
        }
    }

    pub(crate) fn stored(
        &self,
        results: impl Iterator<Item = (StoreToken, StoreResult)>,
        flushes: &mut Flushes,
    ) {
        let mut core = self.lock();
        for (token, result) in results {
            core.under_way -= 1;
            self.run(&mut core, Input::Stored { token, result }, flushes);
        }
        core.settle_way();
    }

    /// From now on operations go to the executor.
    pub(crate) fn leave_inline(&self) {
        let mut core = self.lock();
        core.inline = None;
        core.becomes_inline = None;
    }

    /// Operations go to this store at once, as soon as the executor has none any more.
    pub(crate) fn go_inline(&self, store: Arc<dyn Store>) {
        let mut core = self.lock();
        core.becomes_inline = Some(store);
        core.settle_way();
    }

    pub(crate) fn requeue(
        &self,
        realm: &str,
        id: &str,
    ) -> oneshot::Receiver<Result<bool, StoreError>> {
        let (sender, receiver) = oneshot::channel();
        let mut core = self.lock();
        let token = ReplyToken(core.requeues.insert(sender) as u64);
        self.run(
            &mut core,
            Input::Requeue {
                realm,
                id,
                reply: Some(token),
            },
            &mut Flushes::new(),
        );
        receiver
    }

    pub(crate) fn rename_realm(
        &self,
        from: &str,
        to: &str,
    ) -> oneshot::Receiver<Result<(), RenameError>> {
        let (sender, receiver) = oneshot::channel();
        let mut core = self.lock();
        let reply = Some(ReplyToken(core.renames.insert(sender) as u64));
        let input = Input::RenameRealm { from, to, reply };
        self.run(&mut core, input, &mut Flushes::new());
        receiver
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&Engine) -> T) -> T {
        look(&self.lock().engine)
    }

    /// One input and everything that follows from it.
    fn run(&self, core: &mut Core, input: Input<'_>, flushes: &mut Flushes) {
        let now = flushes.now(self.clock);
        core.engine.handle(now, input, &mut core.out);
        self.dispatch(core, flushes);
        while let Some((token, result)) = core.results.pop_front() {
            core.engine
                .handle(now, Input::Stored { token, result }, &mut core.out);
            self.dispatch(core, flushes);
        }
        if core
            .engine
            .deadline()
            .is_some_and(|at_ms| at_ms < self.armed_ms.load(Ordering::Relaxed))
        {
            self.wake.notify_one();
        }
    }

    fn dispatch(&self, core: &mut Core, flushes: &mut Flushes) {
        let mut out = std::mem::take(&mut core.out);
        for output in out.drain(..) {
            match output {
                Output::Deliver { session, delivery } => core.deliver(session, &delivery, flushes),
                Output::FanOut { sessions, delivery } => {
                    for session in sessions.iter() {
                        core.deliver(*session, &delivery, flushes);
                    }
                }
                Output::Notify { session, notice } => {
                    core.with(session, flushes, |outlet, _| outlet.notify(&notice))
                }
                Output::Reply {
                    session,
                    token,
                    reply,
                } => {
                    core.with(session, flushes, |outlet, memo| {
                        outlet.reply(token, reply, memo);
                    });
                }
                Output::Disconnect { session } => {
                    core.with(session, flushes, |outlet, _| outlet.disconnect())
                }
                Output::Pace { session } => {
                    core.paced.push(session);
                    self.wake.notify_one();
                }
                Output::Requeued { token, result } => core.on_requeued(token, result),
                Output::Renamed { token, result } => core.on_renamed(token, result),
                Output::Store { token, op } => self.keep(core, token, op),
            }
        }
        core.out = out;
    }

    fn keep(&self, core: &mut Core, token: StoreToken, op: StoreOp) {
        if let Some(store) = core.inline.as_ref().and_then(|store| store.as_inline()) {
            let result = InlineStore::execute_now(store, op);
            core.results.push_back((token, result));
            return;
        }
        match self.executor.push(self.index, token, op) {
            Ok(()) => core.under_way += 1,
            Err(error) => core.results.push_back((token, Err(error))),
        }
    }

    /// Sleeps to deadlines and goes on with replays, one burst at a time, until it is dropped.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        loop {
            let deadline_ms = self.next_deadline();
            let sleep = tokio::time::sleep_until(self.clock.instant(deadline_ms));
            tokio::select! {
                () = self.wake.notified() => {}
                () = sleep => {}
            }
            self.on_wake();
            tokio::task::yield_now().await;
        }
    }

    fn next_deadline(&self) -> u64 {
        let core = self.lock();
        let deadline_ms = core.engine.deadline().unwrap_or(u64::MAX);
        self.armed_ms.store(deadline_ms, Ordering::Relaxed);
        deadline_ms
    }

    fn on_wake(&self) {
        let mut flushes = Flushes::new();
        let mut core = self.lock();
        if core
            .engine
            .deadline()
            .is_some_and(|at_ms| at_ms <= self.clock.now().mono_ms)
        {
            self.run(&mut core, Input::Timeout, &mut flushes);
        }
        let paced = std::mem::take(&mut core.paced);
        drop(core);
        flushes.flush();
        for session in paced {
            let mut core = self.lock();
            // A queue above its mark says by itself when it is below again.
            if core
                .entry(session)
                .is_some_and(|entry| entry.sink.outlet.is_flowing())
            {
                self.run(&mut core, Input::Drained { session }, &mut flushes);
            }
            drop(core);
            flushes.flush();
        }
    }

    pub(crate) fn refresh_observed(&self) {
        let observed = self.lock().engine.has_observers();
        self.observed.store(observed, Ordering::Relaxed);
    }
}

impl Core {
    /// Nothing is overtaken: the short way opens when the long one is empty.
    fn settle_way(&mut self) {
        if self.under_way == 0
            && let Some(store) = self.becomes_inline.take()
        {
            self.inline = Some(store);
        }
    }

    fn entry(&mut self, id: SessionId) -> Option<&mut Entry> {
        self.sessions
            .get_mut(id.slot())
            .filter(|entry| entry.id == id)
    }

    fn deliver(&mut self, session: SessionId, delivery: &Delivery, flushes: &mut Flushes) {
        let Some(entry) = self
            .sessions
            .get_mut(session.slot())
            .filter(|entry| entry.id == session)
        else {
            return;
        };
        let pressure = entry.sink.outlet.deliver(delivery, &mut self.memo);
        flushes.add(&entry.sink);
        if pressure == Pressure::High && !entry.stalled {
            entry.stalled = true;
            // Nothing follows at once from being told so.
            let now = crate::engine::Now::default();
            self.engine
                .handle(now, Input::Stalled { session }, &mut self.out);
        }
    }

    fn with(
        &mut self,
        session: SessionId,
        flushes: &mut Flushes,
        action: impl FnOnce(&dyn Outlet, &mut Memo),
    ) {
        let entry = self.sessions.get(session.slot());
        if let Some(entry) = entry.filter(|entry| entry.id == session) {
            action(&*entry.sink.outlet, &mut self.memo);
            flushes.add(&entry.sink);
        }
    }

    fn on_requeued(&mut self, token: Option<ReplyToken>, result: Result<bool, StoreError>) {
        let slot = token.map_or(usize::MAX, |token| token.0 as usize);
        if self.requeues.contains(slot) {
            // Who asked may have gone.
            let _ = self.requeues.remove(slot).send(result);
        }
    }

    fn on_renamed(&mut self, token: Option<ReplyToken>, result: Result<(), RenameError>) {
        let slot = token.map_or(usize::MAX, |token| token.0 as usize);
        if self.renames.contains(slot) {
            // Who asked may have gone.
            let _ = self.renames.remove(slot).send(result);
        }
    }
}
