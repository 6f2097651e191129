//! What management commands ask of the running broker.

use std::path::Path;
use std::sync::Arc;

use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::store::AuthStoreError;
use tyo_mq_auth::{Answer, Question, RealmName, Refusal};
use tyo_mq_core::store::StoreError;

use super::Access;
use crate::limits::{Limit, LimitConfig};

impl Access {
    pub(super) async fn answer(self: &Arc<Self>, question: Question) -> Answer {
        match question {
            Question::ReloadSettings => self.answer_reload(),
            Question::ClearRealm(realm) => Answer::Value(count(self.clear_realm(realm.as_str()))),
            Question::Stats => Answer::Value(self.stats()),
            Question::DlqList { realm } => self.list_dead_letters(realm.as_ref()).await,
            Question::DlqReplay { id, realm } => self.replay_dead_letter(&id, realm).await,
            Question::DlqDiscard { id, realm } => {
                let discarded = self
                    .broker
                    .discard_dead_letter(realm.as_ref().map(RealmName::as_str), &id)
                    .await;
                discarded.map_or_else(store_refusal, |found| Answer::Value(Value::from(found)))
            }
            Question::ListClients {
                realm,
                offset,
                limit,
            } => Answer::Value(self.list_clients(realm.as_ref(), offset, limit)),
            Question::DisconnectClient { socket } => match self.sockets.find(&socket) {
                None => Answer::Refused(Refusal::new(404, "there is no such client")),
                Some(socket) => {
                    socket.disconnect();
                    Answer::Value(Value::from(true))
                }
            },
            Question::GetLimits { realm } => Answer::Value(self.limits_of(realm.as_ref())),
            Question::SetLimits { realm, limits } => self.change_limits(realm.as_ref(), &limits),
            Question::BackupAuthStore { path } => self.backup(&path),
            Question::RenameRealm { from, to } => self.rename_realm(&from, &to).await,
            Question::SetPersistence { storage, options } => {
                self.change_persistence(storage, options).await
            }
            _ => Answer::Refused(Refusal::new(501, "this broker cannot do that")),
        }
    }

    fn backup(&self, path: &Path) -> Answer {
        let error = match self.keeper().backup_store(path) {
            None => return Answer::Refused(Refusal::new(501, "there is no auth store")),
            Some(Ok(())) => return Answer::Value(path.display().to_string().into()),
            Some(Err(error)) => error,
        };
        let code = match error {
            AuthStoreError::Exists => 409,
            _ => 500,
        };
        Answer::Refused(Refusal::new(code, error.to_string()))
    }

    fn answer_reload(&self) -> Answer {
        let reload = self
            .reload
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match reload.as_ref().map(|reload| reload()) {
            None => Answer::Refused(Refusal::new(400, "no settings file is watched")),
            Some(Err(error)) => Answer::Refused(Refusal::new(400, error)),
            Some(Ok(())) => Answer::Done,
        }
    }

    /// What each realm in memory has, and the connections of all.
    pub(crate) fn stats(&self) -> Value {
        let online = |online: usize, total: usize| {
            let counted = Object::new().with("total", count(total));
            counted.with("online", count(online))
        };
        let mut realms = Object::new();
        for (name, usage) in self.broker.realm_usages() {
            let realm = Object::new()
                .with("producers", online(usage.producers_online, usage.producers))
                .with("consumers", online(usage.consumers_online, usage.consumers))
                .with("subscriptions", count(usage.subscriptions));
            realms.set(&name, Value::from(realm));
        }
        let stats = Object::new().with("realms", realms);
        Value::from(stats.with("connections_current", self.metrics.connections_current()))
    }

    async fn list_dead_letters(&self, realm: Option<&RealmName>) -> Answer {
        match tyo_mq_http::dead_letters(&self.broker, realm.map(RealmName::as_str)).await {
            Ok(text) => Answer::Value(Value::parse(&text).unwrap_or(Value::Null)),
            Err(error) => store_refusal(error),
        }
    }

