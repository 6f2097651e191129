//! Reading the document: from the settings' JSON, and together with what the store holds.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::json::{Object, Value};
use crate::names::{RealmName, Role};
use crate::secret::{Secret, SecretHash, StoredSecret};

use super::flags::Flags;
use super::mutate::{Applied, Change, Mutation};
use super::realm::RealmConfig;
use super::rows::{RowChange, StoreRows, Table, is_row_key};
use super::token::{ManagementToken, Origin, TokenEntry};
use super::{AuthDocument, DocumentError};

/// Something that an operator wants to know about the settings. Says which entry, never a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadWarning {
    /// An entry repeats a token; the first one counts.
    #[error("{path} repeats a token and is ignored")]
    RepeatedToken {
        /// Where it is.
        path: String,
    },
    /// A management token without token or prefix.
    #[error("{path} lacks a token or a realm prefix and admits nobody")]
    UselessManagementToken {
        /// Where it is.
        path: String,
    },
    /// A row of the store that cannot be read; a realm of that name admits nobody.
    #[error("a row of {table:?} in the auth store cannot be read: {error}")]
    BadRow {
        /// The table.
        table: Table,
        /// What is wrong.
        error: DocumentError,
    },
    /// Realms that require authentication and have no key admit consumers without a token.
    #[error("auth.strict is off: realms that have no key admit consumers without a token")]
    NotStrict,
}

/// What came of reading a store.
#[derive(Debug, Default)]
pub struct Merged {
    /// What the store lacks: entries of the settings that are imported.
    pub imports: Vec<RowChange>,
    /// What an operator wants to know.
    pub warnings: Vec<LoadWarning>,
}

impl AuthDocument {
    /// Reads the `auth` block.
    ///
    /// # Errors
    /// When it is no JSON object, or something in it has another type or form than it must have.
    pub fn parse(json: &str) -> Result<(Self, Vec<LoadWarning>), DocumentError> {
        match Value::parse(json)? {
            Value::Object(block) => Self::from_block(block),
            Value::Null => Self::from_block(Object::new()),
            _ => Err(DocumentError::wrong("", "an object")),
        }
    }

