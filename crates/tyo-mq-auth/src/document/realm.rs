//! The configuration of one realm: its fields as they are written, and what they mean.

use crate::json::{Object, Value};
use crate::secret::{Secret, SecretHash, StoredSecret};

use super::error::DocumentError;

/// A realm's configuration. The fields that we do not know are kept.
#[derive(Debug, Clone, Default)]
pub struct RealmConfig {
    fields: Object,
    policy: RealmPolicy,
}

/// What the configuration means.
#[derive(Debug, Clone, Default)]
pub(crate) struct RealmPolicy {
    pub(crate) required: Option<bool>,
    pub(crate) require_key: Option<bool>,
    pub(crate) require_acceptance: Option<bool>,
    pub(crate) allow_anonymous: Option<bool>,
    pub(crate) key: Option<StoredSecret>,
    pub(crate) manager_key: Option<Secret>,
    pub(crate) auth_url: Option<Box<str>>,
    pub(crate) auth_secret: Option<Secret>,
    pub(crate) e2ee: E2ee,
    pub(crate) ephemeral: bool,
    pub(crate) expires_ms: Option<u64>,
}

/// A realm's policy for end-to-end encryption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum E2ee {
    /// None.
    #[default]
    Off,
    /// Encrypted messages are welcome.
    Opportunistic,
    /// Only encrypted messages.
    Required,
}

/// The spellings of the manager key.
pub(crate) const MANAGER_KEY: [&str; 2] = ["manager_key", "managerKey"];
/// The spellings of the key of consumers.
pub(crate) const KEY: [&str; 3] = ["key", "preshared_key", "presharedKey"];
/// The key of consumers as a digest.
pub(crate) const KEY_HASH: &str = "key_hash";
/// The spellings of the validator's secret.
pub(crate) const AUTH_SECRET: [&str; 2] = ["auth_secret", "authSecret"];
/// The spellings of the validator's address.
pub(crate) const AUTH_URL: [&str; 2] = ["auth_url", "authUrl"];
/// The spellings of what makes a realm ephemeral.
pub(crate) const EPHEMERAL: [&str; 2] = ["ephemeral", "temporary"];

/// Says that `require_key` is there for brokers that cannot read [`KEY_HASH`], which would else let everyone in.
const KEY_IMPLIED: &str = "require_key_implied";

