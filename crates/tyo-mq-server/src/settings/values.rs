//! Values of settings that know their bounds and units.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// Milliseconds, at least 1 and at most a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// As a duration.
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        if !(1.0..=MAX_MS).contains(&value) {
            return Err(D::Error::custom(format!(
                "expected milliseconds from 1 to {MAX_MS}, found {value}"
            )));
        }
        Ok(Self(value as u64))
    }
}

/// A number, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PositiveCount(pub usize);

impl<'de> Deserialize<'de> for PositiveCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match usize::deserialize(deserializer)? {
            0 => Err(D::Error::custom("expected a number of at least 1, found 0")),
            count => Ok(Self(count)),
        }
    }
}

/// A time in seconds, or text with a unit: `250ms`, `90s`, `15m`, `2h`, `7d`, `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds {
    ms: Option<u64>,
}

impl Seconds {
    /// So many milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self { ms: Some(ms) }
    }

    /// Milliseconds; `None` is for ever.
    pub fn ms(self) -> Option<u64> {
        self.ms
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.ms {
            None => serializer.serialize_i64(-1),
            Some(ms) if ms % 1000 == 0 => serializer.serialize_u64(ms / 1000),
            Some(ms) => serializer.serialize_f64(ms as f64 / 1000.0),
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondsVisitor)
    }
}

struct SecondsVisitor;

impl Visitor<'_> for SecondsVisitor {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds, or text such as \"250ms\", \"90s\", \"15m\", \"2h\", \"7d\" or \"never\"")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Seconds, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Seconds, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Seconds, E> {
        if value < 0.0 {
            return Ok(Seconds { ms: None });
        }
        Ok(Seconds::from_ms(
            (value * 1000.0).min(MAX_MS * 1000.0) as u64
        ))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Seconds, E> {
        let raw = serde_json::to_string(value).map_err(E::custom)?;
        match tyo_mq_protocol::parse_ttl(&raw) {
            Some(tyo_mq_protocol::Ttl::Never) => Ok(Seconds { ms: None }),
            Some(tyo_mq_protocol::Ttl::Millis(ms)) => Ok(Seconds::from_ms(ms)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(value), &self)),
        }
    }
}

/// A year.
const MAX_MS: f64 = 366.0 * 86_400_000.0;
