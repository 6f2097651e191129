//! Requests that wait for a decision: bounded in number and time, one for each client of a realm.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use crate::audit::iso8601;
use crate::document::token::push_stored;
use crate::json::{Object, Value};
use crate::names::{RealmName, Role};
use crate::secret::{Secret, SecretHash, StoredSecret, encode_hex};

/// The most requests that wait.
pub const MAX_PENDING: usize = 10_000;
/// The most requests of one address that wait.
pub const MAX_PENDING_PER_PEER: usize = 1000;
/// How long a request waits, in milliseconds: seven days.
pub const PENDING_TTL_MS: u64 = 7 * 24 * 3_600_000;

/// A client's request for admission.
#[derive(Debug, Clone)]
pub struct EnrolmentRequest {
    /// Its id.
    pub id: String,
    /// The realm.
    pub realm: RealmName,
    /// The role.
    pub role: Role,
    /// Who asks.
    pub client_id: String,
    /// What they call themselves.
    pub client_name: String,
    /// The token that is to be let in.
    pub token: StoredSecret,
    /// What a manager may want to see.
    pub challenge_response: Value,
    /// When it came, in milliseconds since 1970.
    pub created_ms: u64,
    /// The socket that asks, while it is known.
    pub socket: Option<String>,
    /// The address that asks, while it is known.
    pub peer: Option<IpAddr>,
}

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Too many wait.
    #[error("too many requests are pending")]
    Full,
    /// Too many of this address wait.
    #[error("too many requests of this address are pending")]
    PeerFull,
}

/// The requests that wait, the oldest first.
#[derive(Debug)]
pub struct Requests {
    by_number: BTreeMap<u64, EnrolmentRequest>,
    by_id: HashMap<String, u64>,
    by_client: HashMap<(RealmName, String), u64>,
    by_peer: HashMap<IpAddr, usize>,
    next_number: u64,
    max: usize,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            by_number: BTreeMap::new(),
            by_id: HashMap::new(),
            by_client: HashMap::new(),
            by_peer: HashMap::new(),
            next_number: 0,
            max: MAX_PENDING,
        }
    }
}

impl Requests {
    /// Sets how many may wait, at most [`MAX_PENDING`].
    pub fn set_max(&mut self, max: usize) {
        self.max = max.min(MAX_PENDING);
    }

    /// The number of requests that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// The request of an id, while it waits.
    #[must_use]
    pub fn get(&self, id: &str, now_ms: u64) -> Option<&EnrolmentRequest> {
        self.by_number
            .get(self.by_id.get(id)?)
            .filter(|request| !request.is_expired(now_ms))
    }

    /// The requests that wait, of a realm or of all, the oldest first.
    pub fn pending(
        &self,
        realm: Option<&RealmName>,
        now_ms: u64,
    ) -> impl Iterator<Item = &EnrolmentRequest> {
        self.by_number.values().filter(move |request| {
            !request.is_expired(now_ms) && realm.is_none_or(|realm| request.realm == *realm)
        })
    }

    /// Takes a request. An older one of the same client in the same realm makes room; its id is returned.
    ///
    /// # Errors
    /// When too many wait.
    pub fn insert(
        &mut self,
        request: EnrolmentRequest,
    ) -> Result<impl Iterator<Item = String> + use<>, RequestError> {
        let client = (request.realm.clone(), request.client_id.clone());
        let older = self.by_client.get(&client).copied();
        if older.is_none() && self.by_number.len() >= self.max {
            return Err(RequestError::Full);
        }
        let of_peer = request.peer.and_then(|peer| self.by_peer.get(&peer));
        if older.is_none() && of_peer.is_some_and(|count| *count >= MAX_PENDING_PER_PEER) {
            return Err(RequestError::PeerFull);
        }
        let superseded = older.and_then(|number| self.take(number));
        self.next_number += 1;
        let number = self.next_number;
        self.by_id.insert(request.id.clone(), number);
        self.by_client.insert(client, number);
        if let Some(peer) = request.peer {
            *self.by_peer.entry(peer).or_default() += 1;
        }
        self.by_number.insert(number, request);
        Ok(superseded.map(|request| request.id).into_iter())
    }

    /// Takes a request out.
    pub fn remove(&mut self, id: &str) -> Option<EnrolmentRequest> {
        let number = *self.by_id.get(id)?;
        self.take(number)
    }

    /// Takes the requests out that waited too long, and tells their ids.
    pub fn expire(&mut self, now_ms: u64) -> Vec<String> {
        let expired: Vec<u64> = self
            .by_number
            .iter()
            .take_while(|(_, request)| request.is_expired(now_ms))
            .map(|(number, _)| *number)
            .collect();
        let taken = expired.into_iter().filter_map(|number| self.take(number));
        taken.map(|request| request.id).collect()
    }

