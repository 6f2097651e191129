//! Commands about realms.

use crate::document::realm::{EPHEMERAL, KEY, KEY_HASH, MANAGER_KEY};
use crate::document::{Mutation, RealmConfig};
use crate::json::{Object, Value};
use crate::names::RealmName;
use crate::refusal::Refusal;
use crate::secret::{Secret, StoredSecret};

use super::fields;
use super::{Context, MAX_REALMS, Plan, Question, lifetimes};

pub(super) fn add(context: &Context<'_>) -> Result<Plan, Refusal> {
    let body = context.body;
    let name = fields::realm(body, "realm")?;
    require_absent(context, &name)?;
    let mut config = Object::new().with(
        "required",
        fields::flag(body, &["required"])? != Some(false),
    );
    if let Some(key) = fields::text(body, &MANAGER_KEY)? {
        config.set(MANAGER_KEY[0], key);
    }
    if let Some(key) = fields::text(body, &KEY)? {
        set_stored_key(context, &mut config, key);
    }
    if let Some(required) = fields::flag(body, &["require_acceptance"])? {
        config.set("require_acceptance", required);
    }
    if let Some("opportunistic" | "required") = body.get("e2ee").and_then(Value::as_str) {
        config.set("e2ee", body.get("e2ee").cloned());
    }
    if let Some(expires_ms) = lifetimes::wanted_at_creation(context)? {
        if name.is_reserved() {
            return Err(Refusal::malformed(format!("realm '{name}' is for ever")));
        }
        config.set(EPHEMERAL[0], true);
        config.set("expires_at", expires_ms);
    }
    Ok(Plan::changes(vec![put(name, config)?]))
}

pub(super) fn rename(context: &Context<'_>) -> Result<Plan, Refusal> {
    let from = fields::realm(context.body, "from")?;
    let to = fields::realm(context.body, "to")?;
    if from.is_reserved() || to.is_reserved() {
        return Err(Refusal::malformed("'default' and '*' keep their names"));
    }
    require_realm(context, &from)?;
    require_absent(context, &to)?;
    let mut plan = Plan::changes(vec![Mutation::RenameRealm {
        from: from.clone(),
        to: to.clone(),
    }]);
    plan.question = Some(Question::RenameRealm { from, to });
    plan.asks_first = true;
    plan.answer.answer_field = Some("moved_sockets");
    Ok(plan)
}

pub(super) fn remove(context: &Context<'_>) -> Result<Plan, Refusal> {
    let name = fields::realm(context.body, "realm")?;
    require_unreserved(&name)?;
    require_realm(context, &name)?;
    let removed_tokens = context.state.document().tokens_of(name.as_str()).count();
    let mut plan = Plan::changes(vec![Mutation::RemoveRealm(name.clone())]);
    plan.question = Some(Question::ClearRealm(name));
    plan.answer.extra.set("removed_tokens", removed_tokens);
    plan.answer.answer_field = Some("disconnected_sockets");
    Ok(plan)
}

pub(super) fn set_auth(context: &Context<'_>) -> Result<Plan, Refusal> {
    let required = fields::required_flag(context.body, &["required"])?;
    edit_or_create(context, |config| config.set("required", required))
}

pub(super) fn set_acceptance(context: &Context<'_>) -> Result<Plan, Refusal> {
    let required = fields::required_flag(context.body, &["required"])?;
    edit_or_create(context, |config| {
        config.remove("requireAcceptance");
        config.set("require_acceptance", required);
    })
}

pub(super) fn set_anonymous(context: &Context<'_>) -> Result<Plan, Refusal> {
    let allowed = fields::required_flag(context.body, &["allowed", "allow_anonymous"])?;
    edit_or_create(context, |config| {
        config.remove("allowAnonymous");
        config.set("allow_anonymous", allowed);
    })
}

