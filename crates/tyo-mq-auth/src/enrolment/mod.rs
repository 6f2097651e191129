//! Enrolment: clients ask for admission, managers look at requests and decide them.

mod requests;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use tyo_mq_protocol::events;

use crate::audit::{Actor, AuditEntry, iso8601};
use crate::document::{Mutation, TokenEntry};
use crate::effect::{Effect, Handled, Reply, push_applied};
use crate::json::{Object, Value};
use crate::names::{RealmName, Role};
use crate::refusal::Refusal;
use crate::secret::{Secret, StoredSecret};
use crate::signed::{AUTHORIZATION_FAIL, SignedEvent, Verified};
use crate::state::AuthState;

pub use requests::{
    EnrolmentRequest, MAX_PENDING, MAX_PENDING_PER_PEER, PENDING_TTL_MS, RequestError, Requests,
};

/// The longest payload of a request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// The longest name or id of a client, in bytes.
pub const MAX_CLIENT_BYTES: usize = 1024;

/// Answers a request that was taken.
pub const AUTHORIZATION_REQUEST_OK: &str = "AUTHORIZATION_REQUEST_OK";
/// Answers a request that was not taken.
pub const AUTHORIZATION_REQUEST_FAIL: &str = "AUTHORIZATION_REQUEST_FAIL";
/// Answers NEXT without an ack.
pub const AUTHORIZATION_NEXT_RESULT: &str = "AUTHORIZATION_NEXT_RESULT";
/// Answers DECIDE without an ack.
pub const AUTHORIZATION_DECIDE_RESULT: &str = "AUTHORIZATION_DECIDE_RESULT";

impl AuthState {
    /// Takes a client's request for admission. `socket` is told the decision.
    pub fn request_admission(
        &mut self,
        payload: Option<&str>,
        socket: &str,
        peer: IpAddr,
        now_ms: u64,
    ) -> Handled {
        let (reply, effects) = match self.take_request(payload, socket, peer, now_ms) {
            Ok((id, effects)) => {
                let payload = Object::new()
                    .with("ok", true)
                    .with("request_id", id)
                    .with("status", "pending");
                (Reply::ok(AUTHORIZATION_REQUEST_OK, payload), effects)
            }
            Err(refusal) => {
                let reply = Reply::refused(AUTHORIZATION_REQUEST_FAIL, &refusal);
                (reply, Vec::new())
            }
        };
        let reply = Reply {
            is_always_event: true,
            ..reply
        };
        Handled { reply, effects }
    }

    /// Shows or decides a request, as was signed. Not for [`SignedEvent::Manage`], which answers 400 here.
    pub fn handle_authorization(&mut self, verified: Verified, now_ms: u64) -> Handled {
        let mut effects = self.expire_requests(now_ms);
        let result = match verified.event {
            SignedEvent::Next => self.next_request(&verified, now_ms),
            SignedEvent::Decide => self.decide(&verified, &mut effects, now_ms),
            SignedEvent::Manage => Err(Refusal::malformed("a management command is no decision")),
        };
        if verified.event == SignedEvent::Decide {
            let id = verified.body.non_empty_str("request_id");
            let entry = AuditEntry {
                at_ms: now_ms,
                actor: verified.actor,
                action: verified.event.name().to_owned(),
                target: id.map(|id| id.chars().take(MAX_TARGET_CHARS).collect()),
                refused: result.as_ref().err().map(|refusal| refusal.code),
                is_dry_run: false,
            };
            self.audit.push(entry.clone());
            effects.push(Effect::Audit(entry));
        }
        let reply = match result {
            Ok((event, request)) => {
                let payload = Object::new().with("ok", true).with("request", request);
                Reply::ok(event, payload)
            }
            Err(refusal) => Reply::refused(AUTHORIZATION_FAIL, &refusal),
        };
        Handled { reply, effects }
    }

    /// Forgets requests that waited too long.
    pub(crate) fn expire_requests(&mut self, now_ms: u64) -> Vec<Effect> {
        let expired = self.requests.expire(now_ms).into_iter();
        expired.map(|id| Effect::DropRequest { id }).collect()
    }

