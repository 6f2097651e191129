//! A token bucket: so much at once, so much a second.

/// Starts full; refills with time; a request passes if its cost is there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TokenBucket {
    tokens: f64,
    filled_at_ms: u64,
}

impl TokenBucket {
    pub(crate) fn full(burst: f64, now_ms: u64) -> Self {
        Self {
            tokens: burst,
            filled_at_ms: now_ms,
        }
    }

    /// Takes `cost`, or tells after how many whole seconds it could be there; then nothing is taken.
    pub(crate) fn take(
        &mut self,
        cost: f64,
        rate: f64,
        burst: f64,
        now_ms: u64,
    ) -> Result<(), u64> {
        let elapsed_ms = now_ms.saturating_sub(self.filled_at_ms);
        self.tokens = (self.tokens + elapsed_ms as f64 / 1000.0 * rate).min(burst);
        self.filled_at_ms = self.filled_at_ms.max(now_ms);
        if self.tokens >= cost {
            self.tokens -= cost;
            return Ok(());
        }
        // The conversion saturates, so that an absurd rate is an absurd wait and nothing else.
        Err((((cost - self.tokens) / rate).ceil() as u64).max(1))
    }
}
