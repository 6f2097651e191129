//! Where the outputs of one session go: the trait that a gateway implements for its connections.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::clock::Clock;
use crate::engine::{Delivery, Notice, Now, Reply, ReplyToken};

/// The receiving end of a session. Its methods are called with the shard locked, but for [`flush`](Self::flush),
/// and must neither block nor call the broker.
pub trait Outlet: Send + Sync + 'static {
    /// Appends a message to the outbound queue.
    fn deliver(&self, delivery: &Delivery, memo: &mut Memo) -> Pressure;

    /// Appends a notice.
    fn notify(&self, notice: &Notice);

    /// Appends an answer.
    fn reply(&self, token: Option<ReplyToken>, reply: Reply, memo: &mut Memo);

    /// Ends the session after what was appended so far; dropping the [`Session`](super::Session) must follow.
    fn disconnect(&self);

    /// Starts writing what was appended.
    fn flush(&self);

    /// The outbound queue is below its high-water mark.
    fn is_flowing(&self) -> bool;
}

/// State of an outbound queue after an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    /// Below the high-water mark.
    Flowing,
    /// Above it: [`Session::drained`](super::Session::drained) must follow when it is below the low-water mark.
    High,
}

/// What an outlet remembers from one delivery to the next on the same shard, such as the encoded frame that all
/// receivers of a message share.
#[derive(Default)]
pub struct Memo(Option<Box<dyn Any + Send>>);

impl Memo {
    /// The remembered value, made anew if it is of another type.
    pub fn get<T: Any + Send + Default>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|value| value.is::<T>()) {
            self.0 = Some(Box::<T>::default());
        }
        let value = self.0.as_mut().and_then(|value| value.downcast_mut());
        value.expect("the value was just made of this type")
    }
}

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memo")
    }
}

/// An outlet with the mark that somebody is about to flush it.
pub(crate) struct Sink {
    pub(crate) outlet: Arc<dyn Outlet>,
    dirty: AtomicBool,
}

/// Outlets that have something to write. Flushing them is left to the end of a batch of commands.
#[derive(Default)]
pub struct Flushes {
    sinks: Vec<Arc<Sink>>,
    /// The moment of this batch: the clocks are asked once for all its commands.
    now: Option<Now>,
    /// Made when a batch is shared for the first time.
    shares: Option<Arc<Shares>>,
}

impl Flushes {
    /// Nothing to flush.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a sink in, unless whoever wrote to it before is still going to flush it.
    pub(crate) fn add(&mut self, sink: &Arc<Sink>) {
        if !sink.dirty.swap(true, Ordering::AcqRel) {
            self.sinks.push(sink.clone());
        }
    }

    pub(crate) fn now(&mut self, clock: Clock) -> Now {
        *self.now.get_or_insert_with(|| clock.now())
    }

    /// Starts writing everywhere: here, and where there are many and other threads to share the work with, there too.
    /// What follows is a new batch.
    pub fn flush(&mut self) {
        self.now = None;
        // What nobody has begun with: two batches must not pile up for a receiver.
        if let Some(shares) = &self.shares {
            while shares.flush_one() {}
        }
        if self.sinks.len() > 2 * SHARE {
            self.share();
        }
        flush_all(self.sinks.drain(..));
    }

    /// Leaves one share; the others lie ready for whoever is idle.
    fn share(&mut self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if runtime.metrics().num_workers() == 1 {
            return;
        }
        let shares = self.shares.get_or_insert_default();
        while self.sinks.len() > SHARE {
            let share = self.sinks.split_off(self.sinks.len() - SHARE);
            shares.lock().push(share);
            let shares = shares.clone();
            runtime.spawn(async move { shares.flush_one() });
        }
    }
}

/// Parts of a batch that wait for a thread.
#[derive(Default)]
struct Shares(Mutex<Vec<Vec<Arc<Sink>>>>);

impl Shares {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Arc<Sink>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when there was none.
    fn flush_one(&self) -> bool {
        let share = self.lock().pop();
        let found = share.is_some();
        flush_all(share.into_iter().flatten());
        found
    }
}

/// Sinks that one task writes to: enough that the task itself costs little beside them.
const SHARE: usize = 32;

fn flush_all(sinks: impl Iterator<Item = Arc<Sink>>) {
    for sink in sinks {
        sink.dirty.store(false, Ordering::Release);
        sink.outlet.flush();
    }
}

impl Drop for Flushes {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Sink {
    pub(crate) fn new(outlet: Arc<dyn Outlet>) -> Self {
        Self {
            outlet,
            dirty: AtomicBool::new(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Outlet for Counter {
        fn deliver(&self, _: &Delivery, _: &mut Memo) -> Pressure {
            Pressure::Flowing
        }

        fn notify(&self, _: &Notice) {}

        fn reply(&self, _: Option<ReplyToken>, _: Reply, _: &mut Memo) {}

        fn disconnect(&self) {}

        fn flush(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn is_flowing(&self) -> bool {
            true
        }
    }

    #[test]
    fn what_no_thread_has_taken_is_flushed_before_the_next_batch() {
        const SINKS: usize = 5 * SHARE;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        let (busy, done) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
        for _ in 0..2 {
            let (busy, done) = (busy.clone(), done.clone());
            runtime.spawn(async move {
                busy.wait();
                done.wait();
            });
        }
        busy.wait();
        let _context = runtime.enter();
        let counter = Arc::new(Counter::default());
        let mut flushes = Flushes::new();
        let sinks: Vec<_> = (0..SINKS)
            .map(|_| Arc::new(Sink::new(counter.clone())))
            .collect();
        sinks.iter().for_each(|sink| flushes.add(sink));
        flushes.flush();
        assert_eq!(counter.0.load(Ordering::Relaxed), SHARE);
        flushes.flush();
        assert_eq!(counter.0.load(Ordering::Relaxed), SINKS);
        done.wait();
    }
}
