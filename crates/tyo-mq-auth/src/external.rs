//! Validators elsewhere: which one is asked what, what its answer grants, and how often it is asked. No HTTP here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::document::AuthDocument;
use crate::json::{Object, Value};
use crate::names::{RealmName, Role};
use crate::secret::{Secret, SecretHash};

/// The most validations under way.
pub const MAX_CALLS: usize = 64;
/// How long an answer may take, in milliseconds.
pub const TIMEOUT_MS: u64 = 5000;
/// The largest answer, in bytes.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// How long a token that was found invalid is not asked about again, in milliseconds.
pub const NEGATIVE_TTL_MS: u64 = 5000;
/// The most tokens that are remembered as invalid; the oldest is forgotten first.
pub const MAX_NEGATIVE: usize = 10_000;

/// What to ask: a POST with this body, within [`TIMEOUT_MS`]; redirects are not followed, and no more than
/// [`MAX_RESPONSE_BYTES`] are read.
#[derive(Debug, Clone)]
pub struct ExternalRequest {
    /// The address.
    pub url: String,
    /// The value of the header `x-mq-auth-secret`, if it is to be sent.
    pub secret: Option<Secret>,
    /// The body, `application/json`. It holds a token: for the wire only.
    pub body: Secret,
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct ExternalResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// There was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the validator did not answer")]
pub struct ExternalUnavailable;

/// Which realms an answer may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    Realm(RealmName),
    Prefix(Box<str>),
    Any,
}

/// A validator that was chosen.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) scope: Scope,
    pub(crate) url: Box<str>,
    pub(crate) secret: Option<Secret>,
}

/// What an answer came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid { realm: RealmName, role: Role },
    Invalid,
    Unusable,
}

/// What is remembered of validations: how many are under way, and what was found invalid lately.
#[derive(Debug, Default)]
pub(crate) struct Validations {
    permits: Arc<()>,
    negative: HashMap<SecretHash, u64>,
    order: VecDeque<(SecretHash, u64)>,
}

/// Stands for a validation under way until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(#[expect(dead_code, reason = "it counts while it is held")] Arc<()>);

impl Validations {
    /// Leave for one more validation.
    pub(crate) fn permit(&self) -> Option<Permit> {
        (Arc::strong_count(&self.permits) <= MAX_CALLS).then(|| Permit(self.permits.clone()))
    }

    pub(crate) fn is_known_invalid(&mut self, key: SecretHash, now_ms: u64) -> bool {
        while let Some((hash, expires)) = self.order.front().copied() {
            if expires > now_ms {
                break;
            }
            self.order.pop_front();
            if self.negative.get(&hash) == Some(&expires) {
                self.negative.remove(&hash);
            }
        }
        self.negative.contains_key(&key)
    }

    pub(crate) fn remember_invalid(&mut self, key: SecretHash, now_ms: u64) {
        if self.order.len() >= MAX_NEGATIVE
            && let Some((hash, _)) = self.order.pop_front()
        {
            self.negative.remove(&hash);
        }
        let expires = now_ms + NEGATIVE_TTL_MS;
        self.negative.insert(key, expires);
        self.order.push_back((key, expires));
    }

    /// Forgets what was found invalid, since the validators are others.
    pub(crate) fn forget(&mut self) {
        self.negative.clear();
        self.order.clear();
    }
}

impl Chosen {
    pub(crate) fn request(&self, token: &str, hint: Option<&RealmName>) -> ExternalRequest {
        let mut body = Object::new().with("token", token);
        if let Some(hint) = hint {
            body.push("realm", hint.as_str());
        }
        ExternalRequest {
            url: self.url.to_string(),
            secret: self.secret.clone(),
            body: Secret::new(&Value::from(body).to_json()),
        }
    }

    /// The token, at this validator, with this hint, as a digest.
    pub(crate) fn negative_key(&self, token: &str, hint: Option<&RealmName>) -> SecretHash {
        let hint = hint.map_or("", RealmName::as_str);
        SecretHash::of(&format!("{}\n{hint}\n{token}", self.url))
    }
}

impl Scope {
    fn admits(&self, realm: &RealmName) -> bool {
        match self {
            Self::Realm(name) => realm == name,
            Self::Prefix(prefix) => realm.is_under(prefix),
            Self::Any => true,
        }
    }

    /// Reads an answer.
    pub(crate) fn judge(&self, response: &ExternalResponse) -> Verdict {
        if !(200..300).contains(&response.status) {
            return Verdict::Invalid;
        }
        if response.body.len() > MAX_RESPONSE_BYTES {
            return Verdict::Unusable;
        }
        let text = std::str::from_utf8(&response.body).map(str::trim);
        let body = match text {
            Ok("") => return Verdict::Invalid,
            Ok(text) => Value::parse(text),
            Err(_) => return Verdict::Unusable,
        };
        let Ok(Value::Object(body)) = body else {
            return Verdict::Unusable;
        };
        let denied = |name| body.get(name).and_then(Value::as_bool) == Some(false);
        if denied("valid") || denied("ok") {
            return Verdict::Invalid;
        }
        let realm = body.non_empty_str("realm").and_then(RealmName::new);
        let role = body.non_empty_str("role").and_then(Role::parse);
        match (realm, role) {
            (Some(realm), Some(role)) if self.admits(&realm) => Verdict::Valid { realm, role },
            _ => Verdict::Invalid,
        }
    }
}

impl AuthDocument {
    /// The validator for a hint: the realm's own, the one with the longest prefix, the global one.
    pub(crate) fn choose_validator(&self, hint: Option<&RealmName>) -> Option<Chosen> {
        let flags = self.flags();
        let global_secret = || flags.auth_secret.clone();
        if let Some(hint) = hint {
            let policy = self.realm(hint.as_str()).map(|config| config.policy());
            if let Some((policy, url)) = policy.and_then(|p| Some((p, p.auth_url.clone()?))) {
                return Some(Chosen {
                    scope: Scope::Realm(hint.clone()),
                    url,
                    secret: policy.auth_secret.clone().or_else(global_secret),
                });
            }
            let under = flags
                .validators
                .iter()
                .filter(|validator| hint.is_under(&validator.realm_prefix));
            if let Some(validator) = under.max_by_key(|validator| validator.realm_prefix.len()) {
                return Some(Chosen {
                    scope: Scope::Prefix(validator.realm_prefix.clone()),
                    url: validator.auth_url.clone(),
                    secret: validator.auth_secret.clone().or_else(global_secret),
                });
            }
        }
        Some(Chosen {
            scope: Scope::Any,
            url: flags.auth_url.clone()?,
            secret: global_secret(),
        })
    }

    /// Whether the validator that admitted to a realm is still configured, by the digest of its address.
    pub(crate) fn has_validator(&self, realm: &RealmName, url: SecretHash) -> bool {
        let is = |candidate: &str| SecretHash::of(candidate) == url;
        let flags = self.flags();
        let own = self.realm(realm.as_str());
        own.and_then(|config| config.policy().auth_url.as_deref())
            .is_some_and(is)
            || flags.auth_url.as_deref().is_some_and(is)
            || flags.validators.iter().any(|v| is(&v.auth_url))
    }
}

#[cfg(test)]
mod tests;