    async fn replay_dead_letter(&self, id: &str, realm: Option<RealmName>) -> Answer {
        let realm = match realm {
            Some(realm) => realm.as_str().to_owned(),
            None => match self.broker.dead_letter(None, id).await {
                Ok(Some(letter)) => letter.stored.queue.realm.to_string(),
                Ok(None) => {
                    return Answer::Refused(Refusal::new(404, "there is no such dead letter"));
                }
                Err(error) => return store_refusal(error),
            },
        };
        match self.broker.replay_dead_letter(&realm, id).await {
            Ok(true) => Answer::Value(Value::from(id)),
            Ok(false) => Answer::Refused(Refusal::new(404, "there is no such dead letter")),
            Err(error) => store_refusal(error),
        }
    }

    fn list_clients(&self, realm: Option<&RealmName>, offset: usize, limit: usize) -> Value {
        let sockets = match realm {
            Some(realm) => self.sockets.in_realm(realm.as_str()),
            None => self.sockets.all(),
        };
        let shown = sockets.into_iter().skip(offset).take(limit).map(|socket| {
            let grant = socket.auth().grant().cloned();
            let client = Object::new()
                .with("socket", &*socket.id)
                .with("address", socket.address.to_string().as_str())
                .with("connected_at", socket.connected_at_ms)
                .with("realm", grant.as_ref().map(|grant| grant.realm.as_str()))
                .with("role", grant.as_ref().map(|grant| grant.role.as_str()));
            Value::from(client)
        });
        Value::from(shown.collect::<Vec<_>>())
    }

    fn limits_of(&self, realm: Option<&RealmName>) -> Value {
        let limits = self
            .limits
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        let mut shown = Object::new().with("enabled", limits.is_enabled());
        for limit in Limit::ALL {
            let value = match realm {
                Some(realm) => limits.of_realm(realm.as_str(), limit),
                None => limits.global(limit),
            };
            shown.set(limit.0, value.map_or(Value::Null, number));
        }
        Value::from(shown)
    }

    /// Sets numbers, for all realms or for one, and keeps them. To set one switches limits on.
    fn change_limits(&self, realm: Option<&RealmName>, changes: &Object) -> Answer {
        let _order = self.in_order();
        let kept = self
            .keeper()
            .setting("limits")
            .and_then(Value::as_object)
            .cloned();
        let block = changed_limits(kept.unwrap_or_default(), realm, changes);
        let text = Value::from(block.clone()).to_json();
        let parsed = serde_json::from_str(&text).unwrap_or_default();
        self.set_limits(LimitConfig::from_settings(&parsed));
        if let Err(error) = self.keeper().write_setting("limits", Value::from(block)) {
            return Answer::Refused(Refusal::new(500, error.to_string()));
        }
        Answer::Value(self.limits_of(realm))
    }
}

/// The block of limits with these changes, for all realms or for one.
fn changed_limits(mut block: Object, realm: Option<&RealmName>, changes: &Object) -> Object {
    let empty = || Value::from(Object::new());
    let mut realms = block
        .get("realms")
        .cloned()
        .unwrap_or_else(empty)
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut own = match realm {
        Some(realm) => realms
            .get(realm.as_str())
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default(),
        None => block.clone(),
    };
    for (name, value) in changes.iter() {
        let name = name.to_lossy();
        match value {
            Value::Null => _ = own.remove(&name),
            value => own.set(&name, value.clone()),
        }
    }
    match realm {
        Some(realm) => {
            realms.set(realm.as_str(), Value::from(own));
            block.set("realms", Value::from(realms));
        }
        None => block = own,
    }
    if block.get("enabled").is_none() {
        block.set("enabled", true);
    }
    block
}

/// A number as JavaScript writes it.
fn number(value: f64) -> Value {
    let mut text = Vec::new();
    tyo_mq_auth::json::write_number(&mut text, value);
    Value::parse(&String::from_utf8_lossy(&text)).unwrap_or(Value::Null)
}

fn count(value: usize) -> Value {
    Value::from(value)
}

fn store_refusal(error: StoreError) -> Answer {
    let code = if error == StoreError::Unsupported {
        501
    } else {
        500
    };
    Answer::Refused(Refusal::new(code, error.to_string()))
}
