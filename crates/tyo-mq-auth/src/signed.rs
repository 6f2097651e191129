//! Requests that are signed: who signed, and that it counts once. What they ask for is done in a second step, so that
//! the nonce can be kept, and claimed in a cluster, in between.

use std::net::IpAddr;

use tyo_mq_protocol::events;

use crate::audit::Actor;
use crate::effect::Reply;
use crate::json::Object;
use crate::management::is_realm_command;
use crate::names::RealmName;
use crate::nonce::{NonceError, UsedNonce};
use crate::proof::{ProofError, SignedPayload};
use crate::refusal::Refusal;
use crate::state::AuthState;

/// An event whose payload is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignedEvent {
    /// `AUTHORIZATION_NEXT`: show me the next request.
    Next,
    /// `AUTHORIZATION_DECIDE`: I decide a request.
    Decide,
    /// `AUTH_MANAGEMENT_COMMAND`.
    Manage,
}

/// A request that was signed by someone who may sign. Holding one means that its nonce is spent.
#[derive(Debug)]
pub struct Verified {
    pub(crate) event: SignedEvent,
    pub(crate) body: Object,
    pub(crate) actor: Actor,
    nonce: String,
    used: UsedNonce,
}

impl SignedEvent {
    /// The name on the wire, which is signed too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Next => events::AUTHORIZATION_NEXT,
            Self::Decide => events::AUTHORIZATION_DECIDE,
            Self::Manage => events::AUTH_MANAGEMENT_COMMAND,
        }
    }

    /// The event by its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Next, Self::Decide, Self::Manage]
            .into_iter()
            .find(|event| event.name() == name)
    }

    /// The answer to a request that is refused before it is looked at.
    #[must_use]
    pub fn refuse(self, refusal: &Refusal) -> Reply {
        let event = match self {
            Self::Next | Self::Decide => AUTHORIZATION_FAIL,
            Self::Manage => AUTH_MANAGEMENT_FAIL,
        };
        Reply::refused(event, refusal)
    }
}

impl Verified {
    /// What was asked for.
    #[must_use]
    pub const fn event(&self) -> SignedEvent {
        self.event
    }

    /// Who signed.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The nonce, to be claimed in a cluster before the request is executed.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// The nonce as it is to be kept before the request is executed.
    #[must_use]
    pub const fn used_nonce(&self) -> UsedNonce {
        self.used
    }
}

impl AuthState {
    /// Checks who signed, and spends the nonce.
    ///
    /// # Errors
    /// The refusal: mostly 401, whatever is wrong.
    pub fn verify(
        &mut self,
        event: SignedEvent,
        payload: Option<&str>,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<Verified, Refusal> {
        self.check_throttle(peer, now_ms)?;
        self.verify_unthrottled(event, payload, now_ms)
            .map_err(|refusal| self.count_failure(refusal, peer, now_ms))
    }

    fn verify_unthrottled(
        &mut self,
        event: SignedEvent,
        payload: Option<&str>,
        now_ms: u64,
    ) -> Result<Verified, Refusal> {
        let signed = SignedPayload::parse(payload).map_err(proof_refusal)?;
        if self.nonces.is_used(signed.nonce()) {
            return Err(used_nonce());
        }
        let in_time = self.nonces.covers(signed.timestamp_ms(), now_ms);
        let actor = in_time
            .then(|| self.signer(event, &signed, now_ms))
            .flatten()
            .ok_or_else(|| Refusal::unauthenticated("the proof is not valid"))?;
        let used = self
            .nonces
            .claim(signed.nonce(), signed.timestamp_ms(), now_ms);
        let used = used.map_err(|error| match error {
            NonceError::Used => used_nonce(),
            NonceError::Full => Refusal::too_many("too many proofs in a short time"),
        })?;
        Ok(Verified {
            event,
            actor,
            used,
            nonce: signed.nonce().to_owned(),
            body: signed.body,
        })
    }

    fn signer(&self, event: SignedEvent, signed: &SignedPayload, now_ms: u64) -> Option<Actor> {
        let action = event.name();
        if let Some(admin) = signed.signer(action, self.document.admin_secrets()) {
            return Some(Actor::Global(admin));
        }
        let realm = self.managed_realm(event, &signed.body, now_ms)?;
        let key = self.document.manager_key(realm.as_str(), now_ms)?;
        signed.signer(action, [key])?;
        Some(Actor::Realm(realm))
    }

    /// The realm whose manager may sign this, besides the global admin.
    fn managed_realm(&self, event: SignedEvent, body: &Object, now_ms: u64) -> Option<RealmName> {
        let named = || body.non_empty_str("realm").and_then(RealmName::new);
        let realm = match event {
            SignedEvent::Next => named()?,
            SignedEvent::Decide => {
                let request = self
                    .requests
                    .get(body.non_empty_str("request_id")?, now_ms)?;
                request.realm.clone()
            }
            SignedEvent::Manage => {
                let command = body.non_empty_str("command")?;
                named().filter(|realm| is_realm_command(command) && !realm.is_reserved())?
            }
        };
        (!realm.is_wildcard()).then_some(realm)
    }
}

fn proof_refusal(error: ProofError) -> Refusal {
    match error {
        ProofError::Missing => Refusal::unauthenticated("a proof is missing"),
        ProofError::Malformed => Refusal::unauthenticated("the proof is not valid"),
        ProofError::TooLarge => Refusal::new(413, "the payload is too large"),
    }
}

fn used_nonce() -> Refusal {
    Refusal::unauthenticated("the proof was used before")
}

/// Answers NEXT and DECIDE that are refused and asked for no ack.
pub const AUTHORIZATION_FAIL: &str = "AUTHORIZATION_FAIL";
/// Answers management commands that are refused and asked for no ack.
pub const AUTH_MANAGEMENT_FAIL: &str = "AUTH_MANAGEMENT_FAIL";

#[cfg(test)]
mod tests;
