//! The only place that asks the clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::engine::Now;

/// Monotonic time that starts far from zero, so that a past moment can be told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

const START_MS: u64 = 1 << 42;

/// The longest sleep; a later deadline is looked at again then.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Now {
        let mono_ms = START_MS + saturating_ms(self.start.elapsed());
        let wall_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, saturating_ms);
        Now { mono_ms, wall_ms }
    }

    /// The moment to wake for a deadline: never before it, for a millisecond is rounded up.
    pub(crate) fn instant(&self, deadline_ms: u64) -> tokio::time::Instant {
        let left = deadline_ms.saturating_sub(self.now().mono_ms);
        tokio::time::Instant::now() + Duration::from_millis(left).min(MAX_SLEEP)
    }
}

fn saturating_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
