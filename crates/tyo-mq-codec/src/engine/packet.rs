//! One Engine.IO packet, text or binary. Knows nothing of payloads, transports or sessions.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::Protocol;

/// Encodes with padding, as the protocol does; decodes with or without.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A packet as it came from the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// `0`, only ever sent by servers.
    Open(&'a str),
    /// `1`
    Close,
    /// `2` and what follows it, such as `probe`.
    Ping(&'a str),
    /// `3` and what follows it.
    Pong(&'a str),
    /// `4`: a text message, without the type.
    Text(&'a str),
    /// A binary message, without the type.
    Binary(Cow<'a, [u8]>),
    /// `5`
    Upgrade,
    /// `6`
    Noop,
}

/// Why bytes are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// No type.
    #[error("empty packet")]
    Empty,
    /// A type that the protocol does not have.
    #[error("unknown packet type {0:#04x}")]
    UnknownType(u8),
    /// Binary data in text form that does not decode.
    #[error("invalid base64 in a binary packet")]
    Base64,
    /// Text that is not UTF-8.
    #[error("packet is not valid utf-8")]
    Utf8,
    /// The length before a revision 3 packet is missing, not a number, or not what follows.
    #[error("invalid packet length in a payload")]
    Length,
}

/// Decodes a text packet, also the base64 forms of binary messages.
pub fn decode_text(protocol: Protocol, text: &str) -> Result<Packet<'_>, PacketError> {
    let kind = *text.as_bytes().first().ok_or(PacketError::Empty)?;
    // Every type is one ASCII byte, so 1 is a character boundary wherever `rest` is used.
    let rest = text.get(1..).unwrap_or_default();
    Ok(match kind {
        b'0' => Packet::Open(rest),
        b'1' => Packet::Close,
        b'2' => Packet::Ping(rest),
        b'3' => Packet::Pong(rest),
        b'4' => Packet::Text(rest),
        b'5' => Packet::Upgrade,
        b'6' => Packet::Noop,
        b'b' => Packet::Binary(Cow::Owned(decode_base64(protocol, rest)?)),
        other => return Err(PacketError::UnknownType(other)),
    })
}

/// Decodes a binary WebSocket message: the message itself in revision 4, a type byte before it in revision 3.
pub fn decode_binary(protocol: Protocol, bytes: &[u8]) -> Result<Packet<'_>, PacketError> {
    match protocol {
        Protocol::V4 => Ok(Packet::Binary(Cow::Borrowed(bytes))),
        Protocol::V3 => match bytes.split_first() {
            Some((4, rest)) => Ok(Packet::Binary(Cow::Borrowed(rest))),
            Some((&other, _)) => Err(PacketError::UnknownType(other)),
            None => Err(PacketError::Empty),
        },
    }
}

fn decode_base64(protocol: Protocol, rest: &str) -> Result<Vec<u8>, PacketError> {
    let data = match protocol {
        Protocol::V4 => rest,
        Protocol::V3 => match rest.as_bytes().first() {
            Some(b'4') => &rest[1..],
            Some(&other) => return Err(PacketError::UnknownType(other)),
            None => return Err(PacketError::Empty),
        },
    };
    BASE64.decode(data).map_err(|_| PacketError::Base64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(protocol: Protocol, text: &str, expected: Result<Packet<'_>, PacketError>) {
        assert_eq!(decode_text(protocol, text), expected, "{text:?}");
    }

    #[test]
    fn text_packets() {
        for protocol in [Protocol::V3, Protocol::V4] {
            check(protocol, "0{}", Ok(Packet::Open("{}")));
            check(protocol, "1", Ok(Packet::Close));
            check(protocol, "2probe", Ok(Packet::Ping("probe")));
            check(protocol, "3", Ok(Packet::Pong("")));
            check(protocol, "4é", Ok(Packet::Text("é")));
            check(protocol, "4", Ok(Packet::Text("")));
            check(protocol, "5", Ok(Packet::Upgrade));
            check(protocol, "6", Ok(Packet::Noop));
            check(protocol, "", Err(PacketError::Empty));
            check(protocol, "7", Err(PacketError::UnknownType(b'7')));
            check(protocol, "é", Err(PacketError::UnknownType(0xc3)));
        }
    }

    #[test]
    fn base64_packets() {
        let data = Ok(Packet::Binary(Cow::Borrowed(&[1, 2, 3, 4])));
        check(Protocol::V4, "bAQIDBA==", data.clone());
        check(Protocol::V4, "bAQIDBA", data.clone());
        check(Protocol::V3, "b4AQIDBA==", data);
        check(Protocol::V4, "b", Ok(Packet::Binary(Cow::Borrowed(&[]))));
        check(Protocol::V4, "b*", Err(PacketError::Base64));
        check(Protocol::V3, "b", Err(PacketError::Empty));
        check(Protocol::V3, "b1AQID", Err(PacketError::UnknownType(b'1')));
    }

    #[test]
    fn binary_packets() {
        assert_eq!(
            decode_binary(Protocol::V4, &[7]),
            Ok(Packet::Binary(Cow::Borrowed(&[7])))
        );
        assert_eq!(
            decode_binary(Protocol::V3, &[4, 7]),
            Ok(Packet::Binary(Cow::Borrowed(&[7])))
        );
        assert_eq!(
            decode_binary(Protocol::V3, &[5]),
            Err(PacketError::UnknownType(5))
        );
        assert_eq!(decode_binary(Protocol::V3, &[]), Err(PacketError::Empty));
    }
}
