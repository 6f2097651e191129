//! Time as a value, and the queue of things that fall due. Never asks a clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One moment, by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Monotonic milliseconds: intervals, retries, eviction.
    pub mono_ms: u64,
    /// Milliseconds since 1970: expiry and stamps only.
    pub wall_ms: u64,
}

/// What fell due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// In-flight messages or a postponed read of a queue.
    Queue { realm: usize, queue: usize },
    /// Store operations that failed are tried again.
    Settle { realm: usize },
    /// Offline registrations and expired messages are looked for.
    Sweep,
}

/// Pending timers, earliest first. A timer that is no longer wanted is ignored when it fires.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, Timer)>>,
}

impl Timers {
    pub(crate) fn set(&mut self, at_ms: u64, timer: Timer) {
        self.heap.push(Reverse((at_ms, timer)));
    }

    /// Forgets timers that nobody waits for.
    pub(crate) fn retain(&mut self, wanted: impl Fn(u64, Timer) -> bool) {
        self.heap
            .retain(|Reverse((at_ms, timer))| wanted(*at_ms, *timer));
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ms, _))| *at_ms)
    }

    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<Timer> {
        let due = self.next().is_some_and(|at_ms| at_ms <= now_ms);
        if due {
            self.heap.pop().map(|Reverse((_, timer))| timer)
        } else {
            None
        }
    }
}
