//! What survives a restart: the settings file, the auth store, the journal of used nonces.

use std::path::{Path, PathBuf};

use tyo_mq_auth::document::RowChange;
use tyo_mq_auth::files::replace_private;
use tyo_mq_auth::journal::NonceJournal;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::nonce::UsedNonce;
use tyo_mq_auth::store::{AuthStoreError, SqliteAuthStore};
use tyo_mq_auth::{Effect, ServerView};

use crate::settings::{self, SettingsError};

use super::reload::{HOT, differences};

/// Keeps what changes while the broker runs.
#[derive(Default)]
pub(crate) struct Keeper {
    settings: Option<SettingsFile>,
    store: Option<SqliteAuthStore>,
    journal: Option<NonceJournal>,
    view: ServerView,
}

/// The settings file as it was read or written last.
struct SettingsFile {
    path: PathBuf,
    document: Object,
    /// As it was at the start.
    started: Object,
}

impl SettingsFile {
    /// The document with these keys, and its text; an error if the next start would refuse it.
    fn with<const N: usize>(
        &self,
        changes: [(&str, Value); N],
    ) -> Result<(Object, String), SettingsError> {
        let mut document = self.document.clone();
        for (key, value) in changes {
            document.set(key, value);
        }
        let mut text = Value::from(document.clone()).to_pretty_json();
        text.push('\n');
        settings::parse(&text)?;
        Ok((document, text))
    }
}

/// Why something cannot be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum KeeperError {
    /// The auth store failed.
    #[error(transparent)]
    Store(#[from] AuthStoreError),
    /// The next start would refuse the settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Keeper {
    pub(crate) fn with_settings(mut self, path: &Path, document: Object) -> Self {
        self.view.has_settings_file = true;
        self.view.data_dir = path.parent().map(Path::to_owned);
        self.settings = Some(SettingsFile {
            path: path.to_owned(),
            started: document.clone(),
            document,
        });
        self
    }

    pub(crate) fn with_store(mut self, store: SqliteAuthStore) -> Self {
        self.store = Some(store);
        self
    }

    pub(crate) fn with_journal(mut self, journal: NonceJournal) -> Self {
        self.journal = Some(journal);
        self
    }

    pub(crate) fn with_storage(mut self, storage: &str, options: Object) -> Self {
        self.show_storage(storage, options);
        self
    }

    pub(super) fn view(&self) -> ServerView {
        self.view.clone()
    }

    pub(super) fn has_store(&self) -> bool {
        self.store.is_some()
    }

    pub(super) fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    pub(super) fn keep_nonce(
        &mut self,
        nonce: UsedNonce,
        window: &[UsedNonce],
    ) -> Result<(), KeeperError> {
        if let Some(store) = &self.store {
            return Ok(store.remember_nonce(nonce)?);
        }
        if let Some(journal) = &mut self.journal {
            let appended = journal.append(nonce, window.iter().copied());
            appended.map_err(|source| KeeperError::File {
                path: PathBuf::from("the journal of nonces"),
                source,
            })?;
        }
        Ok(())
    }

    /// Writes rows to the store, and the auth block to the settings file where that has it.
    pub(super) fn persist(&mut self, rows: &[RowChange], auth: Object) -> Result<(), KeeperError> {
        if let Some(store) = &mut self.store {
            store.apply(rows)?;
        }
        if self.store.is_none() || rows.contains(&RowChange::Fields) {
            self.write_setting("auth", Value::from(auth))?;
        }
        Ok(())
    }

    /// Sets one key of the settings file and writes it; nothing without a file.
    pub(super) fn write_setting(&mut self, key: &str, value: Value) -> Result<(), KeeperError> {
        self.write_settings([(key, value)])
    }

    /// Sets keys of the settings file and writes it once; nothing without a file. What the next start would refuse is
    /// refused here, and changes nothing.
    pub(super) fn write_settings<const N: usize>(
        &mut self,
        changes: [(&str, Value); N],
    ) -> Result<(), KeeperError> {
        let Some(file) = &mut self.settings else {
            return Ok(());
        };
        let (document, text) = file.with(changes)?;
        let written = replace_private(&file.path, text.as_bytes());
        written.map_err(|source| KeeperError::File {
            path: file.path.clone(),
            source,
        })?;
        file.document = document;
        Ok(())
    }

    /// Whether the next start would take the settings with these keys; without a file it does not matter.
    pub(super) fn check_settings<const N: usize>(
        &self,
        changes: [(&str, Value); N],
    ) -> Result<(), KeeperError> {
        let checked = self.settings.as_ref().map(|file| file.with(changes));
        Ok(checked.transpose().map(|_| ())?)
    }

    /// Another store is asked for.
    pub(super) fn show_storage(&mut self, storage: &str, options: Object) {
        self.view.storage = storage.to_owned();
        self.view.storage_options = options;
    }

    /// What the settings say of the store holds, as if the broker had been started with it.
    pub(super) fn storage_holds(&mut self) {
        if let Some(file) = &mut self.settings {
            for key in ["storage", "storage_options"] {
                let value = file.document.get(key).cloned();
                file.started.set(key, value.unwrap_or(Value::Null));
            }
        }
    }

    pub(super) fn setting(&self, key: &str) -> Option<&Value> {
        self.settings.as_ref()?.document.get(key)
    }

    /// The file was read again. Tells the keys that are different from before, and those that need another start.
    pub(super) fn adopt(&mut self, document: Object) -> (Vec<String>, Vec<String>) {
        let Some(file) = &mut self.settings else {
            return Default::default();
        };
        let changed = differences(&file.document, &document);
        let since_start = differences(&file.started, &document).into_iter();
        let needs_restart = since_start.filter(|key| !HOT.contains(&key.as_str()));
        file.document = document;
        (changed.into_iter().collect(), needs_restart.collect())
    }

    pub(super) fn carry_out(&mut self, effect: &Effect) -> Result<(), KeeperError> {
        match &mut self.store {
            Some(store) => Ok(store.carry_out(effect)?),
            None => Ok(()),
        }
    }

    pub(super) fn backup_store(&self, path: &Path) -> Option<Result<(), AuthStoreError>> {
        self.store.as_ref().map(|store| store.backup(path))
    }
}
