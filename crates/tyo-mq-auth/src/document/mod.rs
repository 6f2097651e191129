//! The auth settings: realms, tokens and the rest of the block, indexed so that a lookup does not depend on their number.

mod error;
pub(crate) mod flags;
mod load;
mod mutate;
pub(crate) mod realm;
mod rows;
pub(crate) mod token;
mod write;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use crate::json::Object;
use crate::names::RealmName;
use crate::secret::{Secret, SecretHash, StoredSecret};

pub use error::DocumentError;
pub use load::{LoadWarning, Merged};
pub use mutate::{Applied, Change, Mutation};
pub use realm::{E2ee, RealmConfig};
pub use rows::{RowChange, StoreRows, Table};
pub use token::{ManagementToken, Origin, TokenEntry};
pub use write::MAX_LISTED;
pub(crate) use write::redacted_value;

use flags::Flags;

/// The `auth` block of the settings and what the auth store holds, in one.
#[derive(Debug)]
pub struct AuthDocument {
    fields: Object,
    flags: Flags,
    realms: HashMap<RealmName, Numbered<RealmConfig>>,
    tokens: HashMap<SecretHash, Numbered<TokenEntry>>,
    tokens_by_realm: HashMap<RealmName, Vec<SecretHash>>,
    management_tokens: HashMap<SecretHash, Numbered<ManagementToken>>,
    admins: Vec<SecretHash>,
    expiries: BTreeSet<(u64, RealmName)>,
    next_number: u64,
    /// Which of the lists the settings had at all: realms, tokens, management tokens.
    sections: [bool; 3],
}

/// A thing with its place in the order in which things came.
#[derive(Debug)]
struct Numbered<T> {
    number: u64,
    value: T,
}

/// What is known of a realm now.
#[derive(Debug, Clone, Copy)]
pub enum RealmStatus<'a> {
    /// It is not configured.
    Unknown,
    /// It is configured.
    Live(&'a RealmConfig),
    /// It was ephemeral and its time is over: it admits nobody, though it may not be cleared away yet.
    Expired,
}

impl AuthDocument {
    /// Whether clients must authenticate at all.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.flags.enabled
    }

    /// Whether a realm that requires authentication and has no key admits no consumers without a token.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.flags.strict.unwrap_or(false)
    }

    /// A realm's configuration, also after its end.
    #[must_use]
    pub fn realm(&self, name: &str) -> Option<&RealmConfig> {
        self.realms.get(name).map(|realm| &realm.value)
    }

    /// What is known of a realm at this time.
    #[must_use]
    pub fn realm_status(&self, name: &str, now_ms: u64) -> RealmStatus<'_> {
        match self.realm(name) {
            None => RealmStatus::Unknown,
            Some(config) if config.is_expired(now_ms) => RealmStatus::Expired,
            Some(config) => RealmStatus::Live(config),
        }
    }

    /// The entry of a token.
    #[must_use]
    pub fn token(&self, hash: SecretHash) -> Option<&TokenEntry> {
        self.tokens.get(&hash).map(|token| &token.value)
    }

    /// The tokens of a realm.
    pub fn tokens_of(&self, realm: &str) -> impl Iterator<Item = &TokenEntry> {
        let hashes = self.tokens_by_realm.get(realm);
        hashes
            .into_iter()
            .flatten()
            .filter_map(|hash| self.token(*hash))
    }

    /// A token for provisioning realms.
    #[must_use]
    pub fn management_token(&self, hash: SecretHash) -> Option<&ManagementToken> {
        self.management_tokens.get(&hash).map(|token| &token.value)
    }

    /// All tokens for provisioning realms, in no order.
    pub fn management_tokens(&self) -> impl Iterator<Item = &ManagementToken> {
        self.management_tokens.values().map(|token| &token.value)
    }

    /// The secrets that sign for the global admin.
    pub fn admin_secrets(&self) -> impl Iterator<Item = &Secret> {
        self.admins
            .iter()
            .filter_map(|hash| match &self.token(*hash)?.secret {
                StoredSecret::Plain(secret) => Some(secret),
                StoredSecret::Hashed(_) => None,
            })
    }

    /// The number of tokens of the global admin.
    #[must_use]
    pub const fn admin_count(&self) -> usize {
        self.admins.len()
    }

    /// Whether a bearer token is one of the global admin's.
    #[must_use]
    pub fn is_admin_bearer(&self, presented: &str) -> bool {
        self.token(SecretHash::of(presented))
            .is_some_and(|entry| entry.is_global_admin() && entry.secret.matches(presented))
    }

    /// The number of realms that are configured.
    #[must_use]
    pub fn realm_count(&self) -> usize {
        self.realms.len()
    }

    /// The number of tokens.
    #[must_use]
    pub fn token_count(&self) -> usize {
        self.tokens.len()
    }

    /// When the next ephemeral realm ends, in milliseconds since 1970.
    #[must_use]
    pub fn next_expiry_ms(&self) -> Option<u64> {
        self.expiries.first().map(|(expires, _)| *expires)
    }

    /// The realms whose time is over.
    #[must_use]
    pub fn expired_realms(&self, now_ms: u64) -> Vec<RealmName> {
        self.expiries
            .iter()
            .take_while(|(expires, _)| *expires <= now_ms)
            .map(|(_, name)| name.clone())
            .collect()
    }

    /// How a client's new token is to be kept: as it is if it signs or the settings say so, else its digest.
    #[must_use]
    pub fn storable(&self, token: &Secret, signs: bool) -> StoredSecret {
        if self.flags.hash_tokens && !signs {
            StoredSecret::Hashed(token.hash())
        } else {
            StoredSecret::Plain(token.clone())
        }
    }

    pub(crate) const fn flags(&self) -> &Flags {
        &self.flags
    }

    /// The realms in the order in which they came.
    pub(crate) fn realms_in_order(&self) -> Vec<(&RealmName, &RealmConfig)> {
        let mut realms: Vec<_> = self.realms.iter().collect();
        realms.sort_unstable_by_key(|(_, realm)| realm.number);
        realms
            .into_iter()
            .map(|(name, realm)| (name, &realm.value))
            .collect()
    }

    /// The tokens in the order in which they came.
    pub(crate) fn tokens_in_order(&self) -> Vec<&TokenEntry> {
        in_order(self.tokens.values())
    }

    /// The management tokens in the order in which they came.
    pub(crate) fn management_tokens_in_order(&self) -> Vec<&ManagementToken> {
        in_order(self.management_tokens.values())
    }
}

fn in_order<'a, T>(things: impl Iterator<Item = &'a Numbered<T>>) -> Vec<&'a T> {
    let mut things: Vec<_> = things.collect();
    things.sort_unstable_by_key(|thing| thing.number);
    things.into_iter().map(|thing| &thing.value).collect()
}
