//! What one socket was granted, and whether that lets it do what it wants to. Nothing here knows the socket itself.

use crate::document::{AuthDocument, Change, RealmStatus};
use crate::names::{Permission, RealmName, Role};
use crate::policy::PresentedKey;
use crate::refusal::Refusal;
use crate::secret::SecretHash;

/// A socket's place: realm and role, and on what ground it has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The realm.
    pub realm: RealmName,
    /// The role.
    pub role: Role,
    /// The ground.
    pub via: Via,
}

/// On what ground a socket was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Via {
    /// Authentication was off.
    AuthOff,
    /// The realm is open.
    OpenRealm,
    /// It said its realm and role, and gave the realm's key if it had to: its digest.
    Declared(Option<SecretHash>),
    /// A token of the settings, by its digest.
    Token(SecretHash),
    /// A web token signed with the realm's manager key, by the key's digest.
    RealmJwt(SecretHash),
    /// A web token signed with the global secret, by its digest.
    GlobalJwt(SecretHash),
    /// An external validator, by the digest of its address.
    External(SecretHash),
}

/// The auth state of one socket of the main namespace. A new connection begins anew.
#[derive(Debug, Default)]
pub struct SocketAuth {
    grant: Option<Grant>,
    pending_realm: Option<RealmName>,
    is_asking: bool,
}

/// Whether an event may be handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allowed,
    /// Yes, and the socket has just been given the place that [`SocketAuth::grant`] tells.
    Granted,
    /// No: `AUTH_FAIL`, and the ack, if there is one, gets the same.
    Refused(Refusal),
}

impl SocketAuth {
    /// The state of a socket that has just connected.
    #[must_use]
    pub fn new(document: &AuthDocument) -> Self {
        Self {
            grant: (!document.is_enabled()).then(Grant::without_auth),
            ..Self::default()
        }
    }

    /// What the socket was granted.
    #[must_use]
    pub const fn grant(&self) -> Option<&Grant> {
        self.grant.as_ref()
    }

    /// Whether the socket may send an event, by its name. May grant a place, which stays.
    pub fn authorize(&mut self, event: &str, document: &AuthDocument, now_ms: u64) -> Decision {
        let permission = Permission::of(event);
        if permission == Permission::Free {
            return Decision::Allowed;
        }
        let Some(grant) = &self.grant else {
            return self.grant_implicitly(event, permission, document, now_ms);
        };
        let may_be_over = document
            .next_expiry_ms()
            .is_some_and(|expires| expires <= now_ms);
        if may_be_over && is_expired(document, &grant.realm, now_ms) {
            let message = format!("realm '{}' is gone", grant.realm);
            return Decision::Refused(Refusal::unauthenticated(message));
        }
        if grant.role.allows(permission) || document.is_open(&grant.realm, now_ms) {
            return Decision::Allowed;
        }
        let message = format!("role '{}' may not send {event}", grant.role);
        Decision::Refused(Refusal::forbidden(message))
    }

    /// Whether a change may concern the socket; if so it is to be [checked](Self::recheck).
    #[must_use]
    pub fn is_concerned(&self, change: &Change) -> bool {
        let Some(grant) = &self.grant else {
            return false;
        };
        match change {
            Change::Realm(name) | Change::RealmRemoved(name) => grant.realm == *name,
            Change::RealmRenamed { from, .. } => grant.realm == *from,
            Change::Token(hash) => grant.via == Via::Token(*hash),
            Change::Global => !matches!(grant.via, Via::Token(_)),
        }
    }

    /// Follows a realm that was renamed.
    pub fn rename_realm(&mut self, from: &RealmName, to: &RealmName) {
        for realm in self
            .grant
            .iter_mut()
            .map(|grant| &mut grant.realm)
            .chain(&mut self.pending_realm)
        {
            if realm == from {
                *realm = to.clone();
            }
        }
    }

