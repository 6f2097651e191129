//! AUTHENTICATION: one attempt of one socket, as a machine that asks for HTTP and does none.

use std::net::IpAddr;

use tyo_mq_protocol::events;

use crate::document::{AuthDocument, RealmStatus};
use crate::external::{
    Chosen, ExternalRequest, ExternalResponse, ExternalUnavailable, Permit, Scope, Verdict,
};
use crate::json::{Object, Value};
use crate::jwt::Jwt;
use crate::names::{RealmName, Role};
use crate::policy::PresentedKey;
use crate::refusal::Refusal;
use crate::secret::{Secret, SecretHash};
use crate::session::{Grant, SocketAuth, Via};
use crate::state::AuthState;

/// The longest AUTHENTICATION payload, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// How an attempt goes on.
#[derive(Debug)]
pub enum Step {
    /// It is over.
    Done(Outcome),
    /// A validator is to be asked; then [`AuthState::finish_authentication`].
    AskExternal(ExternalRequest, PendingAttempt),
}

/// How an attempt ended.
pub type Outcome = Result<Grant, Refusal>;

/// An attempt that waits for a validator. Dropping it frees its place among the validations under way.
#[derive(Debug)]
pub struct PendingAttempt {
    scope: Scope,
    url: SecretHash,
    negative_key: SecretHash,
    peer: IpAddr,
    _permit: Permit,
}

/// The event and payload that tell an outcome to the client.
#[must_use]
pub fn outcome_event(outcome: &Outcome) -> (&'static str, String) {
    match outcome {
        Ok(grant) => {
            let payload = Object::new()
                .with("realm", grant.realm.as_str())
                .with("role", grant.role.as_str());
            (events::AUTH_OK, Value::from(payload).to_json())
        }
        Err(refusal) => (events::AUTH_FAIL, refusal.to_auth_fail()),
    }
}

impl AuthState {
    /// Begins an attempt. The payload is the event's first argument as JSON.
    pub fn authenticate(
        &mut self,
        socket: &mut SocketAuth,
        payload: Option<&str>,
        peer: IpAddr,
        now_ms: u64,
    ) -> Step {
        self.attempt(socket, payload, peer, now_ms)
            .unwrap_or_else(|refusal| Step::Done(Err(self.count_failure(refusal, peer, now_ms))))
    }

    /// Ends an attempt with what the validator answered.
    ///
    /// # Errors
    /// The refusal to tell the client.
    pub fn finish_authentication(
        &mut self,
        socket: &mut SocketAuth,
        pending: PendingAttempt,
        response: Result<ExternalResponse, ExternalUnavailable>,
        now_ms: u64,
    ) -> Outcome {
        socket.set_asking(false);
        let verdict = response.map_or(Verdict::Unusable, |response| pending.scope.judge(&response));
        let outcome = match verdict {
            Verdict::Valid { realm, role } => {
                let via = Via::External(pending.url);
                self.admit(socket, Grant { realm, role, via }, now_ms)
            }
            Verdict::Invalid => {
                self.validations
                    .remember_invalid(pending.negative_key, now_ms);
                Err(invalid_token())
            }
            Verdict::Unusable => Err(Refusal::unauthenticated("the token could not be validated")),
        };
        outcome.map_err(|refusal| self.count_failure(refusal, pending.peer, now_ms))
    }

    /// Validates a token apart from any socket, as HTTP requests want it, also while clients need not authenticate.
    /// `hint` is the realm that is meant; the grant may be of another. Ends as an attempt does, with a new [`SocketAuth`].
    pub fn validate_token(
        &mut self,
        token: &str,
        hint: Option<RealmName>,
        peer: IpAddr,
        now_ms: u64,
    ) -> Step {
        let mut socket = SocketAuth::default();
        self.check_throttle(peer, now_ms)
            .and_then(|()| self.attempt_token(&mut socket, token, hint, peer, now_ms))
            .unwrap_or_else(|refusal| Step::Done(Err(self.count_failure(refusal, peer, now_ms))))
    }

