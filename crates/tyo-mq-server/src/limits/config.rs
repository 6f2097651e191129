//! The `limits` block of the settings: numbers by name, with other numbers for single realms.

use std::collections::HashMap;

use serde_json::Value;

use super::TrustedProxies;

/// What the settings say. Values that are no positive number are no limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LimitConfig {
    enabled: bool,
    global: HashMap<&'static str, f64>,
    realms: HashMap<String, HashMap<&'static str, Option<f64>>>,
    pub(crate) proxies: TrustedProxies,
}

/// The name of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Limit(pub(crate) &'static str);

impl Limit {
    pub(crate) const MESSAGES_PER_SECOND: Self = Self("messages_per_second");
    pub(crate) const MESSAGE_BURST: Self = Self("message_burst");
    pub(crate) const BYTES_PER_SECOND: Self = Self("bytes_per_second");
    pub(crate) const BYTES_BURST: Self = Self("bytes_burst");
    pub(crate) const MAX_CONNECTIONS_PER_IP: Self = Self("max_connections_per_ip");
    pub(crate) const CONNECTIONS_PER_MINUTE_PER_IP: Self = Self("connections_per_minute_per_ip");
    pub(crate) const MAX_REGISTRATIONS_PER_SOCKET: Self = Self("max_registrations_per_socket");
    pub(crate) const MAX_REGISTRATIONS_PER_REALM: Self = Self("max_registrations_per_realm");
    pub(crate) const MAX_SUBSCRIPTIONS_PER_SOCKET: Self = Self("max_subscriptions_per_socket");
    pub(crate) const MAX_SUBSCRIPTIONS_PER_REALM: Self = Self("max_subscriptions_per_realm");
    pub(crate) const MAX_QUEUED_PER_REALM: Self = Self("max_queued_per_realm");
    pub(crate) const REALMS_PER_HOUR_PER_IP: Self = Self("realms_per_hour_per_ip");
    pub(crate) const MAX_PENDING_AUTHORIZATION_REQUESTS: Self =
        Self("max_pending_authorization_requests");

    /// Those that realms may have of their own.
    pub(crate) const OF_REALM: [Self; 9] = [
        Self::MESSAGES_PER_SECOND,
        Self::MESSAGE_BURST,
        Self::BYTES_PER_SECOND,
        Self::BYTES_BURST,
        Self::MAX_REGISTRATIONS_PER_SOCKET,
        Self::MAX_REGISTRATIONS_PER_REALM,
        Self::MAX_SUBSCRIPTIONS_PER_SOCKET,
        Self::MAX_SUBSCRIPTIONS_PER_REALM,
        Self::MAX_QUEUED_PER_REALM,
    ];

    /// All of them.
    pub(crate) const ALL: [Self; 13] = [
        Self::MESSAGES_PER_SECOND,
        Self::MESSAGE_BURST,
        Self::BYTES_PER_SECOND,
        Self::BYTES_BURST,
        Self::MAX_CONNECTIONS_PER_IP,
        Self::CONNECTIONS_PER_MINUTE_PER_IP,
        Self::MAX_REGISTRATIONS_PER_SOCKET,
        Self::MAX_REGISTRATIONS_PER_REALM,
        Self::MAX_SUBSCRIPTIONS_PER_SOCKET,
        Self::MAX_SUBSCRIPTIONS_PER_REALM,
        Self::MAX_QUEUED_PER_REALM,
        Self::REALMS_PER_HOUR_PER_IP,
        Self::MAX_PENDING_AUTHORIZATION_REQUESTS,
    ];
}

impl LimitConfig {
    /// Reads the block; what it does not understand is no limit.
    pub(crate) fn from_settings(block: &Value) -> Self {
        let mut realms = HashMap::new();
        for (realm, block) in block
            .get("realms")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let named = Limit::ALL
                .into_iter()
                .filter(|limit| block.get(limit.0).is_some());
            realms.insert(
                realm.clone(),
                named.map(|limit| (limit.0, number(block, limit))).collect(),
            );
        }
        Self {
            // The block by itself means them; only a `false` switches them off.
            enabled: block.is_object() && block.get("enabled") != Some(&Value::Bool(false)),
            global: Limit::ALL
                .into_iter()
                .filter_map(|limit| Some((limit.0, number(block, limit)?)))
                .collect(),
            realms,
            proxies: TrustedProxies::from_settings(block),
        }
    }

    /// Whether any limit is kept.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The limit for a realm: its own if it names one, else the one for all. `None` is no limit.
    pub(crate) fn of_realm(&self, realm: &str, limit: Limit) -> Option<f64> {
        let own = self
            .realms
            .get(realm)
            .and_then(|limits| limits.get(limit.0));
        own.copied()
            .unwrap_or_else(|| self.global.get(limit.0).copied())
            .filter(|_| self.enabled)
    }

    /// The limit for all realms together.
    pub(crate) fn global(&self, limit: Limit) -> Option<f64> {
        self.global.get(limit.0).copied().filter(|_| self.enabled)
    }
}

fn number(block: &Value, limit: Limit) -> Option<f64> {
    as_number(block.get(limit.0)?).filter(|value| value.is_finite() && *value > 0.0)
}

/// A number, also one that stands in a string.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    }
}
