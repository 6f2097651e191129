//! Signed proofs: HMAC-SHA256 over action, time, nonce and the canonical body, each good once.

use ring::hmac;

use crate::json::{Object, Style, Value, write_number};
use crate::secret::{Secret, SecretHash, decode_hex, encode_hex};

/// The longest signed payload, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;

/// The longest nonce, in characters.
pub const MAX_NONCE_CHARS: usize = 128;

/// Why a payload carries no proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// There is none: no object, or no nonce.
    #[error("proof is missing")]
    Missing,
    /// A field has another type or form than it must have.
    #[error("proof is malformed")]
    Malformed,
    /// The payload is longer than [`MAX_PAYLOAD_BYTES`].
    #[error("payload is too large")]
    TooLarge,
}

/// A payload that says it was signed.
pub struct SignedPayload {
    /// What was signed.
    pub body: Object,
    proof: Proof,
}

struct Proof {
    timestamp_ms: f64,
    nonce: String,
    signature: [u8; 32],
}

impl SignedPayload {
    /// Reads `{body, proof}`. The payload must be the object itself: a string that holds one has no proof.
    ///
    /// # Errors
    /// When there is no proof, or none that could ever hold.
    pub fn parse(payload: Option<&str>) -> Result<Self, ProofError> {
        let payload = payload.ok_or(ProofError::Missing)?;
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(ProofError::TooLarge);
        }
        let Ok(Value::Object(mut payload)) = Value::parse(payload) else {
            return Err(ProofError::Missing);
        };
        let body = match payload.remove("body") {
            Some(Value::Object(body)) => body,
            Some(body) if body.is_truthy() => return Err(ProofError::Malformed),
            _ => Object::new(),
        };
        let proof = payload.get("proof").and_then(Value::as_object);
        Ok(Self {
            proof: Proof::read(proof.ok_or(ProofError::Missing)?)?,
            body,
        })
    }

    /// The time at which it says it was signed, in milliseconds since 1970.
    #[must_use]
    pub fn timestamp_ms(&self) -> f64 {
        self.proof.timestamp_ms
    }

    /// Its nonce.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.proof.nonce
    }

    /// The digest of the first secret that signed this for `action`. Time and nonce are not looked at.
    pub fn signer<'s>(
        &self,
        action: &str,
        secrets: impl IntoIterator<Item = &'s Secret>,
    ) -> Option<SecretHash> {
        let bases = self.bases(action);
        secrets.into_iter().find_map(|secret| {
            let key = secret.hmac_key();
            let signed = |base: &Vec<u8>| hmac::verify(&key, base, &self.proof.signature).is_ok();
            bases.iter().any(signed).then(|| secret.hash())
        })
    }

    /// What may have been signed: JavaScript's form, and Go's where it is another.
    fn bases(&self, action: &str) -> Vec<Vec<u8>> {
        let body = Value::Object(self.body.clone());
        let mut bases: Vec<_> = [Style::JavaScript, Style::HtmlEscaped]
            .map(|style| {
                base(
                    action,
                    self.proof.timestamp_ms,
                    &self.proof.nonce,
                    &body,
                    style,
                )
            })
            .into();
        bases.dedup();
        bases
    }
}

impl std::fmt::Debug for SignedPayload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignedPayload(..)")
    }
}

impl Proof {
    fn read(proof: &Object) -> Result<Self, ProofError> {
        let nonce = match proof.get("nonce") {
            Some(nonce) if nonce.is_truthy() => nonce.as_str().ok_or(ProofError::Malformed)?,
            _ => return Err(ProofError::Missing),
        };
        if nonce.chars().count() > MAX_NONCE_CHARS {
            return Err(ProofError::Malformed);
        }
        let timestamp_ms = proof.get("timestamp").and_then(timestamp);
        let signature = proof.get("signature").and_then(Value::as_str);
        Ok(Self {
            timestamp_ms: timestamp_ms.ok_or(ProofError::Malformed)?,
            nonce: nonce.to_owned(),
            signature: signature
                .and_then(decode_hex)
                .ok_or(ProofError::Malformed)?,
        })
    }
}

/// Signs a body, as a manager's program does: the complete payload.
#[must_use]
pub fn sign(
    secret: &Secret,
    action: &str,
    timestamp_ms: u64,
    nonce: &str,
    body: &Object,
) -> Object {
    let body = Value::Object(body.clone());
    let base = base(action, timestamp_ms as f64, nonce, &body, Style::JavaScript);
    let signature = hmac::sign(&secret.hmac_key(), &base);
    let proof = Object::new()
        .with("timestamp", timestamp_ms)
        .with("nonce", nonce)
        .with("signature", encode_hex(signature.as_ref()));
    Object::new().with("body", body).with("proof", proof)
}

fn base(action: &str, timestamp_ms: f64, nonce: &str, body: &Value, style: Style) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(action.as_bytes());
    out.push(b'\n');
    write_number(&mut out, timestamp_ms);
    out.push(b'\n');
    out.extend_from_slice(nonce.as_bytes());
    out.push(b'\n');
    body.write_canonical(&mut out, style);
    out
}

/// A number, or a string of decimal digits.
fn timestamp(value: &Value) -> Option<f64> {
    let digits = |text: &&str| {
        (1..=MAX_TIMESTAMP_DIGITS).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    value
        .as_number()
        .or_else(|| value.as_str().filter(digits)?.parse().ok())
        .filter(|number| number.is_finite())
}

const MAX_TIMESTAMP_DIGITS: usize = 16;

#[cfg(test)]
mod tests;