pub(super) fn set_e2ee(context: &Context<'_>) -> Result<Plan, Refusal> {
    let policy = fields::required_text(context.body, &["e2ee", "policy"])?;
    match policy {
        "off" => edit_or_create(context, |config| drop(config.remove("e2ee"))),
        "opportunistic" | "required" => {
            edit_or_create(context, |config| config.set("e2ee", policy))
        }
        _ => Err(Refusal::malformed(
            "e2ee must be off, opportunistic or required",
        )),
    }
}

pub(super) fn set_manager_key(context: &Context<'_>) -> Result<Plan, Refusal> {
    let key = fields::text(context.body, &MANAGER_KEY)?;
    edit(context, |config| {
        for name in MANAGER_KEY {
            config.remove(name);
        }
        if let Some(key) = key {
            config.set(MANAGER_KEY[0], key);
        }
    })
}

/// Sets or clears the key of consumers. Who only says whether a key is required keeps the one that is there.
pub(super) fn set_key(context: &Context<'_>) -> Result<Plan, Refusal> {
    let body = context.body;
    let key = fields::text(body, &KEY)?;
    let require_key = fields::flag(body, &["require_key", "requireKey"])?;
    let is_named = KEY.iter().any(|name| body.get(name).is_some());
    edit(context, |config| {
        if is_named || require_key.is_none() {
            for name in KEY.iter().chain(&[KEY_HASH]) {
                config.remove(name);
            }
        }
        if let Some(key) = key {
            set_stored_key(context, config, key);
        }
        if let Some(required) = require_key {
            config.remove("requireKey");
            config.set("require_key", required);
        }
    })
}

/// A changed realm that must be there.
pub(super) fn edit(context: &Context<'_>, edit: impl FnOnce(&mut Object)) -> Result<Plan, Refusal> {
    let name = fields::realm(context.body, "realm")?;
    let config = require_realm(context, &name)?;
    changed(name, config, edit)
}

pub(super) fn require_realm<'a>(
    context: &'a Context<'_>,
    name: &RealmName,
) -> Result<&'a RealmConfig, Refusal> {
    context
        .state
        .document()
        .realm(name.as_str())
        .ok_or_else(|| Refusal::not_found(format!("there is no realm '{name}'")))
}

pub(super) fn require_absent(context: &Context<'_>, name: &RealmName) -> Result<(), Refusal> {
    let document = context.state.document();
    if document.realm(name.as_str()).is_some() {
        return Err(Refusal::conflict(format!("there is a realm '{name}'")));
    }
    if document.realm_count() >= MAX_REALMS {
        return Err(Refusal::too_many("there are too many realms"));
    }
    Ok(())
}

pub(super) fn require_unreserved(name: &RealmName) -> Result<(), Refusal> {
    if name.is_reserved() {
        return Err(Refusal::malformed(format!("realm '{name}' stays as it is")));
    }
    Ok(())
}

fn edit_or_create(context: &Context<'_>, edit: impl FnOnce(&mut Object)) -> Result<Plan, Refusal> {
    let name = fields::realm(context.body, "realm")?;
    match context.state.document().realm(name.as_str()) {
        Some(config) => changed(name, config, edit),
        None => {
            require_absent(context, &name)?;
            changed(name, &RealmConfig::default(), edit)
        }
    }
}

fn changed(
    name: RealmName,
    config: &RealmConfig,
    edit: impl FnOnce(&mut Object),
) -> Result<Plan, Refusal> {
    let config = config
        .edited(edit)
        .map_err(|error| Refusal::malformed(error.to_string()))?;
    Ok(Plan::changes(vec![Mutation::PutRealm(name, config)]))
}

pub(super) fn put(name: RealmName, config: Object) -> Result<Mutation, Refusal> {
    let config =
        RealmConfig::from_fields(config).map_err(|error| Refusal::malformed(error.to_string()))?;
    Ok(Mutation::PutRealm(name, config))
}

fn set_stored_key(context: &Context<'_>, config: &mut Object, key: &str) {
    match context.state.document().storable(&Secret::new(key), false) {
        StoredSecret::Plain(secret) => config.set(KEY[0], secret.expose()),
        StoredSecret::Hashed(hash) => config.set(KEY_HASH, hash.to_hex()),
    }
}
