//! Revision 3 polling bodies: `<length>:<packet>` text, and the form with raw bytes.
//!
//! Text lengths count UTF-16 units, what JavaScript calls a string's length; the raw form counts bytes.

use std::borrow::Cow;

use super::{Packet, PacketError, Protocol, decode_text};

/// More digits than any length within a payload limit has.
const MAX_LENGTH_DIGITS: usize = 10;
/// Ends the length in the raw form.
const RAW_LENGTH_END: u8 = 0xff;

/// UTF-16 units of a UTF-8 text.
pub fn utf16_len(text: &[u8]) -> usize {
    text.iter()
        .map(|&byte| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0))
        .sum()
}

/// The packets of a text body, in order. After an error nothing more comes.
pub fn decode_payload_v3(body: &[u8]) -> impl Iterator<Item = Result<Packet<'_>, PacketError>> {
    let (mut rest, mut next_error) = match std::str::from_utf8(body) {
        Ok("") => ("", Some(PacketError::Empty)),
        Ok(text) => (text, None),
        Err(_) => ("", Some(PacketError::Utf8)),
    };
    std::iter::from_fn(move || {
        if let Some(error) = next_error.take() {
            return Some(Err(error));
        }
        if rest.is_empty() {
            return None;
        }
        let packet = split_text(rest).and_then(|(packet, after)| {
            rest = after;
            decode_text(Protocol::V3, packet)
        });
        if packet.is_err() {
            rest = "";
        }
        Some(packet)
    })
}

/// The packets of a body in the raw form, in order. After an error nothing more comes.
pub fn decode_payload_v3_binary(
    body: &[u8],
) -> impl Iterator<Item = Result<Packet<'_>, PacketError>> {
    let mut rest = body;
    let mut empty = body.is_empty();
    std::iter::from_fn(move || {
        if std::mem::take(&mut empty) {
            return Some(Err(PacketError::Empty));
        }
        if rest.is_empty() {
            return None;
        }
        let packet = split_raw(rest).and_then(|(binary, packet, after)| {
            rest = after;
            decode_raw(binary, packet)
        });
        if packet.is_err() {
            rest = &[];
        }
        Some(packet)
    })
}

/// Appends one packet in the raw form: kind (0 text, 1 binary), decimal digits as numbers, 0xff, the bytes.
pub(crate) fn push_binary_form(body: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    body.push(kind);
    let length: usize = parts.iter().map(|part| part.len()).sum();
    body.extend(length.to_string().bytes().map(|digit| digit - b'0'));
    body.push(RAW_LENGTH_END);
    for part in parts {
        body.extend_from_slice(part);
    }
}

/// The first packet of a text body, and what comes after it.
fn split_text(body: &str) -> Result<(&str, &str), PacketError> {
    let window = &body.as_bytes()[..body.len().min(MAX_LENGTH_DIGITS + 1)];
    let colon = window
        .iter()
        .position(|&byte| byte == b':')
        .ok_or(PacketError::Length)?;
    let units = parse_length(window[..colon].iter().map(|digit| digit.wrapping_sub(b'0')))?;
    let rest = &body[colon + 1..];
    let end = utf16_boundary(rest, units).ok_or(PacketError::Length)?;
    Ok(rest.split_at(end))
}

/// Byte index where `units` UTF-16 units of `text` end, if that is between two characters.
fn utf16_boundary(text: &str, units: usize) -> Option<usize> {
    // A unit is one to three bytes, so this many bytes at least: most packets are ASCII and end right there.
    if text.as_bytes().get(..units)?.is_ascii() {
        return Some(units);
    }
    let mut seen = 0;
    for (index, character) in text.char_indices() {
        if seen >= units {
            return (seen == units).then_some(index);
        }
        seen += character.len_utf16();
    }
    (seen == units).then_some(text.len())
}

/// The first packet of a raw body (whether it is binary, its bytes), and what comes after it.
fn split_raw(body: &[u8]) -> Result<(bool, &[u8], &[u8]), PacketError> {
    let (&kind, rest) = body.split_first().ok_or(PacketError::Length)?;
    if kind > 1 {
        return Err(PacketError::Length);
    }
    let window = &rest[..rest.len().min(MAX_LENGTH_DIGITS + 1)];
    let end = window
        .iter()
        .position(|&byte| byte == RAW_LENGTH_END)
        .ok_or(PacketError::Length)?;
    let length = parse_length(window[..end].iter().copied())?;
    let (packet, after) = rest[end + 1..]
        .split_at_checked(length)
        .ok_or(PacketError::Length)?;
    Ok((kind == 1, packet, after))
}

