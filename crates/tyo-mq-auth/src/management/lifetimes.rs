//! How long realms live: at creation, by command, and what their provisioners' tokens allow.

use crate::audit::Actor;
use crate::document::realm::EPHEMERAL;
use crate::json::{Object, Value};
use crate::lifetime::parse_ttl_ms;
use crate::names::RealmName;
use crate::refusal::Refusal;

use super::fields;
use super::{Context, Plan, realms};

/// What limits a realm's lifetime.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cap {
    /// It must end.
    pub(super) is_ephemeral_only: bool,
    /// It may not live longer than this.
    pub(super) max_ttl_ms: Option<u64>,
}

const WANTS: [&str; 3] = ["ephemeral", "temporary", "disposable"];

pub(super) fn set(context: &Context<'_>) -> Result<Plan, Refusal> {
    let body = context.body;
    let name = fields::realm(body, "realm")?;
    realms::require_unreserved(&name)?;
    realms::require_realm(context, &name)?;
    let cap = match context.actor {
        Actor::Realm(_) => cap_of(context, &name),
        Actor::Global(_) | Actor::Provisioner(_) | Actor::Broker => Cap::default(),
    };
    let wants = fields::flag(body, &WANTS[..2])?.or(fields::flag(body, &WANTS[2..])?);
    let requested = ttl(body)?;
    if wants == Some(false) && !cap.must_end() {
        return realms::edit(context, clear);
    }
    let ttl_ms = cap.clamp(requested.unwrap_or_else(|| default_ttl(context)));
    let expires_ms = context.now_ms.saturating_add(ttl_ms);
    realms::edit(context, |config| {
        clear(config);
        config.set(EPHEMERAL[0], true);
        config.set("expires_at", expires_ms);
    })
}

/// When a new realm is to end, if it is to.
pub(super) fn wanted_at_creation(context: &Context<'_>) -> Result<Option<u64>, Refusal> {
    let wants = wants_ephemeral(context.body)?;
    expiry(context.body, wants, Cap::default(), context.now_ms, || {
        default_ttl(context)
    })
}

/// Whether an ephemeral realm is asked for.
pub(super) fn wants_ephemeral(body: &Object) -> Result<bool, Refusal> {
    let mut wants = false;
    for name in WANTS {
        wants |= fields::flag(body, &[name])?.unwrap_or(false);
    }
    Ok(wants)
}

/// When a realm ends that is asked for with these fields; a lifetime alone makes it ephemeral.
pub(super) fn expiry(
    body: &Object,
    wants: bool,
    cap: Cap,
    now_ms: u64,
    default_ttl: impl FnOnce() -> u64,
) -> Result<Option<u64>, Refusal> {
    let requested = ttl(body)?;
    if requested.is_none() && !wants && !cap.must_end() {
        return Ok(None);
    }
    let ttl_ms = cap.clamp(requested.unwrap_or_else(default_ttl));
    Ok(Some(now_ms.saturating_add(ttl_ms)))
}

impl Cap {
    /// A realm that may not live longer than so long may not live for ever either.
    const fn must_end(self) -> bool {
        self.is_ephemeral_only || self.max_ttl_ms.is_some()
    }

    /// The lifetime within the limit; where there is one, in whole seconds, rounded up.
    fn clamp(self, ttl_ms: u64) -> u64 {
        match self.max_ttl_ms {
            None => ttl_ms,
            Some(max) => ttl_ms.min(max).div_ceil(1000) * 1000,
        }
    }
}

/// What the tokens say together that own the realm.
fn cap_of(context: &Context<'_>, name: &RealmName) -> Cap {
    let owners = context.state.document().management_tokens();
    owners
        .filter(|token| token.owns(name))
        .fold(Cap::default(), |cap, token| Cap {
            is_ephemeral_only: cap.is_ephemeral_only || token.ephemeral_only,
            max_ttl_ms: match (cap.max_ttl_ms, token.max_ttl_ms) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        })
}

/// A lifetime that is there must be readable, null not excepted.
fn ttl(body: &Object) -> Result<Option<u64>, Refusal> {
    let read = |value: &Value| {
        parse_ttl_ms(value).ok_or_else(|| Refusal::malformed("ttl must be a lifetime above zero"))
    };
    body.get("ttl").map(read).transpose()
}

fn default_ttl(context: &Context<'_>) -> u64 {
    context.state.document().flags().ephemeral_ttl_ms
}

fn clear(config: &mut Object) {
    for name in EPHEMERAL {
        config.remove(name);
    }
    config.remove("expires_at");
}