    fn attempt(
        &mut self,
        socket: &mut SocketAuth,
        payload: Option<&str>,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<Step, Refusal> {
        let request = Request::read(payload)?;
        if !self.document.is_enabled() {
            socket.set_grant(Grant::without_auth());
            return Ok(Step::Done(Ok(Grant::without_auth())));
        }
        if socket.grant().is_some() || socket.is_asking() {
            return Err(Refusal::forbidden("this socket has authenticated already"));
        }
        self.check_throttle(peer, now_ms)?;
        if let Some(realm) = &request.realm {
            socket.set_pending_realm(realm.clone());
        }
        match &request.token {
            Some(token) => self.attempt_token(socket, token, request.realm, peer, now_ms),
            None => {
                let grant = self.document.grant_declared(&request, now_ms)?;
                self.admit(socket, grant, now_ms)
                    .map(|grant| Step::Done(Ok(grant)))
            }
        }
    }

    fn attempt_token(
        &mut self,
        socket: &mut SocketAuth,
        token: &str,
        declared: Option<RealmName>,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<Step, Refusal> {
        let hint = match self.document.validate_locally(token, declared, now_ms) {
            Ok(grant) => {
                return self
                    .admit(socket, grant, now_ms)
                    .map(|grant| Step::Done(Ok(grant)));
            }
            Err(hint) => hint,
        };
        let chosen = self.document.choose_validator(hint.as_ref());
        let chosen = chosen
            .filter(|_| token.len() <= Secret::MAX_BYTES)
            .ok_or_else(invalid_token)?;
        self.ask(socket, &chosen, token, hint.as_ref(), peer, now_ms)
    }

    fn ask(
        &mut self,
        socket: &mut SocketAuth,
        chosen: &Chosen,
        token: &str,
        hint: Option<&RealmName>,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<Step, Refusal> {
        let negative_key = chosen.negative_key(token, hint);
        if self.validations.is_known_invalid(negative_key, now_ms) {
            return Err(invalid_token());
        }
        let permit = self
            .validations
            .permit()
            .ok_or_else(|| Refusal::too_many("too many tokens are being validated"))?;
        socket.set_asking(true);
        let pending = PendingAttempt {
            scope: chosen.scope.clone(),
            url: SecretHash::of(&chosen.url),
            negative_key,
            peer,
            _permit: permit,
        };
        Ok(Step::AskExternal(chosen.request(token, hint), pending))
    }

    fn admit(&self, socket: &mut SocketAuth, grant: Grant, now_ms: u64) -> Outcome {
        let status = self.document.realm_status(grant.realm.as_str(), now_ms);
        if matches!(status, RealmStatus::Expired) {
            let message = format!("realm '{}' is gone", grant.realm);
            return Err(Refusal::unauthenticated(message));
        }
        socket.set_grant(grant.clone());
        Ok(grant)
    }
}

/// What the payload says, as far as it counts.
struct Request {
    token: Option<String>,
    realm: Option<RealmName>,
    role: Option<String>,
    key: Option<Value>,
}

impl Request {
    fn read(payload: Option<&str>) -> Result<Self, Refusal> {
        let unreadable = || Refusal::unauthenticated("the payload cannot be read");
        let payload = payload.unwrap_or("null");
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(unreadable());
        }
        let mut value = Value::parse(payload).map_err(|_| unreadable())?;
        if let Value::Text(text) = &value {
            let inner = text.as_str().and_then(|text| Value::parse(text).ok());
            value = inner.ok_or_else(unreadable)?;
        }
        let Value::Object(mut fields) = value else {
            return Self::from_fields(Object::new());
        };
        let key = fields.remove("key");
        Ok(Self {
            key,
            ..Self::from_fields(fields)?
        })
    }

    fn from_fields(fields: Object) -> Result<Self, Refusal> {
        let text = |name: &str| fields.non_empty_str(name).map(str::to_owned);
        let realm = fields.non_empty_str("realm").map(|name| {
            RealmName::new(name)
                .ok_or_else(|| Refusal::unauthenticated("that is no name of a realm"))
        });
        Ok(Self {
            token: text("token"),
            realm: realm.transpose()?,
            role: text("role"),
            key: None,
        })
    }
}

impl AuthDocument {
    /// The place of a socket that shows no token.
    fn grant_declared(&self, request: &Request, now_ms: u64) -> Outcome {
        let role = request.role.as_deref();
        if role == Some("manager") {
            return Err(Refusal::unauthenticated("managers need a token"));
        }
        let declared = Role::declared(role);
        if let Some(realm) = request.realm.as_ref().filter(|r| self.is_open(r, now_ms)) {
            return Ok(Grant {
                realm: realm.clone(),
                role: declared,
                via: Via::OpenRealm,
            });
        }
        if role.is_none() && request.key.is_none() {
            return Err(Refusal::unauthenticated("a token is missing"));
        }
        let realm = request.realm.clone();
        let realm = realm.unwrap_or_else(RealmName::default_realm);
        let key = request.key.as_ref().and_then(Value::as_str);
        let key = key.map_or(PresentedKey::None, PresentedKey::Text);
        let taken = self.admit_declared(&realm, &declared, key, now_ms)?;
        Ok(Grant {
            realm,
            role: declared,
            via: Via::Declared(taken),
        })
    }

    /// What a token grants by the settings alone; or else the realm that a validator is to be told.
    fn validate_locally(
        &self,
        token: &str,
        declared: Option<RealmName>,
        now_ms: u64,
    ) -> Result<Grant, Option<RealmName>> {
        if token.len() > Secret::MAX_BYTES {
            return Err(None);
        }
        let jwt = Jwt::parse(token);
        let claimed = jwt.as_ref().and_then(Jwt::realm);
        if let Some(grant) = jwt.and_then(|jwt| self.verify_jwt(&jwt, claimed.as_ref(), now_ms)) {
            return Ok(grant);
        }
        match self.token(SecretHash::of(token)) {
            Some(entry) => Ok(Grant {
                realm: entry.realm.clone(),
                role: entry.role.clone(),
                via: Via::Token(entry.hash()),
            }),
            None => Err(declared.or(claimed)),
        }
    }

    /// One key for each claimed realm, then the global secret.
    fn verify_jwt(&self, jwt: &Jwt<'_>, claimed: Option<&RealmName>, now_ms: u64) -> Option<Grant> {
        let own = claimed.and_then(|realm| self.manager_key(realm.as_str(), now_ms));
        let own = own.map(|key| (key, Via::RealmJwt(key.hash())));
        let global = self.flags().jwt_secret.as_ref();
        let global = global.map(|key| (key, Via::GlobalJwt(key.hash())));
        own.into_iter().chain(global).find_map(|(key, via)| {
            let verified = jwt.verify(key, now_ms)?;
            Some(Grant {
                realm: verified.realm,
                role: verified.role,
                via,
            })
        })
    }
}

fn invalid_token() -> Refusal {
    Refusal::unauthenticated("the token is not valid")
}

#[cfg(test)]
mod tests;