    fn take_request(
        &mut self,
        payload: Option<&str>,
        socket: &str,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<(String, Vec<Effect>), Refusal> {
        let asked = Asked::read(payload)?;
        let mut effects = self.expire_requests(now_ms);
        let signs = asked.realm.is_wildcard() && asked.role == Role::Admin;
        let mut suffix = [0; 6];
        self.entropy.fill(&mut suffix);
        let request = EnrolmentRequest {
            id: EnrolmentRequest::new_id(now_ms, suffix),
            token: self.document.storable(&asked.token, signs),
            realm: asked.realm,
            role: asked.role,
            client_id: asked.client_id,
            client_name: asked.client_name,
            challenge_response: asked.challenge_response,
            created_ms: now_ms,
            socket: Some(socket.to_owned()),
            peer: Some(peer),
        };
        let id = request.id.clone();
        let json = request.to_stored();
        let superseded = self
            .requests
            .insert(request)
            .map_err(|error| Refusal::too_many(error.to_string()))?;
        effects.extend(superseded.map(|id| Effect::DropRequest { id }));
        effects.push(Effect::KeepRequest {
            id: id.clone(),
            json,
        });
        Ok((id, effects))
    }

    fn next_request(
        &self,
        verified: &Verified,
        now_ms: u64,
    ) -> Result<(&'static str, Value), Refusal> {
        let realm = match verified.body.get("realm") {
            Some(realm) if realm.is_truthy() => {
                let name = realm.as_str().and_then(RealmName::new);
                Some(name.ok_or_else(|| Refusal::malformed("realm is no name of a realm"))?)
            }
            _ => None,
        };
        let mut pending = self.requests.pending(realm.as_ref(), now_ms);
        let request = pending.next().map(EnrolmentRequest::to_public);
        Ok((AUTHORIZATION_NEXT_RESULT, request.into()))
    }

    fn decide(
        &mut self,
        verified: &Verified,
        effects: &mut Vec<Effect>,
        now_ms: u64,
    ) -> Result<(&'static str, Value), Refusal> {
        let not_found = || Refusal::not_found("there is no such pending request");
        let id = verified.body.non_empty_str("request_id");
        let id = id.ok_or_else(not_found)?;
        let request = self.requests.get(id, now_ms).ok_or_else(not_found)?.clone();
        let approved = verified.body.get("approved").and_then(Value::as_bool);
        let decided = match approved {
            Some(true) => self.approve(request, verified, effects, now_ms)?,
            Some(false) => reject(request, &verified.body, effects, now_ms)?,
            None => return Err(Refusal::malformed("approved must be true or false")),
        };
        let id = id.to_owned();
        self.requests.remove(&id);
        effects.push(Effect::DropRequest { id });
        Ok((AUTHORIZATION_DECIDE_RESULT, decided.into()))
    }

    fn approve(
        &mut self,
        mut request: EnrolmentRequest,
        verified: &Verified,
        effects: &mut Vec<Effect>,
        now_ms: u64,
    ) -> Result<Object, Refusal> {
        request.role = decided_role(&verified.body, request.role)?;
        let is_global = matches!(verified.actor, Actor::Global(_));
        if !is_global && request.role.is_elevated() {
            let message = format!("only the global admin gives role '{}'", request.role);
            return Err(Refusal::forbidden(message));
        }
        let entry = request.to_token(now_ms)?;
        match self.document.token(entry.hash()) {
            Some(old) if old.realm != entry.realm || old.role != entry.role => {
                return Err(Refusal::conflict("this token is in use with another grant"));
            }
            Some(_) => {}
            None => {
                let applied = self.document.apply([Mutation::PutToken(entry)]);
                let applied = applied.map_err(|error| Refusal::malformed(error.to_string()))?;
                push_applied(effects, applied);
                self.validations.forget();
            }
        }
        let payload = Object::new()
            .with("request_id", request.id.as_str())
            .with("realm", request.realm.as_str())
            .with("role", request.role.as_str());
        notify(&request, events::AUTHORIZATION_APPROVED, payload, effects);
        Ok(request.to_decided("approved", None, now_ms))
    }
}

fn reject(
    request: EnrolmentRequest,
    body: &Object,
    effects: &mut Vec<Effect>,
    now_ms: u64,
) -> Result<Object, Refusal> {
    let reason = match body.get("reason") {
        None | Some(Value::Null) => None,
        Some(reason) => {
            let text = reason
                .as_str()
                .filter(|text| text.len() <= MAX_CLIENT_BYTES);
            Some(text.ok_or_else(|| Refusal::malformed("reason must be a short text"))?)
        }
    };
    let reason = reason.filter(|reason| !reason.is_empty());
    let payload = Object::new()
        .with("request_id", request.id.as_str())
        .with("reason", reason);
    notify(&request, events::AUTHORIZATION_REJECTED, payload, effects);
    Ok(request.to_decided("rejected", reason, now_ms))
}

fn decided_role(body: &Object, requested: Role) -> Result<Role, Refusal> {
    match body.get("role") {
        None | Some(Value::Null) => Ok(requested),
        Some(role) if role.as_str() == Some("") => Ok(requested),
        Some(role) => role
            .as_str()
            .and_then(Role::known)
            .ok_or_else(|| Refusal::malformed("role is none that can be given")),
    }
}

fn notify(
    request: &EnrolmentRequest,
    event: &'static str,
    payload: Object,
    effects: &mut Vec<Effect>,
) {
    if let Some(socket) = request.socket.clone() {
        effects.push(Effect::Notify {
            socket,
            event,
            payload: Value::from(payload).to_json(),
        });
    }
}

impl EnrolmentRequest {
    fn to_token(&self, now_ms: u64) -> Result<TokenEntry, Refusal> {
        let mut entry = TokenEntry::new(self.token.clone(), self.realm.clone(), self.role.clone());
        if entry.is_global_admin() && matches!(entry.secret, StoredSecret::Hashed(_)) {
            return Err(Refusal::conflict(
                "an admin's token signs and must have been asked for as such",
            ));
        }
        entry.client_id = Some(self.client_id.as_str().into());
        entry.client_name = Some(self.client_name.as_str().into());
        entry.set_extra("approved_at", iso8601(now_ms));
        Ok(entry)
    }
}

/// What a client asks for.
struct Asked {
    realm: RealmName,
    role: Role,
    client_id: String,
    client_name: String,
    token: Secret,
    challenge_response: Value,
}

impl Asked {
    fn read(payload: Option<&str>) -> Result<Self, Refusal> {
        let unreadable = || Refusal::malformed("the request cannot be read");
        let payload = payload.unwrap_or("{}");
        if payload.len() > MAX_REQUEST_BYTES {
            return Err(Refusal::malformed("the request is too large"));
        }
        let mut value = Value::parse(payload).map_err(|_| unreadable())?;
        if let Value::Text(text) = &value {
            let inner = text.as_str().and_then(|text| Value::parse(text).ok());
            value = inner.ok_or_else(unreadable)?;
        }
        let Value::Object(mut fields) = value else {
            return Err(missing());
        };
        let challenge_response = fields
            .remove("challenge_response")
            .or_else(|| fields.remove("challengeResponse"));
        let role = fields.get("role").and_then(Value::as_str);
        Ok(Self {
            realm: RealmName::new(text(&fields, "realm")?).ok_or_else(missing)?,
            role: role.and_then(Role::known).unwrap_or(Role::Both),
            client_id: text(&fields, "client_id")?.to_owned(),
            client_name: text(&fields, "client_name")?.to_owned(),
            token: fields
                .non_empty_str("client_token")
                .map(Secret::new)
                .ok_or_else(missing)?,
            challenge_response: challenge_response.unwrap_or(Value::Null),
        })
    }
}

fn text<'a>(fields: &'a Object, name: &str) -> Result<&'a str, Refusal> {
    fields
        .get(name)
        .and_then(Value::as_str)
        .filter(|text| text.len() <= MAX_CLIENT_BYTES && !text.chars().any(char::is_control))
        .ok_or_else(missing)
}

fn missing() -> Refusal {
    Refusal::malformed("a request needs realm, client_id, client_name and client_token")
}

const MAX_TARGET_CHARS: usize = 256;