    /// Whether the socket would still be admitted as it was.
    ///
    /// # Errors
    /// Why it would not; it is to be disconnected.
    pub fn recheck(&self, document: &AuthDocument, now_ms: u64) -> Result<(), Refusal> {
        match &self.grant {
            None => Ok(()),
            Some(grant) => grant.recheck(document, now_ms),
        }
    }

    pub(crate) fn set_grant(&mut self, grant: Grant) {
        self.grant = Some(grant);
    }

    pub(crate) fn set_pending_realm(&mut self, realm: RealmName) {
        self.pending_realm = Some(realm);
    }

    pub(crate) const fn is_asking(&self) -> bool {
        self.is_asking
    }

    pub(crate) const fn set_asking(&mut self, is_asking: bool) {
        self.is_asking = is_asking;
    }

    fn grant_implicitly(
        &mut self,
        event: &str,
        permission: Permission,
        document: &AuthDocument,
        now_ms: u64,
    ) -> Decision {
        let realm = self
            .pending_realm
            .clone()
            .unwrap_or_else(RealmName::default_realm);
        match document.implicit_grant(realm, permission, now_ms) {
            Some(grant) => {
                self.grant = Some(grant);
                Decision::Granted
            }
            None => {
                let message = format!("{event} needs authentication first");
                Decision::Refused(Refusal::unauthenticated(message))
            }
        }
    }
}

impl Grant {
    pub(crate) fn without_auth() -> Self {
        Self {
            realm: RealmName::default_realm(),
            role: Role::Both,
            via: Via::AuthOff,
        }
    }

    fn recheck(&self, document: &AuthDocument, now_ms: u64) -> Result<(), Refusal> {
        let gone = |what: &str| {
            Err(Refusal::unauthenticated(format!(
                "{what} is not valid any more"
            )))
        };
        if !document.is_enabled() {
            return Ok(());
        }
        if is_expired(document, &self.realm, now_ms) {
            return gone("the realm");
        }
        let holds = match &self.via {
            Via::AuthOff | Via::OpenRealm => document.is_open(&self.realm, now_ms),
            Via::Declared(key) => {
                let key = key.map_or(PresentedKey::None, PresentedKey::Earlier);
                document.is_open(&self.realm, now_ms)
                    || document
                        .admit_declared(&self.realm, &self.role, key, now_ms)
                        .is_ok()
            }
            Via::Token(hash) => document
                .token(*hash)
                .is_some_and(|entry| entry.realm == self.realm && entry.role == self.role),
            Via::RealmJwt(key) => document
                .manager_key(self.realm.as_str(), now_ms)
                .is_some_and(|current| current.hash() == *key),
            Via::GlobalJwt(secret) => document
                .flags()
                .jwt_secret
                .as_ref()
                .is_some_and(|current| current.hash() == *secret),
            Via::External(url) => document.has_validator(&self.realm, *url),
        };
        if holds {
            Ok(())
        } else {
            gone("what admitted it")
        }
    }
}

impl AuthDocument {
    /// The place of a socket that sends an event without having authenticated.
    fn implicit_grant(
        &self,
        realm: RealmName,
        permission: Permission,
        now_ms: u64,
    ) -> Option<Grant> {
        if !self.is_enabled() {
            return Some(Grant::without_auth());
        }
        if self.is_open(&realm, now_ms) {
            return Some(Grant {
                realm,
                role: Role::Both,
                via: Via::OpenRealm,
            });
        }
        let role = match permission {
            Permission::Consume => Role::Consumer,
            Permission::Produce => Role::Producer,
            Permission::Free | Permission::Session | Permission::Either => return None,
        };
        self.admit_declared(&realm, &role, PresentedKey::None, now_ms)
            .ok()?;
        Some(Grant {
            realm,
            role,
            via: Via::Declared(None),
        })
    }
}

fn is_expired(document: &AuthDocument, realm: &RealmName, now_ms: u64) -> bool {
    matches!(
        document.realm_status(realm.as_str(), now_ms),
        RealmStatus::Expired
    )
}

#[cfg(test)]
mod tests;
