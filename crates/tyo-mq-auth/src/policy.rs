//! What the settings say of a realm, and whom it admits without a token. Asked anew each time, never remembered.

use crate::document::realm::RealmPolicy;
use crate::document::{AuthDocument, E2ee, RealmStatus};
use crate::names::{RealmName, Role};
use crate::refusal::Refusal;
use crate::secret::{Secret, SecretHash, StoredSecret};

/// A key that came with a request without a token.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PresentedKey<'a> {
    /// None, or no string.
    None,
    /// A text.
    Text(&'a str),
    /// The digest of one that was right once.
    Earlier(SecretHash),
}

impl AuthDocument {
    /// Whether a realm admits everyone.
    #[must_use]
    pub fn is_open(&self, realm: &RealmName, now_ms: u64) -> bool {
        if !self.is_enabled() {
            return true;
        }
        match self.realm_status(realm.as_str(), now_ms) {
            RealmStatus::Live(config) => {
                !realm.is_wildcard() && config.policy().required == Some(false)
            }
            RealmStatus::Unknown | RealmStatus::Expired => false,
        }
    }

    /// Whether consumers without a token need the realm's key.
    #[must_use]
    pub fn is_key_required(&self, realm: &str) -> bool {
        self.is_enabled()
            && self
                .policy(realm)
                .is_some_and(|policy| policy.require_key.unwrap_or(policy.key.is_some()))
    }

    /// Whether producers need a token.
    #[must_use]
    pub fn is_acceptance_required(&self, realm: &RealmName, now_ms: u64) -> bool {
        self.is_enabled()
            && self
                .policy(realm.as_str())
                .and_then(|policy| policy.require_acceptance)
                .unwrap_or_else(|| !self.is_open(realm, now_ms))
    }

    /// Whether clients may register without a name of their own.
    #[must_use]
    pub fn is_anonymous_allowed(&self, realm: &str) -> bool {
        self.policy(realm)
            .and_then(|policy| policy.allow_anonymous)
            .unwrap_or(realm == "default")
    }

    /// The realm's policy for end-to-end encryption.
    #[must_use]
    pub fn e2ee(&self, realm: &str) -> E2ee {
        self.policy(realm).map_or(E2ee::Off, |policy| policy.e2ee)
    }

    /// The key with which the realm's managers sign, while the realm lives.
    #[must_use]
    pub fn manager_key(&self, realm: &str, now_ms: u64) -> Option<&Secret> {
        match self.realm_status(realm, now_ms) {
            RealmStatus::Live(config) => config.policy().manager_key.as_ref(),
            RealmStatus::Unknown | RealmStatus::Expired => None,
        }
    }

    /// Whether a session without a token is admitted to a realm that is not open. Tells the digest of the key it took.
    pub(crate) fn admit_declared(
        &self,
        realm: &RealmName,
        role: &Role,
        key: PresentedKey<'_>,
        now_ms: u64,
    ) -> Result<Option<SecretHash>, Refusal> {
        if realm.is_wildcard() {
            return Err(Refusal::unauthenticated("realm '*' needs a token"));
        }
        if matches!(
            self.realm_status(realm.as_str(), now_ms),
            RealmStatus::Expired
        ) {
            return Err(Refusal::unauthenticated(format!("realm '{realm}' is gone")));
        }
        let taken = if role.consumes() {
            self.admit_consumer(realm, key, now_ms)?
        } else {
            None
        };
        if role.produces() && self.is_acceptance_required(realm, now_ms) {
            return Err(Refusal::forbidden(format!(
                "realm '{realm}' takes producers that it has accepted"
            )));
        }
        Ok(taken)
    }

    fn admit_consumer(
        &self,
        realm: &RealmName,
        key: PresentedKey<'_>,
        now_ms: u64,
    ) -> Result<Option<SecretHash>, Refusal> {
        let policy = self.policy(realm.as_str());
        if !self.is_key_required(realm.as_str()) {
            let waived = policy.is_some_and(|policy| policy.require_key == Some(false));
            if self.is_strict() && !waived && !self.is_open(realm, now_ms) {
                return Err(Refusal::unauthenticated(format!(
                    "realm '{realm}' needs a token"
                )));
            }
            return Ok(None);
        }
        policy
            .and_then(|policy| policy.key.as_ref())
            .filter(|stored| key.is(stored))
            .map(|stored| Some(stored.hash()))
            .ok_or_else(|| Refusal::unauthenticated(format!("realm '{realm}' needs its key")))
    }

    fn policy(&self, realm: &str) -> Option<&RealmPolicy> {
        self.realm(realm).map(|config| config.policy())
    }
}

impl PresentedKey<'_> {
    fn is(self, stored: &StoredSecret) -> bool {
        match self {
            Self::None => false,
            Self::Text(text) => text.len() <= Secret::MAX_BYTES && stored.matches(text),
            Self::Earlier(hash) => hash == stored.hash(),
        }
    }
}
