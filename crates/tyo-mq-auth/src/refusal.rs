//! A refusal: a code and words. The words are ours; clients go by the code.

use crate::json::{Object, Value};

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// The code on the wire: 400, 401, 403, 404, 409, 413, 429, 500, 501, 503.
    pub code: u16,
    /// For people. Names things, never a secret.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(401, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, message)
    }

    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        Self::new(429, message)
    }

    /// The payload of `AUTH_FAIL`.
    #[must_use]
    pub fn to_auth_fail(&self) -> String {
        let payload = Object::new()
            .with("code", u64::from(self.code))
            .with("message", self.message.as_str());
        Value::from(payload).to_json()
    }

    /// The payload of an ack or of an event of failure: `{ok: false, code, message}`.
    #[must_use]
    pub fn to_answer(&self) -> String {
        let payload = Object::new()
            .with("ok", false)
            .with("code", u64::from(self.code))
            .with("message", self.message.as_str());
        Value::from(payload).to_json()
    }
}