    /// When the oldest request has waited too long, in milliseconds since 1970.
    #[must_use]
    pub fn next_expiry_ms(&self) -> Option<u64> {
        let (_, oldest) = self.by_number.first_key_value()?;
        Some(oldest.created_ms.saturating_add(PENDING_TTL_MS))
    }

    /// Gives a realm's requests its new name, and tells which are to be kept anew.
    pub(crate) fn rename_realm(
        &mut self,
        from: &RealmName,
        to: &RealmName,
    ) -> Vec<(String, Secret)> {
        let mut renamed = Vec::new();
        for (number, request) in &mut self.by_number {
            if request.realm == *from {
                request.realm = to.clone();
                let client = request.client_id.clone();
                self.by_client.remove(&(from.clone(), client.clone()));
                self.by_client.insert((to.clone(), client), *number);
                renamed.push((request.id.clone(), request.to_stored()));
            }
        }
        renamed
    }

    fn take(&mut self, number: u64) -> Option<EnrolmentRequest> {
        let request = self.by_number.remove(&number)?;
        self.by_id.remove(&request.id);
        let client = (request.realm.clone(), request.client_id.clone());
        if self.by_client.get(&client) == Some(&number) {
            self.by_client.remove(&client);
        }
        if let Some(peer) = request.peer
            && let Some(count) = self.by_peer.get_mut(&peer)
        {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&peer);
            }
        }
        Some(request)
    }
}

impl EnrolmentRequest {
    /// A new id: the time in base 36 and six random bytes.
    #[must_use]
    pub fn new_id(now_ms: u64, random: [u8; 6]) -> String {
        format!("authreq-{}-{}", base36(now_ms), encode_hex(&random))
    }

    /// As managers see it.
    #[must_use]
    pub fn to_public(&self) -> Object {
        self.public("pending", None, None)
    }

    /// As managers see it once it is decided.
    pub(super) fn to_decided(&self, status: &str, reason: Option<&str>, now_ms: u64) -> Object {
        self.public(status, Some(iso8601(now_ms)), reason)
    }

    /// What to restore it from after a restart. Holds a token or its digest.
    #[must_use]
    pub fn to_stored(&self) -> Secret {
        let mut out = Object::new();
        out.push("request_id", self.id.as_str());
        out.push("realm", self.realm.as_str());
        out.push("role", self.role.as_str());
        out.push("client_id", self.client_id.as_str());
        out.push("client_name", self.client_name.as_str());
        push_stored(&mut out, &self.token);
        out.push("challenge_response", self.challenge_response.clone());
        out.push("created_ms", self.created_ms);
        Secret::new(&Value::from(out).to_json())
    }

    /// Reads what was kept. None when it cannot be read.
    #[must_use]
    pub fn from_stored(json: &str) -> Option<Self> {
        let Ok(Value::Object(mut fields)) = Value::parse(json) else {
            return None;
        };
        let challenge_response = fields.remove("challenge_response").unwrap_or(Value::Null);
        let text = |name: &str| fields.get(name)?.as_str().map(str::to_owned);
        let token = match fields.non_empty_str("token") {
            Some(token) => StoredSecret::Plain(Secret::new(token)),
            None => StoredSecret::Hashed(SecretHash::from_hex(&text("token_hash")?)?),
        };
        Some(Self {
            id: text("request_id")?,
            realm: RealmName::new(&text("realm")?)?,
            role: Role::known(&text("role")?)?,
            client_id: text("client_id")?,
            client_name: text("client_name")?,
            token,
            challenge_response,
            // The cast saturates.
            created_ms: fields.get("created_ms")?.as_number()? as u64,
            socket: None,
            peer: None,
        })
    }

    fn is_expired(&self, now_ms: u64) -> bool {
        self.created_ms.saturating_add(PENDING_TTL_MS) <= now_ms
    }

    fn public(&self, status: &str, decided_at: Option<String>, reason: Option<&str>) -> Object {
        let mut out = Object::new();
        out.push("request_id", self.id.as_str());
        out.push("status", status);
        out.push("realm", self.realm.as_str());
        out.push("role", self.role.as_str());
        out.push("client_id", self.client_id.as_str());
        out.push("client_name", self.client_name.as_str());
        out.push("client_token_hash", self.token.hash().to_hex());
        out.push("challenge_response", self.challenge_response.clone());
        out.push("created_at", iso8601(self.created_ms));
        out.push("decided_at", decided_at);
        out.push("decision_reason", reason);
        out
    }
}

fn base36(mut number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut out = Vec::new();
    loop {
        out.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
        if number == 0 {
            return out.into_iter().rev().collect();
        }
    }
}
