//! Commands that only show.

use crate::audit::Actor;
use crate::json::{Object, Value};
use crate::refusal::Refusal;

use super::fields;
use super::{Context, Plan};

/// The most entries of one page.
const MAX_PAGE: usize = 1000;
/// The entries of a page when nobody says how many.
const PAGE: usize = 100;

pub(super) fn get(_: &Context<'_>) -> Result<Plan, Refusal> {
    Ok(Plan::default())
}

pub(super) fn realms(context: &Context<'_>) -> Result<Plan, Refusal> {
    let prefix = fields::text(context.body, &["prefix"])?.unwrap_or_default();
    let realms = context.state.document().realms_in_order().into_iter();
    let realms = realms.filter(|(name, _)| name.as_str().starts_with(prefix));
    page(context, "realms", realms, |(name, config)| {
        let mut out = Object::new().with("realm", name.as_str());
        let redacted = config.to_redacted();
        for (field, value) in redacted.iter() {
            if let Some(field) = field.as_str() {
                out.set(field, value.clone());
            }
        }
        out
    })
}

pub(super) fn tokens(context: &Context<'_>) -> Result<Plan, Refusal> {
    let realm = fields::optional_realm(context.body, "realm")?;
    let tokens = context.state.document().tokens_in_order().into_iter();
    let tokens = tokens.filter(|entry| realm.as_ref().is_none_or(|realm| entry.realm == *realm));
    page(context, "tokens", tokens, |entry| entry.to_redacted())
}

pub(super) fn requests(context: &Context<'_>) -> Result<Plan, Refusal> {
    let realm = match context.actor {
        Actor::Realm(realm) => Some(realm.clone()),
        Actor::Global(_) | Actor::Provisioner(_) | Actor::Broker => {
            fields::optional_realm(context.body, "realm")?
        }
    };
    let requests = context
        .state
        .requests()
        .pending(realm.as_ref(), context.now_ms);
    page(context, "requests", requests, |request| request.to_public())
}

pub(super) fn audit(context: &Context<'_>) -> Result<Plan, Refusal> {
    let entries = context.state.audit().iter().rev();
    page(context, "entries", entries, |entry| entry.to_object())
}

/// One page of a list, and how many there are in all.
fn page<T>(
    context: &Context<'_>,
    name: &'static str,
    items: impl Iterator<Item = T>,
    show: impl Fn(T) -> Object,
) -> Result<Plan, Refusal> {
    let offset = fields::count(context.body, "offset", 0, u32::MAX as usize)?;
    let limit = fields::count(context.body, "limit", PAGE, MAX_PAGE)?;
    let mut total = 0;
    let mut shown: Vec<Value> = Vec::new();
    for (index, item) in items.enumerate() {
        total += 1;
        if index >= offset && shown.len() < limit {
            shown.push(show(item).into());
        }
    }
    let answer = Object::new()
        .with(name, shown)
        .with("total", total as u64)
        .with("offset", offset);
    Ok(Plan::answer(answer))
}