    /// Reads the `auth` block from its fields.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn from_block(mut block: Object) -> Result<(Self, Vec<LoadWarning>), DocumentError> {
        let sections = ["realms", "tokens", "management_tokens"].map(|name| block.remove(name));
        let present = sections.each_ref().map(Option::is_some);
        let [realms, tokens, management_tokens] = sections;
        let mut document = Self {
            sections: present,
            flags: Flags::read(&block)?,
            fields: block,
            realms: HashMap::new(),
            tokens: HashMap::new(),
            tokens_by_realm: HashMap::new(),
            management_tokens: HashMap::new(),
            admins: Vec::new(),
            expiries: BTreeSet::new(),
            next_number: 0,
        };
        let mut warnings = Vec::new();
        document.load_realms(realms)?;
        document.load_tokens(tokens, &mut warnings)?;
        document.load_management_tokens(management_tokens, &mut warnings)?;
        if document.is_enabled() && document.flags.strict.is_none() {
            warnings.push(LoadWarning::NotStrict);
        }
        Ok((document, warnings))
    }

    /// Adds what the store holds. For each realm and token that both have the store's word counts; what only the
    /// settings have is to be imported.
    pub fn merge_store(&mut self, rows: StoreRows) -> Merged {
        let mut merged = Merged::default();
        let realms = self.realms_in_order().into_iter();
        let mut realms: Vec<RealmName> = realms.map(|(name, _)| name.clone()).collect();
        let tokens = self.tokens_in_order().into_iter();
        let tokens = tokens.filter(|entry| entry.origin == Origin::Document);
        let mut tokens: Vec<SecretHash> = tokens.map(TokenEntry::hash).collect();
        let management = self.management_tokens_in_order().into_iter();
        let mut management: Vec<SecretHash> = management.map(ManagementToken::hash).collect();

        let stored = self.merge_realms(rows.realms, &realms, &mut merged);
        realms.retain(|name| !stored.contains(name));
        let stored = self.merge_tokens(rows.tokens, &tokens, &mut merged);
        tokens.retain(|hash| !stored.contains(hash));
        let stored = self.merge_management_tokens(rows.management_tokens, &mut merged);
        management.retain(|hash| !stored.contains(hash));

        let realms = realms
            .iter()
            .filter_map(|name| Some((name, self.realm(name.as_str())?)));
        let realms = realms.map(|(name, config)| RowChange::put_realm(name, config));
        merged.imports.extend(realms);
        let tokens = tokens.iter().filter_map(|hash| self.token(*hash));
        merged.imports.extend(tokens.map(RowChange::put_token));
        let management = management
            .iter()
            .filter_map(|hash| self.management_token(*hash));
        merged
            .imports
            .extend(management.map(RowChange::put_management_token));
        merged
    }

    /// Takes over what another reading of the settings says. With a store the lists are an inbox: entries are added
    /// and replaced, and none is missed. Without one, a list that is there is the whole truth.
    pub fn adopt(&mut self, settings: Self, has_store: bool) -> Applied {
        let mut mutations = Vec::new();
        let mut incoming_realms: HashSet<RealmName> = HashSet::new();
        for (name, config) in settings.realms_in_order() {
            incoming_realms.insert(name.clone());
            if self.realm(name.as_str()).map(RealmConfig::fields) != Some(config.fields()) {
                mutations.push(Mutation::PutRealm(name.clone(), config.clone()));
            }
        }
        for entry in settings.tokens_in_order() {
            let same = |old: &TokenEntry| {
                old.to_stored() == entry.to_stored() && old.origin == entry.origin
            };
            if !self.token(entry.hash()).is_some_and(same) {
                mutations.push(Mutation::PutToken(entry.clone()));
            }
        }
        for token in settings.management_tokens_in_order() {
            let old = self.management_token(token.hash());
            if old.map(ManagementToken::to_stored) != Some(token.to_stored()) {
                mutations.push(Mutation::PutManagementToken(token.clone()));
            }
        }
        if !has_store {
            self.plan_removals(&settings, &incoming_realms, &mut mutations);
        }
        let mut applied = self
            .apply(mutations)
            .expect("only fields can be refused, and there is none");
        if self.fields != settings.fields {
            self.fields = settings.fields;
            self.flags = settings.flags;
            applied.changes.push(Change::Global);
        }
        applied
    }

    /// Puts the admin's token from the environment in the place of an earlier one. It is never stored.
    pub fn set_environment_admin(&mut self, token: &Secret) -> Applied {
        let old = self.admins.iter().copied().filter(|hash| {
            self.token(*hash)
                .is_some_and(|entry| entry.origin == Origin::Environment)
        });
        let mut mutations: Vec<_> = old
            .filter(|hash| *hash != token.hash())
            .map(Mutation::RemoveToken)
            .collect();
        let known = self.token(token.hash());
        if !known.is_some_and(TokenEntry::is_global_admin) {
            let realm = RealmName::new("*").expect("it is one character");
            let secret = StoredSecret::Plain(token.clone());
            let mut entry = TokenEntry::new(secret, realm, Role::Admin);
            entry.origin = Origin::Environment;
            mutations.push(Mutation::PutToken(entry));
        }
        self.apply(mutations)
            .expect("only fields can be refused, and there is none")
    }

    fn plan_removals(
        &self,
        settings: &Self,
        realms: &HashSet<RealmName>,
        mutations: &mut Vec<Mutation>,
    ) {
        let [has_realms, has_tokens, has_management_tokens] = settings.sections;
        if has_realms {
            let gone = self.realms.keys().filter(|name| !realms.contains(*name));
            mutations.extend(gone.map(|name| Mutation::RemoveRealm(name.clone())));
        }
        if has_tokens {
            let gone = self.tokens.iter().filter(|(hash, token)| {
                token.value.origin == Origin::Document && !settings.tokens.contains_key(*hash)
            });
            mutations.extend(gone.map(|(hash, _)| Mutation::RemoveToken(*hash)));
        }
        if has_management_tokens {
            let gone = self
                .management_tokens
                .keys()
                .filter(|hash| !settings.management_tokens.contains_key(*hash));
            mutations.extend(gone.map(|hash| Mutation::RemoveManagementToken(*hash)));
        }
    }

    fn load_realms(&mut self, section: Option<Value>) -> Result<(), DocumentError> {
        let realms = match section {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(realms)) => realms,
            Some(_) => return Err(DocumentError::wrong("realms", "an object")),
        };
        for (name, config) in realms.into_fields() {
            let path = format!("realms.{}", name.to_lossy());
            let name = name
                .as_str()
                .and_then(RealmName::new)
                .ok_or_else(|| DocumentError::wrong(&path, "under a name that a realm can have"))?;
            let Value::Object(config) = config else {
                return Err(DocumentError::wrong(&path, "an object"));
            };
            let config = RealmConfig::from_fields(config).map_err(|error| error.under(&path))?;
            self.insert_realm(name, config);
        }
        Ok(())
    }

    fn load_tokens(
        &mut self,
        section: Option<Value>,
        warnings: &mut Vec<LoadWarning>,
    ) -> Result<(), DocumentError> {
        for (path, fields) in entries("tokens", section)? {
            let entry = TokenEntry::from_fields(fields).map_err(|error| error.under(&path))?;
            if self.tokens.contains_key(&entry.hash()) {
                warnings.push(LoadWarning::RepeatedToken { path });
            } else {
                self.insert_token(entry);
            }
        }
        Ok(())
    }

    fn load_management_tokens(
        &mut self,
        section: Option<Value>,
        warnings: &mut Vec<LoadWarning>,
    ) -> Result<(), DocumentError> {
        for (path, fields) in entries("management_tokens", section)? {
            match ManagementToken::from_fields(fields).map_err(|error| error.under(&path))? {
                None => warnings.push(LoadWarning::UselessManagementToken { path }),
                Some(token) if self.management_token(token.hash()).is_some() => {
                    warnings.push(LoadWarning::RepeatedToken { path });
                }
                Some(token) => self.insert_management_token(token),
            }
        }
        Ok(())
    }

    /// Takes over the store's realms. Tells which of those that the settings have it has too.
    fn merge_realms(
        &mut self,
        rows: Vec<(String, String)>,
        of_settings: &[RealmName],
        merged: &mut Merged,
    ) -> HashSet<RealmName> {
        let of_settings: HashSet<&RealmName> = of_settings.iter().collect();
        let mut both = HashSet::new();
        for (name, config) in rows {
            let Some(name) = RealmName::new(&name) else {
                let error = DocumentError::wrong("name", "a realm's name");
                merged.bad_row(Table::Realms, error);
                continue;
            };
            let config = RealmConfig::parse(&config).unwrap_or_else(|error| {
                merged.bad_row(Table::Realms, error);
                locked()
            });
            if of_settings.contains(&name) {
                both.insert(name.clone());
            }
            self.insert_realm(name, config);
        }
        both
    }

    /// Takes over the store's tokens. Tells which of those that the settings have it has too.
    fn merge_tokens(
        &mut self,
        rows: Vec<(String, String)>,
        of_settings: &[SecretHash],
        merged: &mut Merged,
    ) -> HashSet<SecretHash> {
        let of_settings: HashSet<SecretHash> = of_settings.iter().copied().collect();
        let mut both = HashSet::new();
        self.tokens.reserve(rows.len());
        for (key, entry) in rows {
            let entry = match object(&entry).and_then(TokenEntry::from_fields) {
                Ok(entry) if is_row_key(&key, &entry.secret) => entry,
                Ok(_) => {
                    let error = DocumentError::wrong("token", "the row's key");
                    merged.bad_row(Table::Tokens, error);
                    continue;
                }
                Err(error) => {
                    merged.bad_row(Table::Tokens, error);
                    continue;
                }
            };
            let hash = entry.hash();
            if of_settings.contains(&hash) && both.insert(hash) {
                drop(self.take_token(hash));
            } else if self.origin_of(hash) == Some(Origin::Document) {
                let table = Table::Tokens;
                merged.imports.push(RowChange::Delete { table, key });
                continue;
            }
            drop(self.take_token(hash));
            self.insert_token(self.with_shared_realm(entry));
        }
        both
    }

    fn origin_of(&self, hash: SecretHash) -> Option<Origin> {
        self.token(hash).map(|entry| entry.origin)
    }

    /// The entry with the name of its realm as the realm has it, so that many tokens share it.
    fn with_shared_realm(&self, mut entry: TokenEntry) -> TokenEntry {
        if let Some((name, _)) = self.tokens_by_realm.get_key_value(entry.realm.as_str()) {
            entry.realm = name.clone();
        }
        entry
    }

    fn merge_management_tokens(
        &mut self,
        rows: Vec<(String, String)>,
        merged: &mut Merged,
    ) -> HashSet<SecretHash> {
        let mut stored = HashSet::with_capacity(rows.len());
        for (_, entry) in rows {
            match object(&entry).and_then(ManagementToken::from_fields) {
                Err(error) => merged.bad_row(Table::ManagementTokens, error),
                Ok(None) => {
                    let error = DocumentError::wrong("realm_prefix", "a string");
                    merged.bad_row(Table::ManagementTokens, error);
                }
                Ok(Some(token)) => {
                    stored.insert(token.hash());
                    self.insert_management_token(token);
                }
            }
        }
        stored
    }
}

impl Merged {
    fn bad_row(&mut self, table: Table, error: DocumentError) {
        self.warnings.push(LoadWarning::BadRow { table, error });
    }
}

fn entries(name: &str, section: Option<Value>) -> Result<Vec<(String, Object)>, DocumentError> {
    let list = match section {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::List(list)) => list,
        Some(_) => return Err(DocumentError::wrong(name, "a list")),
    };
    let entry = |(index, entry)| match entry {
        Value::Object(fields) => Ok((format!("{name}.{index}"), fields)),
        _ => Err(DocumentError::wrong(
            &format!("{name}.{index}"),
            "an object",
        )),
    };
    list.into_iter().enumerate().map(entry).collect()
}

fn object(json: &str) -> Result<Object, DocumentError> {
    match Value::parse(json)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(DocumentError::wrong("", "an object")),
    }
}

/// What a realm gets whose row cannot be read: it admits nobody but holders of tokens, until someone looks at it.
fn locked() -> RealmConfig {
    let fields = Object::new()
        .with("required", true)
        .with("require_key", true)
        .with("require_acceptance", true);
    RealmConfig::from_fields(fields).expect("the fields are of the right type")
}
