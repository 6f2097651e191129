//! How many connections an address has, and how fast it opens them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bucket::TokenBucket;
use super::{Limit, LimitConfig, OverLimit};

/// Addresses with connections, or with a bucket that is not full again.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimits {
    addresses: Mutex<Addresses>,
}

#[derive(Debug, Default)]
struct Addresses {
    known: HashMap<IpAddr, Address>,
    pruned_at_ms: u64,
}

#[derive(Debug, Default)]
struct Address {
    open: u64,
    opening: Option<TokenBucket>,
    seen_at_ms: u64,
}

/// A connection that counts for its address until this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: Arc<ConnectionLimits>,
    address: IpAddr,
}

impl ConnectionLimits {
    /// Counts a new connection in, or refuses it.
    pub(crate) fn admit(
        self: &Arc<Self>,
        config: &LimitConfig,
        address: IpAddr,
        now_ms: u64,
    ) -> Result<Admission, OverLimit> {
        let mut addresses = self.lock();
        addresses.prune(now_ms);
        let entry = addresses.known.entry(address).or_default();
        entry.seen_at_ms = now_ms;
        let most = config.global(Limit::MAX_CONNECTIONS_PER_IP);
        if most.is_some_and(|most| entry.open as f64 >= most) {
            let reason = Limit::MAX_CONNECTIONS_PER_IP.0;
            return Err(OverLimit {
                reason,
                retry_after_secs: BUSY_RETRY_SECS,
            });
        }
        if let Some(a_minute) = config.global(Limit::CONNECTIONS_PER_MINUTE_PER_IP) {
            let bucket = entry
                .opening
                .get_or_insert_with(|| TokenBucket::full(a_minute, now_ms));
            let taken = bucket.take(1.0, a_minute / 60.0, a_minute, now_ms);
            let reason = Limit::CONNECTIONS_PER_MINUTE_PER_IP.0;
            taken.map_err(|retry_after_secs| OverLimit {
                reason,
                retry_after_secs,
            })?;
        }
        entry.open += 1;
        Ok(Admission {
            limits: self.clone(),
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Addresses> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Addresses {
    /// Forgets addresses that nobody is connected from and that were not seen for long.
    fn prune(&mut self, now_ms: u64) {
        let full = self.known.len() >= MAX_ADDRESSES;
        if now_ms.saturating_sub(self.pruned_at_ms) < PRUNE_EVERY_MS && !full {
            return;
        }
        self.pruned_at_ms = now_ms;
        let keep_ms = if full { 0 } else { KEEP_MS };
        self.known
            .retain(|_, entry| entry.open > 0 || now_ms.saturating_sub(entry.seen_at_ms) < keep_ms);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(entry) = self.limits.lock().known.get_mut(&self.address) {
            entry.open = entry.open.saturating_sub(1);
        }
    }
}

const BUSY_RETRY_SECS: u64 = 30;
const PRUNE_EVERY_MS: u64 = 60_000;
const KEEP_MS: u64 = 600_000;

/// At so many addresses, those without a connection are forgotten at once.
const MAX_ADDRESSES: usize = 100_000;
