//! One request to the broker: signed, sent on a connection of its own, its answer read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tyo_mq_auth::SignedEvent;
use tyo_mq_auth::entropy::{Entropy, SystemEntropy};
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::management::is_realm_command;
use tyo_mq_auth::proof::sign;
use tyo_mq_auth::secret::Secret;
use tyo_mq_client::{Client, Options, RawValue, Reply};

use crate::exit::Failure;
use crate::target::Target;

/// Something to ask the broker for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    event: SignedEvent,
    body: Object,
}

impl Request {
    /// A management command.
    pub(crate) fn command(name: &str) -> Self {
        Self {
            event: SignedEvent::Manage,
            body: Object::new().with("command", name),
        }
    }

    /// The next request for admission.
    pub(crate) fn next() -> Self {
        Self {
            event: SignedEvent::Next,
            body: Object::new(),
        }
    }

    /// A decision.
    pub(crate) fn decide(request_id: &str, approved: bool) -> Self {
        let body = Object::new()
            .with("request_id", request_id)
            .with("approved", approved);
        Self {
            event: SignedEvent::Decide,
            body,
        }
    }

    /// With a field.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body.set(name, value);
        self
    }

    /// With a field, if it has a value.
    #[must_use]
    pub(crate) fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// What is asked for.
    pub(crate) fn body(&self) -> &Object {
        &self.body
    }

    /// Whether it is a management command, which the broker can try out.
    pub(crate) fn is_command(&self) -> bool {
        self.event == SignedEvent::Manage
    }

    /// Whether a realm's manager may sign it.
    fn is_realms(&self) -> bool {
        match self.event {
            SignedEvent::Next => self.body.non_empty_str("realm").is_some(),
            SignedEvent::Decide => true,
            SignedEvent::Manage => {
                let command = self.body.non_empty_str("command");
                command.is_some_and(is_realm_command) && self.body.non_empty_str("realm").is_some()
            }
        }
    }
}

/// Sends a request and reads its answer.
pub(crate) async fn send(
    target: &Target,
    patience: Duration,
    request: &Request,
) -> Result<Object, Failure> {
    let secret = if request.is_realms() {
        target.realm_signer()?
    } else {
        target.admin_token()?
    };
    let action = request.event.name();
    let payload = signed(&secret, action, &request.body);
    let client = connect(target, patience).await?;
    let reply = client.emit_with_ack(action, &raw(payload), patience).await;
    client.close().await;
    accepted(&reply?)
}

/// Connects, with little patience.
pub(crate) async fn connect(target: &Target, patience: Duration) -> Result<Client, Failure> {
    let options = Options {
        trust: target.trust.clone(),
        connect_timeout: patience,
        call_timeout: patience,
        ..Options::default()
    };
    let connected = Client::connect(&target.url, options).await;
    connected.map_err(|error| Failure::from(error).of_broker(&target.url))
}

/// An object as a payload.
pub(crate) fn raw(payload: Object) -> Box<RawValue> {
    let json = Value::from(payload).to_json();
    RawValue::from_string(json).expect("an object is written as JSON")
}

/// An answer that says `ok: true`.
pub(crate) fn accepted(reply: &Reply) -> Result<Object, Failure> {
    let Ok(Value::Object(answer)) = Value::parse(reply.json()) else {
        return Err(Failure::Local("the broker's answer is empty".to_owned()));
    };
    if answer.get("ok").is_some_and(Value::is_truthy) {
        return Ok(answer);
    }
    let code = answer.get("code").and_then(Value::as_number);
    let message = answer.non_empty_str("message").unwrap_or("no reason given");
    Err(Failure::Refused {
        code: code.map_or(0, |code| code as i32),
        message: message.to_owned(),
    })
}

/// Signs a body for now.
pub(crate) fn signed(secret: &Secret, action: &str, body: &Object) -> Object {
    sign(secret, action, now_ms(), &random_hex(16), body)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// So many random bytes in hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0; bytes];
    SystemEntropy::new().fill(&mut buffer);
    buffer.iter().map(|byte| format!("{byte:02x}")).collect()
}
