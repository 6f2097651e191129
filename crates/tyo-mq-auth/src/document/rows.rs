//! The auth store's rows: what a store reads and writes. Three tables of key and JSON, as the reference has them.

use std::fmt;

use crate::json::{Object, Style, Value};
use crate::names::RealmName;
use crate::secret::{SecretHash, StoredSecret};

use super::realm::RealmConfig;
use super::token::{ManagementToken, TokenEntry};

/// A table of the auth store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Realm name, configuration.
    Realms,
    /// Token, entry.
    Tokens,
    /// Token for provisioning, entry.
    ManagementTokens,
}

/// A row to write, or what has to be written elsewhere. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowChange {
    /// Insert or replace.
    Put {
        /// The table.
        table: Table,
        /// The key.
        key: String,
        /// The value: JSON with sorted keys.
        value: String,
    },
    /// Delete, if it is there.
    Delete {
        /// The table.
        table: Table,
        /// The key.
        key: String,
    },
    /// Fields of the `auth` block that are in the settings file, store or not.
    Fields,
}

/// All rows of a store, each a key and a value.
#[derive(Default)]
pub struct StoreRows {
    /// Realms.
    pub realms: Vec<(String, String)>,
    /// Tokens.
    pub tokens: Vec<(String, String)>,
    /// Management tokens.
    pub management_tokens: Vec<(String, String)>,
}

impl RowChange {
    pub(crate) fn put_realm(name: &RealmName, config: &RealmConfig) -> Self {
        Self::put(Table::Realms, name.to_string(), config.to_stored())
    }

    pub(crate) fn delete_realm(name: &RealmName) -> Self {
        Self::Delete {
            table: Table::Realms,
            key: name.to_string(),
        }
    }

    pub(crate) fn put_token(entry: &TokenEntry) -> Self {
        Self::put(Table::Tokens, row_key(&entry.secret), entry.to_stored())
    }

    pub(crate) fn delete_token(entry: &TokenEntry) -> impl Iterator<Item = Self> + use<> {
        deletions(Table::Tokens, &entry.secret)
    }

    pub(crate) fn put_management_token(token: &ManagementToken) -> Self {
        let key = row_key(&token.secret);
        Self::put(Table::ManagementTokens, key, token.to_stored())
    }

    pub(crate) fn delete_management_token(
        token: &ManagementToken,
    ) -> impl Iterator<Item = Self> + use<> {
        deletions(Table::ManagementTokens, &token.secret)
    }

    fn put(table: Table, key: String, value: Object) -> Self {
        let mut json = Vec::new();
        Value::from(value).write_canonical(&mut json, Style::JavaScript);
        let value = String::from_utf8(json).expect("what is canonical is Unicode text");
        Self::Put { table, key, value }
    }
}

impl fmt::Debug for RowChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { table, .. } => write!(f, "Put({table:?})"),
            Self::Delete { table, .. } => write!(f, "Delete({table:?})"),
            Self::Fields => f.write_str("Fields"),
        }
    }
}

impl fmt::Debug for StoreRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "StoreRows({} realms, {} tokens, {} management tokens)",
            self.realms.len(),
            self.tokens.len(),
            self.management_tokens.len()
        )
    }
}

/// Whether a row's key is the token's, in the form in which it is kept.
pub(super) fn is_row_key(key: &str, secret: &StoredSecret) -> bool {
    match secret {
        StoredSecret::Plain(secret) => secret.expose() == key,
        StoredSecret::Hashed(hash) => {
            let hex = key.strip_prefix(HASH_KEY);
            hex.and_then(SecretHash::from_hex) == Some(*hash)
        }
    }
}

/// A token's key: the token, or what stands for its digest. The latter as a token would have another digest.
fn row_key(secret: &StoredSecret) -> String {
    match secret {
        StoredSecret::Plain(secret) => secret.expose().to_owned(),
        StoredSecret::Hashed(hash) => hash_key(*hash),
    }
}

fn hash_key(hash: SecretHash) -> String {
    format!("{HASH_KEY}{}", hash.to_hex())
}

const HASH_KEY: &str = "sha256:";

/// A token may have a row in either form; neither may stay.
fn deletions(table: Table, secret: &StoredSecret) -> impl Iterator<Item = RowChange> + use<> {
    let plain = match secret {
        StoredSecret::Plain(secret) => Some(secret.expose().to_owned()),
        StoredSecret::Hashed(_) => None,
    };
    plain
        .into_iter()
        .chain([hash_key(secret.hash())])
        .map(move |key| RowChange::Delete { table, key })
}
