//! A token of a client or of the admin, and a token for provisioning realms.

use crate::json::{Object, Text, Value};
use crate::lifetime::parse_ttl_ms;
use crate::names::{RealmName, Role};
use crate::secret::{Secret, SecretHash, StoredSecret};

use super::error::DocumentError;
use super::realm::{boolean, string};

/// A token and what it grants.
#[derive(Debug, Clone)]
pub struct TokenEntry {
    /// The token; as it is for the admin, since it signs, and else as settings want it.
    pub secret: StoredSecret,
    /// The realm.
    pub realm: RealmName,
    /// The role.
    pub role: Role,
    /// Who has it.
    pub client_id: Option<Box<str>>,
    /// What they call themselves.
    pub client_name: Option<Box<str>>,
    /// Where it came from.
    pub origin: Origin,
    extra: Option<Box<Object>>,
}

/// Where a token came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Settings, store or a command: it is kept.
    Document,
    /// The environment: it lives as long as the process, and another one takes its place.
    Environment,
}

/// A token for provisioning realms under a prefix.
#[derive(Debug, Clone)]
pub struct ManagementToken {
    /// The token.
    pub secret: StoredSecret,
    /// What its realms' names begin with.
    pub realm_prefix: Box<str>,
    /// Its realms are ephemeral.
    pub ephemeral_only: bool,
    /// The longest lifetime of its realms in milliseconds.
    pub max_ttl_ms: Option<u64>,
    fields: Object,
}

/// The field that holds a token's digest in place of the token.
const TOKEN_HASH: &str = "token_hash";

impl TokenEntry {
    /// A token for a client.
    #[must_use]
    pub fn new(secret: StoredSecret, realm: RealmName, role: Role) -> Self {
        Self {
            secret,
            realm,
            role,
            client_id: None,
            client_name: None,
            origin: Origin::Document,
            extra: None,
        }
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// When it has no token or a field of another type than it must have.
    pub fn from_fields(fields: Object) -> Result<Self, DocumentError> {
        let mut entry = Self::new(
            stored_token(&fields)?,
            realm_of(&fields)?,
            match string(&fields, &["role"])? {
                None => Role::Both,
                Some(role) => {
                    Role::parse(role).ok_or_else(|| DocumentError::wrong("role", "a role"))?
                }
            },
        );
        entry.client_id = string(&fields, &["client_id"])?.map(Into::into);
        entry.client_name = string(&fields, &["client_name"])?.map(Into::into);
        let is_extra = |name: &Text| {
            !KNOWN
                .iter()
                .any(|known| known.as_bytes() == name.as_bytes())
        };
        let extra: Vec<_> = fields
            .into_fields()
            .into_iter()
            .filter(|(name, _)| is_extra(name))
            .collect();
        if !extra.is_empty() {
            entry.extra = Some(Box::new(Object::from_distinct_fields(extra)));
        }
        Ok(entry)
    }

    /// The digest, which is its name among tokens.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        self.secret.hash()
    }

    /// Whether its holder is the global admin.
    #[must_use]
    pub fn is_global_admin(&self) -> bool {
        self.realm.is_wildcard() && self.role == Role::Admin
    }

    /// Adds a field for whoever reads the settings.
    pub(crate) fn set_extra(&mut self, name: &str, value: impl Into<Value>) {
        self.extra.get_or_insert_default().set(name, value);
    }

    /// As it is stored.
    #[must_use]
    pub fn to_stored(&self) -> Object {
        let mut out = Object::new();
        if let Some(client_id) = &self.client_id {
            out.push("client_id", &**client_id);
        }
        if let Some(client_name) = &self.client_name {
            out.push("client_name", &**client_name);
        }
        push_stored(&mut out, &self.secret);
        out.push("realm", self.realm.as_str());
        out.push("role", self.role.as_str());
        for (name, value) in self.extra.iter().flat_map(|extra| extra.iter()) {
            if let Some(name) = name.as_str() {
                out.push(name, value.clone());
            }
        }
        out
    }