fn decode_raw(binary: bool, packet: &[u8]) -> Result<Packet<'_>, PacketError> {
    if !binary {
        let text = std::str::from_utf8(packet).map_err(|_| PacketError::Utf8)?;
        return decode_text(Protocol::V3, text);
    }
    match packet.split_first() {
        Some((4, data)) => Ok(Packet::Binary(Cow::Borrowed(data))),
        Some((&other, _)) => Err(PacketError::UnknownType(other)),
        None => Err(PacketError::Empty),
    }
}

/// At least one digit, each below ten; [`MAX_LENGTH_DIGITS`] of them fit.
fn parse_length(digits: impl ExactSizeIterator<Item = u8>) -> Result<usize, PacketError> {
    if digits.len() == 0 || digits.len() > MAX_LENGTH_DIGITS {
        return Err(PacketError::Length);
    }
    let mut value: u64 = 0;
    for digit in digits {
        if digit > 9 {
            return Err(PacketError::Length);
        }
        value = value * 10 + u64::from(digit);
    }
    usize::try_from(value).map_err(|_| PacketError::Length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: &[Result<Packet<'_>, PacketError>]) {
        assert_eq!(
            decode_payload_v3(body.as_bytes()).collect::<Vec<_>>(),
            expected,
            "{body:?}"
        );
    }

    #[test]
    fn text_bodies() {
        check("6:4hello", &[Ok(Packet::Text("hello"))]);
        check(
            "1:22:4é4:4😀x",
            &[
                Ok(Packet::Ping("")),
                Ok(Packet::Text("é")),
                Ok(Packet::Text("😀x")),
            ],
        );
        check(
            "6:4hello10:b4AQIDBA==",
            &[
                Ok(Packet::Text("hello")),
                Ok(Packet::Binary(Cow::Borrowed(&[1, 2, 3, 4]))),
            ],
        );
    }

    #[test]
    fn malformed_text_bodies() {
        let bad = [Err(PacketError::Length)];
        for body in [
            "abc:2",
            "-1:2",
            "99999999999999999999:2",
            ":",
            "5:2",
            "::::",
            "1:",
            "18446744073709551615:4",
            "2",
            "1:😀",
        ] {
            check(body, &bad);
        }
        check("00000000000000000001:2", &bad);
        check("", &[Err(PacketError::Empty)]);
        check("0:", &[Err(PacketError::Empty)]);
        check("3:421", &[Ok(Packet::Text("21"))]);
        check("1:2::::", &[Ok(Packet::Ping("")), Err(PacketError::Length)]);
        // Half of a surrogate pair.
        check("2:4😀", &[Err(PacketError::Length)]);
    }

    #[test]
    fn malformed_raw_bodies() {
        for body in [
            &b"\x00"[..],
            b"\x00\x01\xff",
            b"\x00\xff",
            b"\x00\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\xff2",
            b"\x01\x09\x09\xff\x04\x00",
            b"\x02\xff",
            b"\xff\xff\xff\xff",
            b"\x00\x01\x0a\xff2",
        ] {
            let got: Vec<_> = decode_payload_v3_binary(body).collect();
            assert_eq!(got, [Err(PacketError::Length)], "{body:?}");
        }
        let got: Vec<_> = decode_payload_v3_binary(b"\x00\x01\xff2\x00\x01\xff").collect();
        assert_eq!(got, [Ok(Packet::Ping("")), Err(PacketError::Length)]);
        assert_eq!(
            decode_payload_v3_binary(b"").next(),
            Some(Err(PacketError::Empty))
        );
    }

    #[test]
    fn utf16_lengths() {
        for text in ["", "abc", "é", "€", "😀", "a😀é€"] {
            assert_eq!(
                utf16_len(text.as_bytes()),
                text.encode_utf16().count(),
                "{text}"
            );
        }
    }
}
