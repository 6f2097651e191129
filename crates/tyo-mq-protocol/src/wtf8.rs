//! Strings that JavaScript may hold and UTF-8 may not: halves of surrogate pairs, kept as three bytes each until they meet.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

/// The content of a JSON string, escapes resolved, lone surrogates kept.
pub(crate) fn unescape(raw: &str) -> Option<Cow<'_, [u8]>> {
    serde_json::from_str::<Wtf8<'_>>(raw)
        .ok()
        .map(|Wtf8(bytes)| bytes)
}

/// Appends a piece; halves of a pair that meet at the seam become one character.
pub(crate) fn append(text: &mut Vec<u8>, piece: &[u8]) {
    if let (Some(&[0xED, a @ 0xA0..=0xAF, b]), Some(&[0xED, c @ 0xB0..=0xBF, d])) =
        (text.last_chunk::<3>(), piece.first_chunk::<3>())
    {
        let units = [surrogate(a, b), surrogate(c, d)];
        if let Some(Ok(joined)) = char::decode_utf16(units).next() {
            text.truncate(text.len() - 3);
            text.extend_from_slice(joined.encode_utf8(&mut [0; 4]).as_bytes());
            text.extend_from_slice(&piece[3..]);
            return;
        }
    }
    text.extend_from_slice(piece);
}

/// The text, which is JSON's, with every lone surrogate as the escape that JSON has for it.
/// None when it is no text all the same. Where an escape would not mean the surrogate (behind a backslash), none too.
pub(crate) fn into_json_text(bytes: Vec<u8>) -> Option<String> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Some(text),
        Err(error) => error.into_bytes(),
    };
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 8);
    let mut escaped = false;
    let mut rest = &bytes[..];
    while let Some((&byte, tail)) = rest.split_first() {
        if let [0xED, high @ 0xA0..=0xBF, low @ 0x80..=0xBF, tail @ ..] = rest {
            if escaped {
                return None;
            }
            push_surrogate(&mut out, surrogate(*high, *low));
            rest = tail;
            continue;
        }
        escaped = byte == b'\\' && !escaped;
        out.push(byte);
        rest = tail;
    }
    String::from_utf8(out).ok()
}

/// The UTF-16 units of a text.
pub(crate) fn units(text: &[u8]) -> impl Iterator<Item = u16> {
    text.chunk_by(|_, next| next & 0xC0 == 0x80)
        .flat_map(|bytes| {
            let code = match *bytes {
                [0xED, high @ 0xA0..=0xBF, low] => u32::from(surrogate(high, low)),
                _ => std::str::from_utf8(bytes)
                    .ok()
                    .and_then(|text| text.chars().next())
                    .map_or(u32::from(char::REPLACEMENT_CHARACTER), u32::from),
            };
            let pair = char::from_u32(code)
                .filter(|c| c.len_utf16() == 2)
                .map(|c| {
                    let mut units = [0; 2];
                    c.encode_utf16(&mut units);
                    units
                });
            let [first, second] = pair.map_or([Some(code as u16), None], |units| units.map(Some));
            first.into_iter().chain(second)
        })
}

/// Writes the escape `\udXXX`.
pub(crate) fn push_surrogate(out: &mut Vec<u8>, unit: u16) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEX[usize::from(unit >> shift & 0xF)]);
    }
}

fn surrogate(high: u8, low: u8) -> u16 {
    0xD000 | u16::from(high & 0x3F) << 6 | u16::from(low & 0x3F)
}

struct Wtf8<'a>(Cow<'a, [u8]>);

impl<'de> Deserialize<'de> for Wtf8<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_bytes(Wtf8Visitor)
    }
}

struct Wtf8Visitor;

impl<'de> Visitor<'de> for Wtf8Visitor {
    type Value = Wtf8<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Wtf8(Cow::Borrowed(bytes)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Wtf8(Cow::Owned(bytes.to_owned())))
    }
}
