//! Opens the door at the start.

use std::path::Path;
use std::sync::Arc;

use tyo_mq_auth::enrolment::EnrolmentRequest;
use tyo_mq_auth::entropy::SystemEntropy;
use tyo_mq_auth::journal::NonceJournal;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::nonce::NonceWindow;
use tyo_mq_auth::store::{AuthStoreError, SqliteAuthStore};
use tyo_mq_auth::{AuthDocument, AuthState};
use tyo_mq_core::runtime::Broker;

use super::Access;
use super::keeper::Keeper;
use crate::environment::{AdminToken, Environment, ensure_admin_token};
use crate::limits::LimitConfig;
use crate::now_ms;
use crate::server::{StartError, StartOptions};
use crate::settings::Settings;

/// The door as the settings want it.
pub(crate) fn open(
    settings: &Settings,
    options: StartOptions,
    broker: &Broker,
) -> Result<Arc<Access>, StartError> {
    let failed = |error: &dyn std::fmt::Display| StartError::Auth(error.to_string());
    let (mut document, warnings) =
        AuthDocument::parse(&settings.auth.to_string()).map_err(|error| failed(&error))?;
    warnings
        .iter()
        .for_each(|warning| tracing::warn!("{warning}"));
    let kept = Kept::open(settings, &options, &mut document)?;
    let mut environment = options.environment;
    announce(&ensure_admin_token(&mut document, &mut environment).map_err(|error| failed(&error))?);
    let mut state = AuthState::new(document, kept.window, Box::new(SystemEntropy::new()));
    state.set_has_store(settings.auth_store.file().is_some());
    for request in kept.requests {
        // What does not fit is beyond the bound that held when it was kept.
        let _ = state.requests_mut().insert(request);
    }
    let access = Access::new(
        state,
        kept.keeper,
        environment,
        broker.clone(),
        LimitConfig::from_settings(&settings.limits),
    );
    access.message_store.opened_with(settings);
    access.set_http_api(settings.http_api);
    if let Some(file) = options.settings_file {
        let door = Arc::downgrade(&access);
        access.on_reload(move || {
            door.upgrade()
                .map_or(Ok(()), |access| crate::reload::reload(&file, &access))
        });
    }
    Ok(access)
}

/// What was kept from before, and where it goes on being kept.
struct Kept {
    keeper: Keeper,
    window: NonceWindow,
    requests: Vec<EnrolmentRequest>,
}

impl Kept {
    fn open(
        settings: &Settings,
        options: &StartOptions,
        document: &mut AuthDocument,
    ) -> Result<Self, StartError> {
        let storage = settings.storage.as_str().unwrap_or("memory");
        let storage_options = object(&settings.storage_options.to_string());
        let mut kept = Self {
            keeper: Keeper::default().with_storage(storage, storage_options),
            window: NonceWindow::forgetful(now_ms()),
            requests: Vec::new(),
        };
        if let Some(file) = settings.auth_store.file() {
            let read = kept.read_store(&file, document);
            let store = read.map_err(|error| StartError::Auth(error.to_string()))?;
            kept.keeper = kept.keeper.with_store(store);
        } else if let Some(file) = &options.settings_file {
            let opened = NonceJournal::open(&journal_path(file), now_ms());
            let (journal, used) = opened.map_err(|error| StartError::Auth(error.to_string()))?;
            kept.window = NonceWindow::restored(used, now_ms());
            kept.keeper = kept.keeper.with_journal(journal);
        }
        if let Some(file) = &options.settings_file {
            let document = object(&options.settings_text);
            kept.keeper = kept.keeper.with_settings(file, document);
        }
        Ok(kept)
    }

    /// Joins the store's realms and tokens with those of the settings; what only those have goes into the store.
    fn read_store(
        &mut self,
        file: &Path,
        document: &mut AuthDocument,
    ) -> Result<SqliteAuthStore, AuthStoreError> {
        let mut store = SqliteAuthStore::open(file)?;
        let merged = document.merge_store(store.load()?);
        for warning in &merged.warnings {
            tracing::warn!("{warning}");
        }
        store.apply(&merged.imports)?;
        self.window = NonceWindow::restored(store.load_nonces(now_ms())?, now_ms());
        self.requests = store.load_requests()?;
        Ok(store)
    }
}

impl Access {
    /// A door that stands open.
    pub(crate) fn for_everybody(broker: &Broker) -> Arc<Self> {
        let window = NonceWindow::forgetful(now_ms());
        let document = AuthDocument::parse("{}").expect("an empty block is good").0;
        let state = AuthState::new(document, window, Box::new(SystemEntropy::new()));
        Self::new(
            state,
            Keeper::default(),
            Environment::default(),
            broker.clone(),
            LimitConfig::default(),
        )
    }
}

/// Says where the admin's token is, never what it is.
pub(super) fn announce(token: &AdminToken) {
    match token {
        AdminToken::Settled => {}
        AdminToken::FromEnvironment(name) => {
            tracing::info!("the admin's token is the one in {name}")
        }
        AdminToken::Created(file, name) => {
            tracing::warn!(
                "made an admin's token: it is in {} as {name}",
                file.display()
            );
        }
        AdminToken::Missing => {
            tracing::warn!("there is no admin's token: nobody can manage this broker")
        }
    }
}

/// Beside the settings file, under its name.
fn journal_path(settings: &Path) -> std::path::PathBuf {
    let mut name = settings.file_name().unwrap_or_default().to_os_string();
    name.push(".nonces");
    settings.with_file_name(name)
}

/// The object in a text that was checked before; an empty one otherwise.
pub(super) fn object(text: &str) -> Object {
    Value::parse(text)
        .ok()
        .and_then(|value| value.as_object().cloned())
        .unwrap_or_default()
}
