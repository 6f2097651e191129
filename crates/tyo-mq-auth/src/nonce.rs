//! Nonces of proofs that were used: kept until their proof is too old anyway, never evicted before.

use std::collections::{BTreeSet, HashMap};

use crate::secret::SecretHash;

/// How far a proof's time may be from ours, in milliseconds, either way.
pub const WINDOW_MS: u64 = 300_000;

/// The most nonces kept. A proof that comes when so many are in their window is refused.
pub const MAX_NONCES: usize = 100_000;

/// Why a nonce is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonceError {
    /// It was used.
    Used,
    /// Too many are kept.
    Full,
}

/// A nonce that was used, by its digest, and when it may be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UsedNonce {
    /// Milliseconds since 1970 after which its proof is too old.
    pub expires_ms: u64,
    /// The digest of the nonce.
    pub hash: SecretHash,
}

/// The used nonces of one window.
#[derive(Debug)]
pub struct NonceWindow {
    by_hash: HashMap<SecretHash, u64>,
    by_time: BTreeSet<UsedNonce>,
    not_before_ms: u64,
    max: usize,
}

impl NonceWindow {
    /// A window that remembers all that was used before, because it was kept; or because nothing was.
    #[must_use]
    pub fn restored(used: impl IntoIterator<Item = UsedNonce>, now_ms: u64) -> Self {
        let mut window = Self::with_limit(MAX_NONCES, 0);
        for nonce in used {
            if nonce.expires_ms >= now_ms {
                window.insert(nonce);
            }
        }
        window
    }

    /// A window after a restart that forgot what was used: proofs older than the start are refused.
    #[must_use]
    pub fn forgetful(started_ms: u64) -> Self {
        Self::with_limit(MAX_NONCES, started_ms)
    }

    /// Whether a proof of this time may count: within the window, and not older than what we remember.
    #[must_use]
    pub fn covers(&self, timestamp_ms: f64, now_ms: u64) -> bool {
        (now_ms as f64 - timestamp_ms).abs() <= WINDOW_MS as f64
            && timestamp_ms >= self.not_before_ms as f64
    }

    /// Whether it was used.
    #[must_use]
    pub fn is_used(&self, nonce: &str) -> bool {
        self.by_hash.contains_key(&SecretHash::of(nonce))
    }

    /// Takes a nonce of a proof that was found good.
    ///
    /// # Errors
    /// When it was used, or when too many are kept.
    pub fn claim(
        &mut self,
        nonce: &str,
        timestamp_ms: f64,
        now_ms: u64,
    ) -> Result<UsedNonce, NonceError> {
        self.forget(now_ms);
        let hash = SecretHash::of(nonce);
        if self.by_hash.contains_key(&hash) {
            return Err(NonceError::Used);
        }
        if self.by_hash.len() >= self.max {
            return Err(NonceError::Full);
        }
        let used = UsedNonce {
            expires_ms: timestamp_ms.max(0.0).ceil() as u64 + WINDOW_MS,
            hash,
        };
        self.insert(used);
        Ok(used)
    }

    /// The nonces in their window, for keeping.
    pub fn iter(&self) -> impl Iterator<Item = UsedNonce> {
        self.by_time.iter().copied()
    }

    /// The number of nonces kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    fn with_limit(max: usize, not_before_ms: u64) -> Self {
        Self {
            by_hash: HashMap::new(),
            by_time: BTreeSet::new(),
            not_before_ms,
            max,
        }
    }

    fn insert(&mut self, nonce: UsedNonce) {
        if let Some(old) = self.by_hash.insert(nonce.hash, nonce.expires_ms) {
            self.by_time.remove(&UsedNonce {
                expires_ms: old,
                hash: nonce.hash,
            });
        }
        self.by_time.insert(nonce);
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some(oldest) = self.by_time.first().copied() {
            if oldest.expires_ms >= now_ms {
                break;
            }
            self.by_time.remove(&oldest);
            self.by_hash.remove(&oldest.hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_760_000_000_000;

    #[test]
    fn once_only() {
        let mut window = NonceWindow::forgetful(0);
        let claim = |window: &mut NonceWindow, nonce: &str, at: u64, now| {
            window.claim(nonce, at as f64, now).map(|_| ())
        };
        assert_eq!(claim(&mut window, "a", NOW, NOW), Ok(()));
        assert!(window.is_used("a") && !window.is_used("b"));
        assert_eq!(claim(&mut window, "a", NOW, NOW), Err(NonceError::Used));
        let end = NOW + WINDOW_MS;
        assert_eq!(claim(&mut window, "a", end, end), Err(NonceError::Used));
        assert_eq!(claim(&mut window, "a", end, end + 1), Ok(()));
        assert_eq!(window.len(), 1);
    }

    /// The nonce of a proof from the future stays until that future is past.
    #[test]
    fn future_proofs_are_kept_longer() {
        let mut window = NonceWindow::forgetful(0);
        let ahead = (NOW + WINDOW_MS) as f64;
        window.claim("a", ahead, NOW).unwrap();
        let later = NOW + 2 * WINDOW_MS;
        assert!(window.covers(ahead, later));
        assert_eq!(window.claim("a", ahead, later), Err(NonceError::Used));
    }

    #[test]
    fn full_refuses_and_evicts_nothing() {
        let mut window = NonceWindow::with_limit(3, 0);
        for nonce in ["a", "b", "c"] {
            window.claim(nonce, NOW as f64, NOW).unwrap();
        }
        assert_eq!(window.claim("d", NOW as f64, NOW), Err(NonceError::Full));
        assert_eq!(window.claim("a", NOW as f64, NOW), Err(NonceError::Used));
        let later = NOW + WINDOW_MS + 1;
        assert!(window.claim("d", later as f64, later).is_ok());
    }

    #[test]
    fn limits_of_the_window() {
        let window = NonceWindow::forgetful(NOW - 10);
        for (timestamp, expected) in [
            (NOW as f64, true),
            ((NOW + WINDOW_MS) as f64, true),
            ((NOW + WINDOW_MS + 1) as f64, false),
            ((NOW - 10) as f64, true),
            ((NOW - 11) as f64, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
            (f64::NEG_INFINITY, false),
        ] {
            assert_eq!(window.covers(timestamp, NOW), expected, "{timestamp}");
        }
        assert!(NonceWindow::restored([], NOW).covers((NOW - WINDOW_MS) as f64, NOW));
    }

    #[test]
    fn kept_over_a_restart() {
        let mut window = NonceWindow::forgetful(0);
        window.claim("old", (NOW - WINDOW_MS) as f64, NOW).unwrap();
        window.claim("new", NOW as f64, NOW).unwrap();
        let mut again = NonceWindow::restored(window.iter(), NOW + 1);
        assert_eq!(again.len(), 1);
        assert_eq!(
            again.claim("new", NOW as f64, NOW + 1),
            Err(NonceError::Used)
        );
    }
}
