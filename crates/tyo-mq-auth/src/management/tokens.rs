//! Commands about tokens of clients and of provisioners.

use crate::document::{ManagementToken, Mutation, Origin, TokenEntry};
use crate::json::{Object, Value};
use crate::names::Role;
use crate::refusal::Refusal;
use crate::secret::{Secret, SecretHash, StoredSecret};

use super::fields;
use super::{Context, MAX_MANAGEMENT_TOKENS, MAX_TOKENS, Plan};

pub(super) fn add(context: &Context<'_>) -> Result<Plan, Refusal> {
    let body = context.body;
    let document = context.state.document();
    let token = Secret::new(fields::required_text(body, &["token"])?);
    let realm = fields::realm(body, "realm")?;
    let role = match fields::text(body, &["role"])? {
        None => Role::Both,
        Some(role) => {
            Role::known(role).ok_or_else(|| Refusal::malformed("role is none that can be given"))?
        }
    };
    if document.token(token.hash()).is_some() {
        return Err(Refusal::conflict("there is such a token"));
    }
    if document.token_count() >= MAX_TOKENS {
        return Err(Refusal::too_many("there are too many tokens"));
    }
    let signs = realm.is_wildcard() && role == Role::Admin;
    let mut entry = TokenEntry::new(document.storable(&token, signs), realm, role);
    entry.client_id = fields::text(body, &["client_id", "clientId"])?.map(Into::into);
    entry.client_name = fields::text(body, &["client_name", "clientName"])?.map(Into::into);
    let added = entry.to_redacted();
    let mut plan = Plan::changes(vec![Mutation::PutToken(entry)]);
    plan.answer.extra.set("added", added);
    Ok(plan)
}

pub(super) fn revoke(context: &Context<'_>) -> Result<Plan, Refusal> {
    let body = context.body;
    let allow_admin = fields::flag(body, &["allow_admin", "allowAdmin"])?.unwrap_or(false);
    let selected = select(context)?;
    let revoked: Vec<_> = selected
        .into_iter()
        .filter(|entry| allow_admin || !entry.is_global_admin())
        .collect();
    if revoked.is_empty() {
        return Err(Refusal::not_found("there is no such token to revoke"));
    }
    let admins = revoked.iter().filter(|entry| entry.is_global_admin());
    let admins = admins.count();
    if admins > 0 && admins == context.state.document().admin_count() {
        return Err(Refusal::conflict("the last admin's token stays"));
    }
    let list: Vec<Value> = revoked
        .iter()
        .map(|entry| entry.to_redacted().into())
        .collect();
    let mutations = revoked
        .iter()
        .map(|entry| Mutation::RemoveToken(entry.hash()));
    let mut plan = Plan::changes(mutations.collect());
    plan.answer.extra.set("revoked", list);
    Ok(plan)
}

pub(super) fn add_management(context: &Context<'_>) -> Result<Plan, Refusal> {
    let body = context.body;
    let document = context.state.document();
    let token = Secret::new(fields::required_text(body, &["token"])?);
    let prefix = fields::required_text(body, &["realm_prefix", "realmPrefix"])?;
    let ephemeral_only = fields::flag(body, &["ephemeral_only", "ephemeralOnly"])?;
    let max_ttl = fields::present(body, &["max_ttl", "maxTtl"]);
    if document.management_token(token.hash()).is_some() {
        return Err(Refusal::conflict("there is such a management token"));
    }
    if document.management_tokens().count() >= MAX_MANAGEMENT_TOKENS {
        return Err(Refusal::too_many("there are too many management tokens"));
    }
    let mut entry = Object::new();
    let stored = document.storable(&token, false);
    crate::document::token::push_stored(&mut entry, &stored);
    entry.set("realm_prefix", prefix);
    if ephemeral_only == Some(true) {
        entry.set("ephemeral_only", true);
    }
    if let Some(max_ttl) = max_ttl {
        entry.set("max_ttl", max_ttl.clone());
    }
    let token = ManagementToken::from_fields(entry)
        .ok()
        .flatten()
        .ok_or_else(|| Refusal::malformed("max_ttl must be a lifetime above zero"))?;
    Ok(Plan::changes(vec![Mutation::PutManagementToken(token)]))
}

pub(super) fn revoke_management(context: &Context<'_>) -> Result<Plan, Refusal> {
    let hash = fields::hash(context.body, &["token_hash", "tokenHash"])?
        .ok_or_else(|| Refusal::malformed("token_hash is needed"))?;
    if context.state.document().management_token(hash).is_none() {
        return Err(Refusal::not_found("there is no such management token"));
    }
    Ok(Plan::changes(vec![Mutation::RemoveManagementToken(hash)]))
}

/// Replaces tokens that are kept as they are by their digests, but for those that sign.
pub(super) fn hash_all(context: &Context<'_>) -> Result<Plan, Refusal> {
    let tokens = context.state.document().tokens_in_order().into_iter();
    let plain = tokens.filter(|entry| {
        entry.origin == Origin::Document
            && !entry.is_global_admin()
            && matches!(entry.secret, StoredSecret::Plain(_))
    });
    let hashed = plain.map(|entry| {
        let mut entry = entry.clone();
        entry.secret = StoredSecret::Hashed(entry.hash());
        Mutation::PutToken(entry)
    });
    let mutations: Vec<_> = hashed.collect();
    let count = mutations.len();
    let mut plan = Plan::changes(mutations);
    plan.answer.extra.set("hashed", count);
    Ok(plan)
}

/// The tokens that a command means: one by itself or its digest, or all of a client in a realm.
fn select<'a>(context: &'a Context<'_>) -> Result<Vec<&'a TokenEntry>, Refusal> {
    let body = context.body;
    let document = context.state.document();
    let by_hash = |hash: SecretHash| Ok(document.token(hash).into_iter().collect());
    if let Some(token) = fields::text(body, &["token"])? {
        return by_hash(SecretHash::of(token));
    }
    if let Some(hash) = fields::hash(body, &["token_hash", "tokenHash"])? {
        return by_hash(hash);
    }
    let realm = fields::optional_realm(body, "realm")?;
    let client_id = fields::text(body, &["client_id", "clientId"])?;
    let (Some(realm), Some(client_id)) = (realm, client_id) else {
        return Err(Refusal::malformed(
            "token, token_hash, or realm and client_id are needed",
        ));
    };
    let tokens = document.tokens_of(realm.as_str());
    Ok(tokens
        .filter(|entry| entry.client_id.as_deref() == Some(client_id))
        .collect())
}
