//! What the fields of the auth block mean that belong to no realm and no token.

use crate::json::{Object, Value};
use crate::lifetime::{DEFAULT_TTL_MS, parse_ttl_ms};
use crate::secret::Secret;

use super::error::DocumentError;
use super::realm::{AUTH_SECRET, AUTH_URL, boolean, string};

/// The most validators by prefix.
pub(crate) const MAX_VALIDATORS: usize = 1000;

/// What the fields say.
#[derive(Debug, Clone)]
pub(crate) struct Flags {
    pub(crate) enabled: bool,
    pub(crate) strict: Option<bool>,
    pub(crate) jwt_secret: Option<Secret>,
    pub(crate) auth_url: Option<Box<str>>,
    pub(crate) auth_secret: Option<Secret>,
    pub(crate) validators: Vec<Validator>,
    pub(crate) ephemeral_ttl_ms: u64,
    pub(crate) hash_tokens: bool,
    /// Failed attempts of one address in a minute; 0 is any number.
    pub(crate) max_failures_per_minute: u32,
}

/// A validator for the realms under a prefix.
#[derive(Debug, Clone)]
pub(crate) struct Validator {
    pub(crate) realm_prefix: Box<str>,
    pub(crate) auth_url: Box<str>,
    pub(crate) auth_secret: Option<Secret>,
}

impl Flags {
    pub(crate) fn read(fields: &Object) -> Result<Self, DocumentError> {
        Ok(Self {
            enabled: boolean(fields, &["enabled"])?.unwrap_or(false),
            strict: boolean(fields, &["strict"])?,
            jwt_secret: string(fields, &["jwt_secret", "jwtSecret"])?.map(Secret::new),
            auth_url: string(fields, &AUTH_URL)?.map(Into::into),
            auth_secret: string(fields, &AUTH_SECRET)?.map(Secret::new),
            validators: validators(fields)?,
            ephemeral_ttl_ms: ephemeral_ttl(fields)?,
            hash_tokens: match string(fields, &["token_storage"])? {
                None | Some("hashed") => true,
                Some("plain") => false,
                Some(_) => {
                    return Err(DocumentError::wrong("token_storage", "hashed or plain"));
                }
            },
            max_failures_per_minute: max_failures(fields)?,
        })
    }
}

impl Validator {
    pub(crate) fn to_stored(&self) -> Object {
        let mut out = Object::new();
        out.push("realm_prefix", &*self.realm_prefix);
        out.push("auth_url", &*self.auth_url);
        if let Some(secret) = &self.auth_secret {
            out.push("auth_secret", secret.expose());
        }
        out
    }

    pub(super) fn to_redacted(&self) -> Object {
        let mut out = Object::new();
        out.push("realm_prefix", &*self.realm_prefix);
        out.push("auth_url", &*self.auth_url);
        out.push("auth_secret_configured", self.auth_secret.is_some());
        out
    }
}

fn validators(fields: &Object) -> Result<Vec<Validator>, DocumentError> {
    const PATH: &str = "external_validators";
    let list = match fields.get(PATH) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(value) => value
            .as_list()
            .filter(|list| list.len() <= MAX_VALIDATORS)
            .ok_or_else(|| DocumentError::wrong(PATH, "a list of at most 1000 validators"))?,
    };
    let mut validators = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let path = format!("{PATH}.{index}");
        let entry = entry
            .as_object()
            .ok_or_else(|| DocumentError::wrong(&path, "an object"))?;
        let prefix = string(entry, &["realm_prefix", "realmPrefix"]);
        let url = string(entry, &AUTH_URL);
        let secret = string(entry, &AUTH_SECRET);
        let read = |result: Result<_, DocumentError>| result.map_err(|error| error.under(&path));
        if let (Some(prefix), Some(url)) = (read(prefix)?, read(url)?) {
            validators.push(Validator {
                realm_prefix: prefix.into(),
                auth_url: url.into(),
                auth_secret: read(secret)?.map(Secret::new),
            });
        }
    }
    Ok(validators)
}

fn ephemeral_ttl(fields: &Object) -> Result<u64, DocumentError> {
    const NAMES: [&str; 4] = [
        "ephemeral_realm_ttl",
        "ephemeralRealmTtl",
        "temporary_realm_ttl",
        "temporaryRealmTtl",
    ];
    let found = NAMES
        .iter()
        .find_map(|name| Some((name, fields.get(name)?)))
        .filter(|(_, value)| **value != Value::Null);
    match found {
        None => Ok(DEFAULT_TTL_MS),
        Some((name, value)) => {
            parse_ttl_ms(value).ok_or_else(|| DocumentError::wrong(name, "a lifetime"))
        }
    }
}

fn max_failures(fields: &Object) -> Result<u32, DocumentError> {
    const NAME: &str = "max_failures_per_minute";
    match fields.get(NAME) {
        None | Some(Value::Null) => Ok(DEFAULT_MAX_FAILURES_PER_MINUTE),
        Some(value) => value
            .as_number()
            .filter(|number| number.is_finite() && *number >= 0.0)
            // The cast saturates.
            .map(|number| number as u32)
            .ok_or_else(|| DocumentError::wrong(NAME, "a number, not negative")),
    }
}

/// Failed attempts of one address in a minute, unless the settings say otherwise.
pub(crate) const DEFAULT_MAX_FAILURES_PER_MINUTE: u32 = 300;
