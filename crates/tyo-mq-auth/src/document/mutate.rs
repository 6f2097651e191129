//! Changing the document: small mutations in, rows for the store and changes that live sessions must hear of out.

use crate::json::{Object, Value};
use crate::names::RealmName;
use crate::secret::SecretHash;

use super::flags::Flags;
use super::realm::RealmConfig;
use super::rows::RowChange;
use super::token::{ManagementToken, Origin, TokenEntry};
use super::{AuthDocument, DocumentError, Numbered};

/// One change of the document. Commands plan them first, so that a refused command changes nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Mutation {
    /// A realm is created or its configuration replaced.
    PutRealm(RealmName, RealmConfig),
    /// A realm and its tokens are removed.
    RemoveRealm(RealmName),
    /// A realm gets another name, and its tokens with it.
    RenameRealm {
        /// The old name.
        from: RealmName,
        /// The new name.
        to: RealmName,
    },
    /// A token is added or replaced.
    PutToken(TokenEntry),
    /// A token is removed.
    RemoveToken(SecretHash),
    /// A management token is added.
    PutManagementToken(ManagementToken),
    /// A management token is removed.
    RemoveManagementToken(SecretHash),
    /// A field of the block is set, or removed.
    SetField(&'static str, Option<Value>),
}

/// What changed, for those who hold sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A realm's configuration is another.
    Realm(RealmName),
    /// A realm is gone, by command, expiry or edit.
    RealmRemoved(RealmName),
    /// A realm has another name.
    RealmRenamed {
        /// The old name.
        from: RealmName,
        /// The new name.
        to: RealmName,
    },
    /// A token is gone or grants something else.
    Token(SecretHash),
    /// Something that concerns all realms.
    Global,
}

/// What came of mutations.
#[derive(Debug, Default)]
pub struct Applied {
    /// Rows to write to the store; without one, the settings file is to be written.
    pub rows: Vec<RowChange>,
    /// What live sessions are to be checked for.
    pub changes: Vec<Change>,
    /// The number of tokens that went with realms.
    pub removed_tokens: usize,
}

impl Applied {
    /// Whether nothing happened.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.changes.is_empty()
    }
}

impl AuthDocument {
    /// Applies mutations.
    ///
    /// # Errors
    /// When a field would get a value that it cannot have. Fields are checked first, so nothing has changed then.
    pub fn apply(
        &mut self,
        mutations: impl IntoIterator<Item = Mutation>,
    ) -> Result<Applied, DocumentError> {
        let mut applied = Applied::default();
        let mut fields: Option<Object> = None;
        let mut rest = Vec::new();
        for mutation in mutations {
            let Mutation::SetField(name, value) = mutation else {
                rest.push(mutation);
                continue;
            };
            let fields = fields.get_or_insert_with(|| self.fields.clone());
            match value {
                Some(value) => fields.set(name, value),
                None => drop(fields.remove(name)),
            }
        }
        if let Some(fields) = fields {
            self.flags = Flags::read(&fields)?;
            self.fields = fields;
            applied.rows.push(RowChange::Fields);
            applied.changes.push(Change::Global);
        }
        for mutation in rest {
            self.apply_one(mutation, &mut applied);
        }
        Ok(applied)
    }

    fn apply_one(&mut self, mutation: Mutation, applied: &mut Applied) {
        match mutation {
            Mutation::PutRealm(name, config) => {
                applied.rows.push(RowChange::put_realm(&name, &config));
                applied.changes.push(Change::Realm(name.clone()));
                self.insert_realm(name, config);
            }
            Mutation::RemoveRealm(name) => self.remove_realm(&name, applied),
            Mutation::RenameRealm { from, to } => self.rename_realm(from, to, applied),
            Mutation::PutToken(entry) => {
                let hash = entry.hash();
                if let Some(old) = self.take_token(hash) {
                    push_deletion(&old, applied);
                    applied.changes.push(Change::Token(hash));
                }
                if entry.origin == Origin::Document {
                    applied.rows.push(RowChange::put_token(&entry));
                }
                self.insert_token(entry);
            }
            Mutation::RemoveToken(hash) => {
                if let Some(old) = self.take_token(hash) {
                    push_deletion(&old, applied);
                    applied.changes.push(Change::Token(hash));
                }
            }
            Mutation::PutManagementToken(token) => {
                applied.rows.push(RowChange::put_management_token(&token));
                self.insert_management_token(token);
            }
            Mutation::RemoveManagementToken(hash) => {
                if let Some(old) = self.management_tokens.remove(&hash) {
                    applied
                        .rows
                        .extend(RowChange::delete_management_token(&old.value));
                }
            }
            Mutation::SetField(..) => {}
        }
    }

