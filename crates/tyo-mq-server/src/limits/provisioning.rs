//! How many realms an address creates in an hour.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use super::bucket::TokenBucket;
use super::{Limit, LimitConfig, OverLimit};

/// Addresses whose bucket is not full again.
#[derive(Debug, Default)]
pub(crate) struct ProvisioningLimits {
    addresses: Mutex<HashMap<IpAddr, Address>>,
}

#[derive(Debug)]
struct Address {
    bucket: TokenBucket,
    seen_at_ms: u64,
}

impl ProvisioningLimits {
    /// Counts an attempt, or refuses it.
    pub(crate) fn admit(
        &self,
        config: &LimitConfig,
        address: IpAddr,
        now_ms: u64,
    ) -> Result<(), OverLimit> {
        let Some(an_hour) = config.global(Limit::REALMS_PER_HOUR_PER_IP) else {
            return Ok(());
        };
        let known = &mut *self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_ADDRESSES && !known.contains_key(&address) {
            known.retain(|_, entry| now_ms.saturating_sub(entry.seen_at_ms) < HOUR_MS);
        }
        let over = |retry_after_secs| OverLimit {
            reason: Limit::REALMS_PER_HOUR_PER_IP.0,
            retry_after_secs,
        };
        if known.len() >= MAX_ADDRESSES && !known.contains_key(&address) {
            return Err(over(HOUR_MS / 1000));
        }
        let entry = known.entry(address).or_insert_with(|| Address {
            bucket: TokenBucket::full(an_hour, now_ms),
            seen_at_ms: now_ms,
        });
        entry.seen_at_ms = now_ms;
        let taken = entry.bucket.take(1.0, an_hour / 3600.0, an_hour, now_ms);
        taken.map_err(over)
    }
}

/// After this time a bucket is full again.
const HOUR_MS: u64 = 3_600_000;

/// At so many addresses, those that were not seen for an hour are forgotten; if none are, further ones are refused.
const MAX_ADDRESSES: usize = 100_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_has_its_number_an_hour() {
        let block = json!({ "enabled": true, "realms_per_hour_per_ip": 2 });
        let config = LimitConfig::from_settings(&block);
        let limits = ProvisioningLimits::default();
        let admit = |address: &str, now_ms| {
            let admitted = limits.admit(&config, address.parse().unwrap(), now_ms);
            admitted.map_err(|over| over.retry_after_secs)
        };
        assert_eq!([admit("::1", 0), admit("::1", 0)], [Ok(()), Ok(())]);
        assert_eq!([admit("::1", 0), admit("::2", 0)], [Err(1800), Ok(())]);
        assert_eq!(admit("::1", 1_800_000), Ok(()));
        let off =
            LimitConfig::from_settings(&json!({ "enabled": false, "realms_per_hour_per_ip": 1 }));
        let address = "::1".parse().unwrap();
        assert!((0..10).all(|_| limits.admit(&off, address, 0).is_ok()));
    }
}
