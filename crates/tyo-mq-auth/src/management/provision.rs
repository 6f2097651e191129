//! `POST /api/realms`: realms created, or their manager key replaced, by holders of a management token.

use std::net::IpAddr;

use crate::audit::Actor;
use crate::document::realm::{EPHEMERAL, MANAGER_KEY};
use crate::document::{ManagementToken, Mutation};
use crate::effect::{Effect, push_applied};
use crate::json::{Object, Value};
use crate::names::RealmName;
use crate::refusal::Refusal;
use crate::secret::SecretHash;
use crate::state::AuthState;

use super::lifetimes::{self, Cap};
use super::{MAX_REALMS, fields, realms};

/// The largest body, in bytes.
pub const MAX_PROVISION_BYTES: usize = 64 * 1024;

/// How an attempt to provision a realm ended.
#[derive(Debug)]
pub struct Provisioned {
    /// The body of the answer 200, or why there is none.
    pub answer: Result<String, Refusal>,
    /// What is to be done, also after a refusal.
    pub effects: Vec<Effect>,
}

impl AuthState {
    /// Whether there is anyone who may provision; if not, the route answers 404.
    #[must_use]
    pub fn can_provision(&self) -> bool {
        self.document.is_enabled() && self.document.management_tokens().next().is_some()
    }

    /// Who holds a management token. To be asked before the rate of creation is counted and the body is read.
    ///
    /// # Errors
    /// 404 when there are no such tokens, 401 when this is none.
    pub fn check_provisioner(
        &mut self,
        bearer: Option<&str>,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<SecretHash, Refusal> {
        if !self.can_provision() {
            return Err(Refusal::not_found("no realms are provisioned here"));
        }
        self.check_throttle(peer, now_ms)?;
        let hash = SecretHash::of(bearer.unwrap_or_default());
        if self.document.management_token(hash).is_some() {
            return Ok(hash);
        }
        let refusal = Refusal::unauthenticated("a management token is needed");
        Err(self.count_failure(refusal, peer, now_ms))
    }

    /// Creates a realm, or replaces the manager key of one that is there. Refused with 400 when the body cannot be read
    /// or lacks something, 401 when the token is gone, 403 when the realm is not the token's, 409 when `exclusive` was
    /// asked for and the realm is there.
    pub fn provision(&mut self, provisioner: SecretHash, body: &str, now_ms: u64) -> Provisioned {
        let target = read_body(body).ok().and_then(|body| fields::target(&body));
        let result = self.plan_provision(provisioner, body, now_ms);
        let result = result.and_then(|(mutation, name, is_new)| {
            let applied = self.apply_plan(vec![mutation])?;
            Ok((applied, name, is_new))
        });
        let refused = result.as_ref().err().map(|refusal| refusal.code);
        let actor = Actor::Provisioner(provisioner);
        let audit = self.record("provision_realm", &actor, target, refused, false, now_ms);
        let (answer, mut effects) = match result {
            Err(refusal) => (Err(refusal), Vec::new()),
            Ok((applied, name, is_new)) => {
                let mut effects = Vec::new();
                push_applied(&mut effects, applied);
                (Ok(self.provisioned(&name, is_new)), effects)
            }
        };
        effects.push(audit);
        Provisioned { answer, effects }
    }

    /// The body of the answer.
    fn provisioned(&self, name: &RealmName, is_new: bool) -> String {
        let config = self.document.realm(name.as_str());
        let expires = config.and_then(|config| config.expires_ms());
        let body = Object::new()
            .with("ok", true)
            .with("realm", name.as_str())
            .with("created", is_new)
            .with("manager_key_configured", true)
            .with("ephemeral", config.is_some_and(|c| c.policy().ephemeral))
            .with("expires_at", expires);
        Value::from(body).to_json()
    }

    fn plan_provision(
        &self,
        provisioner: SecretHash,
        body: &str,
        now_ms: u64,
    ) -> Result<(Mutation, RealmName, bool), Refusal> {
        let token = self.document.management_token(provisioner);
        let token = token.ok_or_else(|| Refusal::unauthenticated("the token is gone"))?;
        let body = read_body(body)?;
        let name = fields::realm(&body, "realm")?;
        let key = fields::required_text(&body, &MANAGER_KEY)?;
        if !token.owns(&name) {
            let message = format!("realm '{name}' is not under the token's prefix");
            return Err(Refusal::forbidden(message));
        }
        let existing = self.document.realm(name.as_str());
        let existing = existing.filter(|config| !config.is_expired(now_ms));
        if let Some(config) = existing {
            if fields::flag(&body, &["exclusive"])? == Some(true) {
                return Err(Refusal::conflict(format!("there is a realm '{name}'")));
            }
            let mut fields = config.fields().clone();
            fields.remove(MANAGER_KEY[1]);
            fields.set(MANAGER_KEY[0], key);
            return Ok((realms::put(name.clone(), fields)?, name, false));
        }
        if self.document.realm_count() >= MAX_REALMS {
            return Err(Refusal::too_many("there are too many realms"));
        }
        let config = self.new_config(&body, token, key, now_ms)?;
        Ok((realms::put(name.clone(), config)?, name, true))
    }

    fn new_config(
        &self,
        body: &Object,
        token: &ManagementToken,
        key: &str,
        now_ms: u64,
    ) -> Result<Object, Refusal> {
        let cap = Cap {
            is_ephemeral_only: token.ephemeral_only,
            max_ttl_ms: token.max_ttl_ms,
        };
        let wants = lifetimes::wants_ephemeral(body)?;
        let default_ttl = || self.document.flags().ephemeral_ttl_ms;
        let mut config = Object::new()
            .with("required", true)
            .with(MANAGER_KEY[0], key);
        if let Some(expires) = lifetimes::expiry(body, wants, cap, now_ms, default_ttl)? {
            config.set(EPHEMERAL[0], true);
            config.set("expires_at", expires);
        }
        Ok(config)
    }
}

fn read_body(body: &str) -> Result<Object, Refusal> {
    if body.len() > MAX_PROVISION_BYTES {
        return Err(Refusal::malformed("the body is too large"));
    }
    if body.trim().is_empty() {
        return Ok(Object::new());
    }
    match Value::parse(body) {
        Ok(Value::Object(body)) => Ok(body),
        _ => Err(Refusal::malformed("the body must be a JSON object")),
    }
}
