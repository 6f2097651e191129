//! Commands about the block as a whole: whether clients must authenticate, the global secret, validators elsewhere.

use crate::document::Mutation;
use crate::document::flags::{MAX_VALIDATORS, Validator};
use crate::document::realm::{AUTH_SECRET, AUTH_URL};
use crate::json::{Object, Value};
use crate::refusal::Refusal;
use crate::secret::Secret;

use super::fields;
use super::{Context, Plan, realms};

/// A secret in a command: absent keeps, empty clears, a text sets.
enum NewSecret<'a> {
    Keep,
    Clear,
    Set(&'a str),
}

pub(super) fn set_global_auth(context: &Context<'_>) -> Result<Plan, Refusal> {
    let enabled = fields::required_flag(context.body, &["enabled"])?;
    Ok(set_field("enabled", Some(enabled.into())))
}

pub(super) fn set_strict_auth(context: &Context<'_>) -> Result<Plan, Refusal> {
    let strict = fields::required_flag(context.body, &["strict"])?;
    Ok(set_field("strict", Some(strict.into())))
}

pub(super) fn set_jwt_secret(context: &Context<'_>) -> Result<Plan, Refusal> {
    let secret = fields::text(context.body, &["jwt_secret", "jwtSecret"])?;
    let mut plan = set_field("jwt_secret", secret.map(Value::from));
    plan.mutations.push(Mutation::SetField("jwtSecret", None));
    Ok(plan)
}

pub(super) fn set_external_auth(context: &Context<'_>) -> Result<Plan, Refusal> {
    let body = context.body;
    let url = fields::text(body, &AUTH_URL)?;
    if let Some(url) = url {
        check_url(url)?;
    }
    let secret = match fields::present(body, &AUTH_SECRET) {
        None => NewSecret::Keep,
        Some(value) if value.as_str() == Some("") => NewSecret::Clear,
        Some(_) => NewSecret::Set(fields::required_text(body, &AUTH_SECRET)?),
    };
    let realm = fields::optional_realm(body, "realm")?;
    let prefix = fields::text(body, &["realm_prefix", "realmPrefix"])?;
    match (realm, prefix) {
        (Some(_), Some(_)) => Err(Refusal::malformed("realm or realm_prefix, not both")),
        (Some(_), None) => realms::edit(context, |config| edit_scope(config, url, &secret)),
        (None, Some(prefix)) => set_by_prefix(context, prefix, url, &secret),
        (None, None) => Ok(set_globally(url, &secret)),
    }
}

fn set_globally(url: Option<&str>, secret: &NewSecret<'_>) -> Plan {
    let mut plan = set_field(AUTH_URL[0], url.map(Value::from));
    plan.mutations.push(Mutation::SetField(AUTH_URL[1], None));
    let secret = match secret {
        NewSecret::Keep => return plan,
        NewSecret::Clear => None,
        NewSecret::Set(secret) => Some(Value::from(*secret)),
    };
    plan.mutations
        .push(Mutation::SetField(AUTH_SECRET[0], secret));
    plan.mutations
        .push(Mutation::SetField(AUTH_SECRET[1], None));
    plan
}

fn edit_scope(config: &mut Object, url: Option<&str>, secret: &NewSecret<'_>) {
    for name in AUTH_URL {
        config.remove(name);
    }
    if let Some(url) = url {
        config.set(AUTH_URL[0], url);
    }
    if url.is_some() && matches!(secret, NewSecret::Keep) {
        return;
    }
    for name in AUTH_SECRET {
        config.remove(name);
    }
    if let (Some(_), NewSecret::Set(secret)) = (url, secret) {
        config.set(AUTH_SECRET[0], *secret);
    }
}

fn set_by_prefix(
    context: &Context<'_>,
    prefix: &str,
    url: Option<&str>,
    secret: &NewSecret<'_>,
) -> Result<Plan, Refusal> {
    let mut validators = context.state.document().flags().validators.clone();
    let at = validators
        .iter()
        .position(|validator| &*validator.realm_prefix == prefix);
    match (url, at) {
        (None, Some(at)) => drop(validators.remove(at)),
        (None, None) => {}
        (Some(url), at) => {
            let old = at.and_then(|at| validators[at].auth_secret.clone());
            let validator = Validator {
                realm_prefix: prefix.into(),
                auth_url: url.into(),
                auth_secret: match secret {
                    NewSecret::Keep => old,
                    NewSecret::Clear => None,
                    NewSecret::Set(secret) => Some(Secret::new(secret)),
                },
            };
            match at {
                Some(at) => validators[at] = validator,
                None if validators.len() >= MAX_VALIDATORS => {
                    return Err(Refusal::too_many("there are too many validators"));
                }
                None => validators.push(validator),
            }
        }
    }
    let list: Vec<Value> = validators.iter().map(|v| v.to_stored().into()).collect();
    Ok(set_field("external_validators", Some(list.into())))
}

fn set_field(name: &'static str, value: Option<Value>) -> Plan {
    Plan::changes(vec![Mutation::SetField(name, value)])
}

/// An address that can be asked: `http` or `https`, with a host.
fn check_url(url: &str) -> Result<(), Refusal> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let is_good = host.is_some_and(|host| !host.is_empty())
        && url.chars().all(|c| !c.is_whitespace() && !c.is_control());
    if is_good {
        Ok(())
    } else {
        Err(Refusal::malformed("auth_url must be an http address"))
    }
}