    /// As others may see it.
    #[must_use]
    pub fn to_redacted(&self) -> Object {
        let mut out = Object::new();
        out.push("realm", self.realm.as_str());
        out.push("role", self.role.as_str());
        out.push("client_id", self.client_id.as_deref());
        out.push("client_name", self.client_name.as_deref());
        out.push(TOKEN_HASH, self.hash().to_hex());
        out
    }
}

impl ManagementToken {
    /// Reads an entry. None when it lacks token or prefix and so admits nobody.
    ///
    /// # Errors
    /// When a field has another type than it must have.
    pub fn from_fields(fields: Object) -> Result<Option<Self>, DocumentError> {
        let prefix = string(&fields, &["realm_prefix", "realmPrefix"])?.map(Into::into);
        let ephemeral_only = boolean(&fields, &["ephemeral_only", "ephemeralOnly"])?;
        let max_ttl_ms = match fields.get("max_ttl").or_else(|| fields.get("maxTtl")) {
            None | Some(Value::Null) => None,
            Some(ttl) => Some(
                parse_ttl_ms(ttl).ok_or_else(|| DocumentError::wrong("max_ttl", "a lifetime"))?,
            ),
        };
        let (Some(realm_prefix), Ok(secret)) = (prefix, stored_token(&fields)) else {
            return Ok(None);
        };
        Ok(Some(Self {
            secret,
            realm_prefix,
            ephemeral_only: ephemeral_only.unwrap_or(false),
            max_ttl_ms,
            fields,
        }))
    }

    /// The digest, which is its name among management tokens.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        self.secret.hash()
    }

    /// Whether a realm is its own.
    #[must_use]
    pub fn owns(&self, realm: &RealmName) -> bool {
        !realm.is_reserved() && realm.is_under(&self.realm_prefix)
    }

    /// As it is stored.
    #[must_use]
    pub fn to_stored(&self) -> Object {
        self.fields.clone()
    }

    /// As others may see it.
    #[must_use]
    pub fn to_redacted(&self) -> Object {
        let mut out = Object::new();
        out.push("realm_prefix", &*self.realm_prefix);
        out.push(TOKEN_HASH, self.hash().to_hex());
        if self.ephemeral_only {
            out.push("ephemeral_only", true);
        }
        let max_ttl = self.fields.get("max_ttl").or(self.fields.get("maxTtl"));
        if let Some(max_ttl) = max_ttl.filter(|value| value.is_truthy()) {
            out.push("max_ttl", max_ttl.clone());
        }
        out
    }
}

/// Writes a token as the settings want it: the token, or its digest.
pub(crate) fn push_stored(out: &mut Object, secret: &StoredSecret) {
    match secret {
        StoredSecret::Plain(secret) => out.push("token", secret.expose()),
        StoredSecret::Hashed(hash) => out.push(TOKEN_HASH, hash.to_hex()),
    }
}

fn stored_token(fields: &Object) -> Result<StoredSecret, DocumentError> {
    if let Some(token) = string(fields, &["token"])? {
        return Ok(StoredSecret::Plain(Secret::new(token)));
    }
    string(fields, &[TOKEN_HASH])?
        .and_then(SecretHash::from_hex)
        .map(StoredSecret::Hashed)
        .ok_or_else(|| DocumentError::wrong("token", "a string"))
}

fn realm_of(fields: &Object) -> Result<RealmName, DocumentError> {
    match string(fields, &["realm"])? {
        None => Ok(RealmName::default_realm()),
        Some(name) => {
            RealmName::new(name).ok_or_else(|| DocumentError::wrong("realm", "a realm's name"))
        }
    }
}

const KNOWN: [&str; 6] = [
    "token",
    TOKEN_HASH,
    "realm",
    "role",
    "client_id",
    "client_name",
];
