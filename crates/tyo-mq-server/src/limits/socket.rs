//! What one socket may send: messages, bytes, registrations, subscriptions. And how often it is told that it may not.

use super::bucket::TokenBucket;
use super::{Limit, LimitConfig, OverLimit};

/// Counts of one socket.
#[derive(Debug, Default)]
pub(crate) struct SocketLimits {
    messages: Option<TokenBucket>,
    bytes: Option<TokenBucket>,
    registrations: u64,
    subscriptions: u64,
    told_at_ms: Option<u64>,
}

impl SocketLimits {
    /// A PRODUCE or a chunk of so many bytes. The message is paid for even if its bytes are not.
    pub(crate) fn message(
        &mut self,
        config: &LimitConfig,
        realm: &str,
        bytes: usize,
        now_ms: u64,
    ) -> Result<(), OverLimit> {
        let charges = [
            (
                &mut self.messages,
                Limit::MESSAGES_PER_SECOND,
                Limit::MESSAGE_BURST,
                3.0,
                1.0,
            ),
            (
                &mut self.bytes,
                Limit::BYTES_PER_SECOND,
                Limit::BYTES_BURST,
                2.0,
                (bytes as f64).max(1.0),
            ),
        ];
        for (bucket, rate, burst, default_burst, cost) in charges {
            let Some(per_second) = config.of_realm(realm, rate) else {
                continue;
            };
            let burst = config
                .of_realm(realm, burst)
                .unwrap_or(per_second * default_burst);
            let bucket = bucket.get_or_insert_with(|| TokenBucket::full(burst, now_ms));
            let taken = bucket.take(cost, per_second, burst, now_ms);
            taken.map_err(|retry_after_secs| OverLimit {
                reason: rate.0,
                retry_after_secs,
            })?;
        }
        Ok(())
    }

    /// A PRODUCER or CONSUMER; `in_realm` are the names that the realm has.
    pub(crate) fn registration(
        &mut self,
        config: &LimitConfig,
        realm: &str,
        in_realm: usize,
    ) -> Result<(), OverLimit> {
        let (own, all) = (
            Limit::MAX_REGISTRATIONS_PER_SOCKET,
            Limit::MAX_REGISTRATIONS_PER_REALM,
        );
        count(
            &mut self.registrations,
            in_realm,
            (config.of_realm(realm, own), own),
            (config.of_realm(realm, all), all),
        )
    }

    /// A SUBSCRIBE; `in_realm` are the subscriptions that the realm has.
    pub(crate) fn subscription(
        &mut self,
        config: &LimitConfig,
        realm: &str,
        in_realm: usize,
    ) -> Result<(), OverLimit> {
        let (own, all) = (
            Limit::MAX_SUBSCRIPTIONS_PER_SOCKET,
            Limit::MAX_SUBSCRIPTIONS_PER_REALM,
        );
        count(
            &mut self.subscriptions,
            in_realm,
            (config.of_realm(realm, own), own),
            (config.of_realm(realm, all), all),
        )
    }

    /// Whether the client is told of a refusal now: at most once a second.
    pub(crate) fn tell(&mut self, now_ms: u64) -> bool {
        let due = self
            .told_at_ms
            .is_none_or(|told| now_ms.saturating_sub(told) >= 1000);
        if due {
            self.told_at_ms = Some(now_ms);
        }
        due
    }
}

/// Counts one more unless a limit is reached.
fn count(
    counted: &mut u64,
    in_realm: usize,
    own: (Option<f64>, Limit),
    all: (Option<f64>, Limit),
) -> Result<(), OverLimit> {
    for ((limit, name), value) in [(own, *counted as f64), (all, in_realm as f64)] {
        if limit.is_some_and(|limit| value >= limit) {
            return Err(OverLimit {
                reason: name.0,
                retry_after_secs: QUOTA_RETRY_SECS,
            });
        }
    }
    *counted += 1;
    Ok(())
}

/// A quota frees itself at no known time: the reference's figure.
const QUOTA_RETRY_SECS: u64 = 60;