    fn remove_realm(&mut self, name: &RealmName, applied: &mut Applied) {
        if self.take_realm(name).is_some() {
            applied.rows.push(RowChange::delete_realm(name));
        }
        let hashes = self.tokens_by_realm.remove(name.as_str());
        for hash in hashes.into_iter().flatten() {
            if let Some(old) = self.take_token(hash) {
                push_deletion(&old, applied);
                applied.changes.push(Change::Token(hash));
                applied.removed_tokens += 1;
            }
        }
        applied.changes.push(Change::RealmRemoved(name.clone()));
    }

    fn rename_realm(&mut self, from: RealmName, to: RealmName, applied: &mut Applied) {
        if let Some(config) = self.take_realm(&from) {
            applied.rows.push(RowChange::delete_realm(&from));
            applied.rows.push(RowChange::put_realm(&to, &config.value));
            self.insert_realm(to.clone(), config.value);
        }
        let hashes = self.tokens_by_realm.remove(from.as_str());
        for hash in hashes.into_iter().flatten() {
            if let Some(mut entry) = self.take_token(hash) {
                entry.realm = to.clone();
                if entry.origin == Origin::Document {
                    applied.rows.push(RowChange::put_token(&entry));
                }
                self.insert_token(entry);
            }
        }
        applied.changes.push(Change::RealmRenamed { from, to });
    }

    pub(super) fn insert_realm(&mut self, name: RealmName, config: RealmConfig) {
        let old = self.take_realm(&name);
        let number = old.map_or_else(|| self.number(), |old| old.number);
        if let Some(expires) = config.expires_ms() {
            self.expiries.insert((expires, name.clone()));
        }
        let value = config;
        self.realms.insert(name, Numbered { number, value });
    }

    pub(super) fn take_realm(&mut self, name: &RealmName) -> Option<Numbered<RealmConfig>> {
        let realm = self.realms.remove(name)?;
        if let Some(expires) = realm.value.expires_ms() {
            self.expiries.remove(&(expires, name.clone()));
        }
        Some(realm)
    }

    /// Inserts a token that is not there yet.
    pub(super) fn insert_token(&mut self, entry: TokenEntry) {
        let hash = entry.hash();
        if entry.is_global_admin() {
            self.admins.push(hash);
        }
        match self.tokens_by_realm.get_mut(entry.realm.as_str()) {
            Some(hashes) => hashes.push(hash),
            None => drop(self.tokens_by_realm.insert(entry.realm.clone(), vec![hash])),
        }
        let number = self.number();
        let value = entry;
        self.tokens.insert(hash, Numbered { number, value });
    }

    pub(super) fn take_token(&mut self, hash: SecretHash) -> Option<TokenEntry> {
        let entry = self.tokens.remove(&hash)?.value;
        self.admins.retain(|admin| *admin != hash);
        if let Some(hashes) = self.tokens_by_realm.get_mut(entry.realm.as_str()) {
            if let Some(at) = hashes.iter().position(|other| *other == hash) {
                hashes.swap_remove(at);
            }
            if hashes.is_empty() {
                self.tokens_by_realm.remove(entry.realm.as_str());
            }
        }
        Some(entry)
    }

    pub(super) fn insert_management_token(&mut self, token: ManagementToken) {
        let number = self.number();
        let value = token;
        self.management_tokens
            .insert(value.hash(), Numbered { number, value });
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

fn push_deletion(entry: &TokenEntry, applied: &mut Applied) {
    if entry.origin == Origin::Document {
        applied.rows.extend(RowChange::delete_token(entry));
    }
}
