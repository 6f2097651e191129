//! Rates and quotas of clients: what the `limits` block says, token buckets, and who a client is behind proxies.
//!
//! Everything here is a value with the time passed in; the gateway asks and carries out the refusal.

mod address;
mod bucket;
mod check;
mod config;
mod connections;
mod provisioning;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use address::{TrustedProxies, client_address};
pub(crate) use check::{check, strangers};
pub(crate) use config::{Limit, LimitConfig};
pub(crate) use connections::{Admission, ConnectionLimits};
pub(crate) use provisioning::ProvisioningLimits;
pub(crate) use socket::SocketLimits;

/// A refusal for a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverLimit {
    /// The limit's name.
    pub(crate) reason: &'static str,
    /// Whole seconds to wait, at least 1.
    pub(crate) retry_after_secs: u64,
}
