//! How a client behaves: times, bounds, whether it comes back.

use std::time::Duration;

use crate::Trust;

/// Times and bounds of a client.
#[derive(Debug, Clone)]
pub struct Options {
    /// The Socket.IO namespace.
    pub namespace: String,
    /// Whose certificates are good, where the address says TLS.
    pub trust: Trust,
    /// Time for a connection to be made, all handshakes included.
    pub connect_timeout: Duration,
    /// Time for the answer to a call that names no other.
    pub call_timeout: Duration,
    /// Whether to come back after a connection was lost.
    pub reconnect: Option<Reconnect>,
    /// The largest message that is taken, in bytes. A larger one ends the connection.
    pub max_message_bytes: usize,
    /// Things to send that may wait; at this bound [`emit`](crate::Client::emit) waits.
    pub outbound_queue: usize,
    /// Deliveries that may wait in one subscription; at this bound the connection is not read.
    pub subscription_queue: usize,
    /// Events that may wait in one [`Events`](crate::Events); at this bound the oldest are lost, and counted.
    pub event_queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "/".to_owned(),
            trust: Trust::System,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(5),
            reconnect: None,
            max_message_bytes: 64 << 20,
            outbound_queue: 256,
            subscription_queue: 1024,
            event_queue: 256,
        }
    }
}

/// How to come back: waits grow from the first to the longest, each by chance up to half shorter or longer.
#[derive(Debug, Clone)]
pub struct Reconnect {
    /// Before the first attempt.
    pub first_delay: Duration,
    /// Between later attempts, at the most.
    pub max_delay: Duration,
    /// Attempts until the client gives up; none means never.
    pub max_attempts: Option<u32>,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            max_attempts: None,
        }
    }
}

impl Reconnect {
    /// The wait before an attempt; attempts count from 0. None when it is one too many.
    pub(crate) fn delay(&self, attempt: u32, chance: u64) -> Option<Duration> {
        if self.max_attempts.is_some_and(|most| attempt >= most) {
            return None;
        }
        let grown = self
            .first_delay
            .saturating_mul(1 << attempt.min(MAX_DOUBLINGS));
        let delay = grown.min(self.max_delay);
        // From a half to one and a half.
        let share = 0.5 + (chance % 1024) as f64 / 1024.0;
        Some(delay.mul_f64(share))
    }
}

/// Doublings after which the wait stays as it is.
const MAX_DOUBLINGS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attempt: u32, chance: u64, expected_ms: Option<u64>) {
        let reconnect = Reconnect {
            first_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(1),
            max_attempts: Some(40),
        };
        let delay = reconnect.delay(attempt, chance);
        assert_eq!(delay, expected_ms.map(Duration::from_millis));
    }

    #[test]
    fn delays() {
        check(0, 512, Some(100));
        check(0, 0, Some(50));
        check(2, 512, Some(400));
        check(9, 512, Some(1000));
        check(39, 1024, Some(500));
        check(40, 0, None);
    }
}
