//! Takes over settings that were read anew, and remembers what became of them.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use tyo_mq_auth::AuthDocument;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_protocol::write_iso8601;

use super::Access;
use super::open::{announce, object};
use crate::environment::{AdminToken, admin_token};
use crate::limits::LimitConfig;
use crate::now_ms;
use crate::settings::Loaded;

/// What became of the last reading of the settings file.
#[derive(Debug, Clone)]
pub(super) struct ReloadReport {
    at_ms: u64,
    /// Top-level keys that were different, or why the file is not good.
    outcome: Result<Vec<String>, String>,
    /// Keys that are different from what they were at the start, and are obeyed from the next start only.
    needs_restart: Vec<String>,
}

impl ReloadReport {
    pub(super) fn to_object(&self) -> Object {
        let list = |keys: &[String]| -> Value {
            let keys = keys.iter().map(|key| Value::from(key.as_str()));
            Value::from(keys.collect::<Vec<_>>())
        };
        let mut at = Vec::new();
        write_iso8601(&mut at, self.at_ms);
        let report = Object::new()
            .with("at", &*String::from_utf8_lossy(&at))
            .with("ok", self.outcome.is_ok());
        match &self.outcome {
            Ok(changed) => report
                .with("changed", list(changed))
                .with("needs_restart", list(&self.needs_restart)),
            Err(message) => report.with("error", message.as_str()),
        }
    }
}

impl Access {
    /// Applies settings that were read anew: access, limits and the HTTP API. The rest holds from the next start. For whoever has
    /// the [turn](Self::in_order).
    pub(crate) fn adopt(&self, mut loaded: Loaded) -> Result<(), String> {
        let mut environment = self
            .environment
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        environment.reread().map_err(|error| error.to_string())?;
        if environment.enables_auth() {
            loaded.settings.enable_auth_by_default();
        }
        let auth = loaded.settings.auth.to_string();
        let (document, warnings) = AuthDocument::parse(&auth).map_err(|error| error.to_string())?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let mut state = self.state();
        let mut applied = state.adopt_settings(document);
        let admin = admin_token(state.document(), &mut environment);
        let (admin, token) = admin.map_err(|error| error.to_string())?;
        if let Some(token) = token {
            applied
                .changes
                .extend(state.set_environment_admin(&token).changes);
        }
        drop(state);
        drop(environment);
        if admin != AdminToken::Settled && !applied.changes.is_empty() {
            announce(&admin);
        }
        self.set_limits(LimitConfig::from_settings(&loaded.settings.limits));
        self.set_http_api(loaded.settings.http_api);
        let document = object(&loaded.text);
        let (changed, needs_restart) = self.keeper().adopt(document);
        if self.keeper().has_store() && !applied.rows.is_empty() {
            self.persist(&applied.rows)
                .map_err(|error| error.to_string())?;
        }
        self.on_changed(&applied.changes);
        self.wake.notify_one();
        self.report(Ok(changed), needs_restart);
        Ok(())
    }

    /// The file is not good: everything stays as it is.
    pub(crate) fn refuse_settings(&self, error: &str) {
        self.report(Err(error.to_owned()), Vec::new());
    }

    fn report(&self, outcome: Result<Vec<String>, String>, needs_restart: Vec<String>) {
        let mut reloaded = self.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
        // Our own writing of the file is read again, too.
        let is_same = outcome.as_ref().is_ok_and(Vec::is_empty);
        let was_good = reloaded.as_ref().is_none_or(|last| last.outcome.is_ok());
        if is_same && was_good {
            return;
        }
        if let Ok(changed) = &outcome {
            let (changed, restart) = (changed.join(", "), needs_restart.join(", "));
            tracing::info!(
                changed,
                needs_restart = restart,
                "applied the settings file"
            );
        }
        *reloaded = Some(ReloadReport {
            at_ms: now_ms(),
            outcome,
            needs_restart,
        });
    }
}

/// The top-level keys that two documents do not have alike.
pub(super) fn differences(left: &Object, right: &Object) -> BTreeSet<String> {
    let names = left.iter().chain(right.iter()).map(|(name, _)| name);
    let names = names.filter_map(|name| name.as_str());
    names
        .filter(|name| left.get(name) != right.get(name))
        .map(str::to_owned)
        .collect()
}

/// Keys that are obeyed at once.
pub(super) const HOT: &[&str] = &["auth", "limits", "http_api", "httpApi"];
