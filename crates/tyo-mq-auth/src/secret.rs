//! Secrets and their digests: never shown, compared in constant time.

use std::fmt;

use ring::{digest, hmac};

/// A token, key or password. `Debug` does not show it and it has no `Display`.
#[derive(Clone)]
pub struct Secret(Box<str>);

/// The SHA-256 of a secret: names it without telling it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretHash([u8; 32]);

/// A secret that is only compared: kept as it is, or as its digest.
#[derive(Clone, Debug)]
pub enum StoredSecret {
    /// As it is; the reference writes them so.
    Plain(Secret),
    /// Its digest.
    Hashed(SecretHash),
}

impl Secret {
    /// The longest token or key that is looked at, in bytes.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Takes a text as a secret.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The secret itself. For signing, comparing and storing only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Its digest.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }

    /// Whether a presented text is this secret, in constant time.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        self.hash().matches(presented)
    }

    /// The secret as an HMAC-SHA256 key.
    pub(crate) fn hmac_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes())
    }
}

impl SecretHash {
    /// The digest of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    /// Reads 64 hexadecimal digits of either case.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        decode_hex(hex).map(Self)
    }

    /// As 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn to_hex(self) -> String {
        encode_hex(&self.0)
    }

    /// The first 12 digits, for logs.
    #[must_use]
    pub fn short(self) -> String {
        encode_hex(&self.0[..6])
    }

    /// Whether a presented text has this digest, in constant time.
    #[must_use]
    pub fn matches(self, presented: &str) -> bool {
        constant_time_eq(&self.0, &Self::of(presented).0)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A digest that was kept as bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl StoredSecret {
    /// The digest of the secret.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        match self {
            Self::Plain(secret) => secret.hash(),
            Self::Hashed(hash) => *hash,
        }
    }

    /// Whether a presented text is the secret, in constant time.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        self.hash().matches(presented)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        constant_time_eq(&self.hash().0, &other.hash().0)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretHash({}..)", self.short())
    }
}

/// Writes lower-case hexadecimal digits.
pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 0xF)]));
    }
    out
}

/// Reads exactly `N` bytes of hexadecimal digits.
pub(crate) fn decode_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let digits = hex.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = (high << 4 | low) as u8;
    }
    Some(bytes)
}

/// Compares digests. The tag check of an HMAC is the constant-time comparison that ring offers.
fn constant_time_eq(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"tyo-mq digest comparison");
    let tag = hmac::sign(&key, a);
    hmac::verify(&key, b, tag.as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let secret = Secret::new("hunter2");
        let stored = StoredSecret::Plain(secret.clone());
        assert!(!format!("{secret:?} {stored:?} {:?}", secret.hash()).contains("hunter2"));
    }

    #[test]
    fn comparison() {
        for stored in [
            StoredSecret::Plain(Secret::new("hunter2")),
            StoredSecret::Hashed(SecretHash::of("hunter2")),
        ] {
            assert!(stored.matches("hunter2"));
            for wrong in [
                "",
                "hunter",
                "hunter22",
                "Hunter2",
                &SecretHash::of("hunter2").to_hex(),
            ] {
                assert!(!stored.matches(wrong));
            }
        }
    }

    #[test]
    fn hexadecimal() {
        let hash = SecretHash::of("probe-acme-both");
        let hex = "1a439448cfba69b38b4f5ab702a37869f437133df562ee8822e09d30a2749c8f";
        assert_eq!(hash.to_hex(), hex);
        assert_eq!(SecretHash::from_hex(&hex.to_uppercase()), Some(hash));
        for bad in [
            "",
            "00",
            &hex[1..],
            &format!("{hex}00"),
            &hex.replace('f', "g"),
            &"é".repeat(32),
        ] {
            assert_eq!(SecretHash::from_hex(bad), None);
        }
    }
}
