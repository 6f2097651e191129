//! Every key that a settings file of this family may have: what is obeyed, what comes later, what is a slip.

/// A known key, with dots for nesting.
pub(super) enum Known {
    /// Obeyed.
    Yes,
    /// Known to the reference, without effect in this version.
    Later,
    /// Not known.
    No,
}

/// What is known of a key path. Lists have no keys of their own.
pub(super) fn look_up(path: &str) -> Known {
    if OBEYED.contains(&path) || path.starts_with("limits.realms.") {
        return Known::Yes;
    }
    if let Some(name) = path.strip_prefix("auth.") {
        // Realms, tokens and their free-form fields are checked where they are understood.
        let is_known = name.contains('.') || AUTH_SPELLINGS.contains(&name);
        return if is_known { Known::Yes } else { Known::No };
    }
    let later = LATER
        .iter()
        .any(|prefix| path == *prefix || path.starts_with(&format!("{prefix}.")));
    if later { Known::Later } else { Known::No }
}

/// The known key that an unknown one was probably meant to be.
pub fn suggestion(path: &str) -> Option<&'static str> {
    let candidates = OBEYED.iter().chain(LATER);
    let near = candidates
        .map(|known| (distance(path, known), *known))
        .min()?;
    (near.0 <= MAX_SLIPS && near.0 < path.len()).then_some(near.1)
}

/// The field of a realm that another one was probably meant to be. Realms may have fields that nobody knows.
pub(super) fn realm_suggestion(name: &str) -> Option<&'static str> {
    if REALM_FIELDS.contains(&name) {
        return None;
    }
    let long = REALM_FIELDS.iter().filter(|known| known.len() > 4);
    let near = long.map(|known| (distance(name, known), *known)).min()?;
    (near.0 <= MAX_REALM_SLIPS).then_some(near.1)
}

/// So many letters of a realm's field may differ: further off, somebody may have meant it.
const MAX_REALM_SLIPS: usize = 2;

/// Other spellings in the block of access control, and what the reference has there without effect.
const AUTH_SPELLINGS: &[&str] = &[
    "authUrl",
    "authSecret",
    "jwtSecret",
    "ephemeralRealmTtl",
    "temporary_realm_ttl",
    "temporaryRealmTtl",
    "orgs",
];

const REALM_FIELDS: &[&str] = &[
    "required",
    "key",
    "key_hash",
    "preshared_key",
    "presharedKey",
    "require_key",
    "requireKey",
    "require_acceptance",
    "requireAcceptance",
    "manager_key",
    "managerKey",
    "allow_anonymous",
    "allowAnonymous",
    "e2ee",
    "ephemeral",
    "temporary",
    "expires_at",
    "auth_url",
    "authUrl",
    "auth_secret",
    "authSecret",
];

/// So many letters may differ.
const MAX_SLIPS: usize = 3;

const OBEYED: &[&str] = &[
    "host",
    "port",
    "pingInterval",
    "ping_interval",
    "pingTimeout",
    "ping_timeout",
    "upgradeTimeout",
    "upgrade_timeout",
    "connectTimeout",
    "connect_timeout",
    "maxHttpBufferSize",
    "max_http_buffer_size",
    "allowEIO3",
    "allow_eio3",
    "cors",
    "cors.origin",
    "cors.methods",
    "cors.credentials",
    "max_connections",
    "outbound_max_bytes",
    "slow_consumer",
    "workers",
    "storage",
    "store",
    "storage_options",
    "storageOptions",
    "storage_options.default_ttl",
    "storage_options.defaultTtl",
    "storage_options.filename",
    "storage_options.file",
    "storage_options.path",
    "storage_options.durability",
    "storage_options.url",
    "storage_options.prefix",
    "storage_options.fallback",
    "storage_options.fallback_filename",
    "storage_options.fallbackFilename",
    "storage_options.fallback_path",
    "storage_options.fallbackPath",
    "storage_options.probe_timeout",
    "storage_options.probeTimeout",
    "storage_options.connect_timeout",
    "storage_options.connectTimeout",
    "ack_timeout",
    "ackTimeout",
    "prefetch",
    "idle_eviction",
    "idleEviction",
    "idle_eviction.enabled",
    "idle_eviction.ttl_ms",
    "idle_eviction.ttlMs",
    "idle_eviction.interval_ms",
    "idle_eviction.intervalMs",
    "durable_subscription_ttl",
    "expired_to_dlq",
    "http_api",
    "httpApi",
    "http_api.enabled",
    "http_api.health",
    "http_api.metrics",
    "http_api.metrics_auth",
    "http_api.stats",
    "limits",
    "limits.enabled",
    "limits.max_queued_per_realm",
    "limits.trusted_proxies",
    "limits.trustedProxies",
    "limits.trust_proxy",
    "limits.trustProxy",
    "limits.messages_per_second",
    "limits.message_burst",
    "limits.bytes_per_second",
    "limits.bytes_burst",
    "limits.max_connections_per_ip",
    "limits.connections_per_minute_per_ip",
    "limits.max_registrations_per_socket",
    "limits.max_registrations_per_realm",
    "limits.max_subscriptions_per_socket",
    "limits.max_subscriptions_per_realm",
    "limits.realms_per_hour_per_ip",
    "limits.max_pending_authorization_requests",
    "limits.realms",
    "auth",
    "auth.enabled",
    "auth.strict",
    "auth.env_file",
    "auth.admin_token_env",
    "auth.auto_admin_token",
    "auth.jwt_secret",
    "auth.auth_url",
    "auth.auth_secret",
    "auth.external_validators",
    "auth.management_tokens",
    "auth.ephemeral_realm_ttl",
    "auth.token_storage",
    "auth.max_failures_per_minute",
    "auth.tokens",
    "auth.realms",
    "auth_store",
    "authStore",
    "auth_store.enabled",
    "auth_store.filename",
    "auth_store.file",
    "auth_store.path",
];

const LATER: &[&str] = &[
    "storage_module",
    "storage_options.module",
    "storage_options.module_path",
    "http_publish",
    "httpPublish",
    "cluster",
    "remote",
    "namespaces",
    "serveClient",
    "perMessageDeflate",
    "sealed",
    "push",
];

/// Letters to insert, remove or replace.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What operators read.
    const DOCUMENT: &str = include_str!("../../../../docs/SETTINGS.md");

    #[test]
    fn every_key_that_is_obeyed_is_documented() {
        let missing: Vec<_> = OBEYED
            .iter()
            .filter(|key| !DOCUMENT.contains(&format!("`{key}`")))
            .collect();
        assert!(missing.is_empty(), "docs/SETTINGS.md lacks {missing:?}");
    }

    #[test]
    fn every_key_that_is_documented_is_known() {
        let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `"));
        let keys = rows.flat_map(|row| row.split('|').skip(1).take(2));
        let named = keys.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let unknown: Vec<_> = named
            .filter(|key| !key.starts_with("--") && !key.starts_with("TYO_MQ_"))
            .filter(|key| !matches!(look_up(key), Known::Yes))
            .collect();
        assert!(unknown.is_empty(), "docs/SETTINGS.md has {unknown:?}");
    }

    #[test]
    fn keys_are_known_suggested_or_strange() {
        assert!(matches!(look_up("port"), Known::Yes));
        assert!(matches!(look_up("remote.relay.x"), Known::Later));
        assert!(matches!(look_up("remoter"), Known::No));
        assert_eq!(suggestion("prot"), Some("port"));
        assert_eq!(suggestion("xyz"), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
