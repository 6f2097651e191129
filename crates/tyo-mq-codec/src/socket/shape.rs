//! What the JSON of a packet must look like, found out without building it and without recursion.

use serde_json::value::RawValue;

use super::PacketError;

/// What an event packet's data turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventShape {
    /// An array that begins with a name of the peer's choice.
    Named,
    /// No data, or an array that begins with a number: legal, and nobody listens.
    Nameless,
}

/// Looks at the beginning of an event's data: an array whose first element is a name.
/// The rest of the text is not read; see [`check_json`].
///
/// # Errors
/// [`PacketError::Shape`] for anything else, [`PacketError::ReservedName`] for the protocol's own names,
/// [`PacketError::Json`] when the name does not end.
pub fn event_shape(data: &str) -> Result<EventShape, PacketError> {
    if data.is_empty() {
        return Ok(EventShape::Nameless);
    }
    let bytes = data.as_bytes();
    let open = skip_space(bytes, 0);
    if bytes.get(open) != Some(&b'[') {
        return Err(PacketError::Shape);
    }
    let start = skip_space(bytes, open + 1);
    match bytes.get(start) {
        Some(b'"') => {
            let end = string_end(bytes, start).ok_or(PacketError::Json)?;
            if is_reserved(&data[start..end]) {
                return Err(PacketError::ReservedName);
            }
            Ok(EventShape::Named)
        }
        Some(b'-' | b'0'..=b'9') => Ok(EventShape::Nameless),
        _ => Err(PacketError::Shape),
    }
}

/// Checks that the text is one JSON value. Depth costs a byte a level, not the stack; lone surrogate
/// escapes and numbers beyond any float pass.
///
/// # Errors
/// [`PacketError::Json`] when it is not.
pub fn check_json(data: &str) -> Result<(), PacketError> {
    match serde_json::from_str::<&RawValue>(data) {
        Ok(_) => Ok(()),
        Err(_) => Err(PacketError::Json),
    }
}

/// Checks that the text is a JSON value that begins with the given bracket.
pub(super) fn check_opens_with(data: &str, bracket: u8) -> Result<(), PacketError> {
    let bytes = data.as_bytes();
    if bytes.get(skip_space(bytes, 0)) != Some(&bracket) {
        return Err(PacketError::Shape);
    }
    check_json(data)
}

/// The index of the first byte at or after `at` that is no JSON white space.
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The index behind the closing quote of the string whose opening quote is at `start`.
pub(super) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let found = memchr::memchr2(b'"', b'\\', bytes.get(at..)?)? + at;
        if bytes[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// Whether a JSON string (with its quotes) spells the plain text, escapes resolved.
pub(super) fn spells(raw: &str, plain: &str) -> bool {
    if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
        return raw.len() == plain.len() + 2 && raw[1..].starts_with(plain);
    }
    raw.len() <= plain.len() * LONGEST_ESCAPE + 2
        && serde_json::from_str::<String>(raw).is_ok_and(|text| text == plain)
}

fn is_reserved(raw: &str) -> bool {
    if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
        return RESERVED.contains(&&raw[1..raw.len() - 1]);
    }
    RESERVED.iter().any(|name| spells(raw, name))
}

/// Names that either side's own life cycle uses; no peer may send them as events.
const RESERVED: [&str; 6] = [
    "connect",
    "connect_error",
    "disconnect",
    "disconnecting",
    "newListener",
    "removeListener",
];

/// Characters that one escaped character of a JSON string takes at the most: `\u0063`.
const LONGEST_ESCAPE: usize = 6;