impl RealmConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// When a field that we know has another type than it must have.
    pub fn from_fields(mut fields: Object) -> Result<Self, DocumentError> {
        if fields.remove(KEY_IMPLIED).is_some() {
            fields.remove("require_key");
        }
        let policy = RealmPolicy {
            required: boolean(&fields, &["required"])?,
            require_key: boolean(&fields, &["require_key", "requireKey"])?,
            require_acceptance: boolean(&fields, &["require_acceptance", "requireAcceptance"])?,
            allow_anonymous: boolean(&fields, &["allow_anonymous", "allowAnonymous"])?,
            key: stored_key(&fields)?,
            manager_key: string(&fields, &MANAGER_KEY)?.map(Secret::new),
            auth_url: string(&fields, &AUTH_URL)?.map(Into::into),
            auth_secret: string(&fields, &AUTH_SECRET)?.map(Secret::new),
            e2ee: match fields.get("e2ee").and_then(Value::as_str) {
                Some("opportunistic") => E2ee::Opportunistic,
                Some("required") => E2ee::Required,
                _ => E2ee::Off,
            },
            ephemeral: EPHEMERAL
                .iter()
                .any(|name| fields.get(name).is_some_and(Value::is_truthy)),
            expires_ms: expires(&fields)?,
        };
        Ok(Self { fields, policy })
    }

    /// Reads a configuration from JSON.
    ///
    /// # Errors
    /// When it is no object, or as [`from_fields`](Self::from_fields).
    pub fn parse(json: &str) -> Result<Self, DocumentError> {
        match Value::parse(json) {
            Ok(Value::Object(fields)) => Self::from_fields(fields),
            _ => Err(DocumentError::wrong("", "an object")),
        }
    }

    /// The fields, secrets included.
    #[must_use]
    pub const fn fields(&self) -> &Object {
        &self.fields
    }

    /// The policy for end-to-end encryption.
    #[must_use]
    pub const fn e2ee(&self) -> E2ee {
        self.policy.e2ee
    }

    /// Whether clients without a name of their own may register; when the realm says nothing, only `default` lets them.
    #[must_use]
    pub const fn allow_anonymous(&self) -> Option<bool> {
        self.policy.allow_anonymous
    }

    /// When it ends, in milliseconds since 1970, if it is ephemeral and does.
    #[must_use]
    pub fn expires_ms(&self) -> Option<u64> {
        self.policy.expires_ms.filter(|_| self.policy.ephemeral)
    }

    /// Whether its time is over.
    #[must_use]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms().is_some_and(|expires| expires <= now_ms)
    }

    pub(crate) const fn policy(&self) -> &RealmPolicy {
        &self.policy
    }

    /// A copy with changed fields.
    pub(crate) fn edited(&self, edit: impl FnOnce(&mut Object)) -> Result<Self, DocumentError> {
        let mut fields = self.fields.clone();
        edit(&mut fields);
        Self::from_fields(fields)
    }

    /// As it is stored.
    #[must_use]
    pub fn to_stored(&self) -> Object {
        let mut fields = self.fields.clone();
        if fields.get(KEY_HASH).is_some() && self.policy.require_key.is_none() {
            fields.set("require_key", true);
            fields.set(KEY_IMPLIED, true);
        }
        fields
    }

    /// As others may see it: whether there are secrets, not which.
    #[must_use]
    pub fn to_redacted(&self) -> Object {
        let mut out = Object::new();
        let secret = |name: &str| {
            name == KEY_HASH
                || MANAGER_KEY.contains(&name)
                || KEY.contains(&name)
                || AUTH_SECRET.contains(&name)
        };
        for (name, value) in self.fields.iter() {
            if let Some(name) = name.as_str().filter(|name| !secret(name)) {
                out.push(name, value.clone());
            }
        }
        let configured = [
            ("manager_key_configured", self.policy.manager_key.is_some()),
            ("key_configured", self.policy.key.is_some()),
            ("auth_secret_configured", self.policy.auth_secret.is_some()),
        ];
        for (name, _) in configured.into_iter().filter(|(_, is)| *is) {
            out.set(name, true);
        }
        out
    }
}

/// The first non-empty string of a field with several spellings.
pub(super) fn string<'a>(
    fields: &'a Object,
    names: &[&str],
) -> Result<Option<&'a str>, DocumentError> {
    for name in names {
        match fields.get(name) {
            None | Some(Value::Null) => {}
            Some(value) => match value.as_str() {
                Some("") => {}
                Some(text) => return Ok(Some(text)),
                None => return Err(DocumentError::wrong(name, "a string")),
            },
        }
    }
    Ok(None)
}

pub(super) fn boolean(fields: &Object, names: &[&str]) -> Result<Option<bool>, DocumentError> {
    for name in names {
        match fields.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Bool(value)) => return Ok(Some(*value)),
            Some(_) => return Err(DocumentError::wrong(name, "true or false")),
        }
    }
    Ok(None)
}

fn stored_key(fields: &Object) -> Result<Option<StoredSecret>, DocumentError> {
    if let Some(key) = string(fields, &KEY)? {
        return Ok(Some(StoredSecret::Plain(Secret::new(key))));
    }
    let Some(hex) = string(fields, &[KEY_HASH])? else {
        return Ok(None);
    };
    SecretHash::from_hex(hex)
        .map(|hash| Some(StoredSecret::Hashed(hash)))
        .ok_or_else(|| DocumentError::wrong(KEY_HASH, "64 hexadecimal digits"))
}

fn expires(fields: &Object) -> Result<Option<u64>, DocumentError> {
    match fields.get("expires_at") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_number()
            .filter(|number| number.is_finite())
            // The cast saturates. What is left of the last millisecond is not lived.
            .map(|number| Some(number.max(0.0) as u64))
            .ok_or_else(|| DocumentError::wrong("expires_at", "a number of milliseconds")),
    }
}
