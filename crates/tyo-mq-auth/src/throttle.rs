//! Slows down who guesses: a bucket of failures for each address. Addresses that fail rarely never notice.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// The most addresses that are told apart. Beyond it, unknown ones share a bucket.
pub const MAX_ADDRESSES: usize = 65_536;

/// Failures of addresses.
#[derive(Debug)]
pub struct Throttle {
    buckets: HashMap<IpAddr, Bucket>,
    shared: Bucket,
    pruned_ms: u64,
    max: usize,
}

/// Failures, leaking away with time.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    failures: f64,
    at_ms: u64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            buckets: HashMap::new(),
            shared: Bucket::default(),
            pruned_ms: 0,
            max: MAX_ADDRESSES,
        }
    }
}

impl Throttle {
    /// Whether an address may try now, given how many failures it may have in a minute (0: any number).
    /// If not, so many seconds are to be waited.
    ///
    /// # Errors
    /// The seconds.
    pub fn check(&self, peer: IpAddr, per_minute: u32, now_ms: u64) -> Result<(), u64> {
        if per_minute == 0 {
            return Ok(());
        }
        let key = bucket_key(peer);
        let bucket = match self.buckets.get(&key) {
            Some(bucket) => *bucket,
            None if self.buckets.len() >= self.max => self.shared,
            None => return Ok(()),
        };
        let over = bucket.leaked(per_minute, now_ms) - f64::from(per_minute) + 1.0;
        if over <= 0.0 {
            return Ok(());
        }
        let seconds = over * 60.0 / f64::from(per_minute);
        Err((seconds.ceil() as u64).max(1))
    }

    /// Counts a failure.
    pub fn fail(&mut self, peer: IpAddr, per_minute: u32, now_ms: u64) {
        if per_minute == 0 {
            return;
        }
        let key = bucket_key(peer);
        if !self.buckets.contains_key(&key) && self.buckets.len() >= self.max {
            self.prune(per_minute, now_ms);
        }
        let bucket = if self.buckets.contains_key(&key) || self.buckets.len() < self.max {
            self.buckets.entry(key).or_default()
        } else {
            &mut self.shared
        };
        *bucket = Bucket {
            failures: bucket.leaked(per_minute, now_ms) + 1.0,
            at_ms: now_ms,
        };
    }

    /// Forgets addresses without recent failures, at most once in [`PRUNE_MS`].
    fn prune(&mut self, per_minute: u32, now_ms: u64) {
        if now_ms.saturating_sub(self.pruned_ms) < PRUNE_MS {
            return;
        }
        self.pruned_ms = now_ms;
        self.buckets
            .retain(|_, bucket| bucket.leaked(per_minute, now_ms) > 0.0);
    }
}

impl Bucket {
    fn leaked(self, per_minute: u32, now_ms: u64) -> f64 {
        let minutes = now_ms.saturating_sub(self.at_ms) as f64 / 60_000.0;
        (self.failures - minutes * f64::from(per_minute)).max(0.0)
    }
}

/// Whoever has an IPv6 address has the rest of its network too.
fn bucket_key(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Milliseconds between two looks through all addresses.
const PRUNE_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn guessing_is_slowed_down() {
        let mut throttle = Throttle::default();
        let (guesser, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        for _ in 0..60 {
            assert_eq!(throttle.check(guesser, 60, 0), Ok(()));
            throttle.fail(guesser, 60, 0);
        }
        assert_eq!(throttle.check(guesser, 60, 0), Err(1));
        assert_eq!(throttle.check(guesser, 0, 0), Ok(()));
        assert_eq!(throttle.check(other, 60, 0), Ok(()));
        assert_eq!(throttle.check(guesser, 60, 1000), Ok(()));
        throttle.fail(guesser, 60, 1000);
        assert_eq!(throttle.check(guesser, 60, 1000), Err(1));
        assert_eq!(throttle.check(guesser, 60, 61_000), Ok(()));
    }

    #[test]
    fn neighbours_share_a_bucket() {
        let mut throttle = Throttle::default();
        throttle.fail(peer("2001:db8::1"), 1, 0);
        assert!(throttle.check(peer("2001:db8::ffff:1"), 1, 0).is_err());
        assert!(throttle.check(peer("2001:db8:0:1::1"), 1, 0).is_ok());
        throttle.fail(peer("192.0.2.1"), 1, 0);
        assert!(throttle.check(peer("::ffff:192.0.2.1"), 1, 0).is_err());
    }

    #[test]
    fn addresses_are_bounded() {
        let mut throttle = Throttle {
            max: 2,
            ..Throttle::default()
        };
        for last in 1..=4 {
            throttle.fail(peer(&format!("192.0.2.{last}")), 1, 0);
        }
        assert_eq!(throttle.buckets.len(), 2);
        assert!(
            throttle.check(peer("192.0.2.9"), 1, 0).is_err(),
            "strangers share a bucket"
        );
        let later = 10 * 60_000;
        throttle.fail(peer("192.0.2.5"), 1, later);
        assert_eq!(throttle.buckets.len(), 1);
    }
}
