//! Polling bodies: the revision 4 form, and the writer for both revisions. Knows nothing of HTTP.

use base64::Engine as _;

use super::packet::BASE64;
use super::payload_v3::{push_binary_form, utf16_len};
use super::{Packet, PacketError, Protocol, RECORD_SEPARATOR, decode_text};

/// The packets of a revision 4 body, in order. After an error nothing more comes.
pub fn decode_payload(body: &[u8]) -> impl Iterator<Item = Result<Packet<'_>, PacketError>> {
    let (text, invalid) = match std::str::from_utf8(body) {
        Ok(text) => (text, false),
        Err(_) => ("", true),
    };
    let mut failed = false;
    text.split(char::from(RECORD_SEPARATOR))
        .map_while(move |part| {
            if failed {
                return None;
            }
            let packet = if invalid {
                Err(PacketError::Utf8)
            } else {
                decode_text(Protocol::V4, part)
            };
            failed = packet.is_err();
            Some(packet)
        })
}

/// Writes packets into one polling body, in the form that the session's client reads.
#[derive(Debug)]
pub struct PayloadEncoder {
    protocol: Protocol,
    /// The revision 3 form with raw bytes; chosen before the first packet.
    raw_bytes: bool,
    body: Vec<u8>,
}

impl PayloadEncoder {
    /// A body for `protocol`. `raw_bytes` asks for revision 3's binary form, which only clients that did not ask
    /// for base64 read, and which is only needed when a binary message is among the packets.
    pub fn new(protocol: Protocol, raw_bytes: bool) -> Self {
        Self {
            protocol,
            raw_bytes: raw_bytes && protocol == Protocol::V3,
            body: Vec::new(),
        }
    }

    /// Appends a text packet, its type included.
    pub fn push_text(&mut self, packet: &[u8]) {
        match self.protocol {
            Protocol::V4 => self.separate(),
            Protocol::V3 if self.raw_bytes => {
                return push_binary_form(&mut self.body, 0, &[packet]);
            }
            Protocol::V3 => self.push_length(utf16_len(packet)),
        }
        self.body.extend_from_slice(packet);
    }

    /// Appends a binary message, without a type.
    pub fn push_binary(&mut self, data: &[u8]) {
        if self.raw_bytes {
            return push_binary_form(&mut self.body, 1, &[&[4], data]);
        }
        match self.protocol {
            Protocol::V4 => {
                self.separate();
                self.body.push(b'b');
            }
            Protocol::V3 => {
                self.push_length(2 + data.len().div_ceil(3) * 4);
                self.body.extend_from_slice(b"b4");
            }
        }
        self.push_base64(data);
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Whether the body must be labelled as bytes and not as text.
    pub fn is_raw_bytes(&self) -> bool {
        self.raw_bytes
    }

    /// The body.
    pub fn finish(self) -> Vec<u8> {
        self.body
    }

    fn separate(&mut self) {
        if !self.body.is_empty() {
            self.body.push(RECORD_SEPARATOR);
        }
    }

    fn push_length(&mut self, units: usize) {
        self.body.extend_from_slice(units.to_string().as_bytes());
        self.body.push(b':');
    }

    fn push_base64(&mut self, data: &[u8]) {
        let start = self.body.len();
        self.body.resize(start + data.len().div_ceil(3) * 4, 0);
        let written = BASE64
            .encode_slice(data, &mut self.body[start..])
            .expect("the room is the encoded size");
        self.body.truncate(start + written);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::super::{decode_payload_v3, decode_payload_v3_binary};
    use super::*;

    fn check(body: &[u8], expected: &[Result<Packet<'_>, PacketError>]) {
        assert_eq!(
            decode_payload(body).collect::<Vec<_>>(),
            expected,
            "{body:?}"
        );
    }

    #[test]
    fn bodies() {
        check(b"4a", &[Ok(Packet::Text("a"))]);
        check(
            b"4a\x1ebAQID\x1e3",
            &[
                Ok(Packet::Text("a")),
                Ok(Packet::Binary(Cow::Borrowed(&[1, 2, 3]))),
                Ok(Packet::Pong("")),
            ],
        );
        check(b"", &[Err(PacketError::Empty)]);
        check(b"4a\x1e", &[Ok(Packet::Text("a")), Err(PacketError::Empty)]);
        check(b"zzz\x1e4a", &[Err(PacketError::UnknownType(b'z'))]);
        check(b"4\xff", &[Err(PacketError::Utf8)]);
    }

    #[test]
    fn writes_each_form() {
        let write = |protocol, raw| {
            let mut encoder = PayloadEncoder::new(protocol, raw);
            encoder.push_text(b"4hello");
            encoder.push_binary(&[1, 2, 3, 4]);
            encoder.finish()
        };
        assert_eq!(write(Protocol::V4, true), b"4hello\x1ebAQIDBA==");
        assert_eq!(write(Protocol::V3, false), b"6:4hello10:b4AQIDBA==");
        assert_eq!(
            write(Protocol::V3, true),
            b"\x00\x06\xff4hello\x01\x05\xff\x04\x01\x02\x03\x04"
        );
    }

    #[derive(Debug, Clone)]
    enum Sent {
        Text(String),
        Binary(Vec<u8>),
    }

    fn sent() -> impl Strategy<Value = Vec<Sent>> {
        let one = prop_oneof![
            any::<String>().prop_map(|text| Sent::Text(text.replace('\u{1e}', " "))),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Sent::Binary),
        ];
        proptest::collection::vec(one, 1..8)
    }

    fn write(protocol: Protocol, raw: bool, packets: &[Sent]) -> Vec<u8> {
        let mut encoder = PayloadEncoder::new(protocol, raw);
        for packet in packets {
            match packet {
                Sent::Text(text) => encoder.push_text(format!("4{text}").as_bytes()),
                Sent::Binary(data) => encoder.push_binary(data),
            }
        }
        encoder.finish()
    }

    proptest! {
        #[test]
        fn round_trips(packets in sent()) {
            let expected: Vec<_> = packets
                .iter()
                .map(|packet| match packet {
                    Sent::Text(text) => Ok(Packet::Text(text)),
                    Sent::Binary(data) => Ok(Packet::Binary(Cow::Borrowed(data))),
                })
                .collect();
            let v4 = write(Protocol::V4, false, &packets);
            prop_assert_eq!(decode_payload(&v4).collect::<Vec<_>>(), expected.clone());
            let text = write(Protocol::V3, false, &packets);
            prop_assert_eq!(decode_payload_v3(&text).collect::<Vec<_>>(), expected.clone());
            let raw = write(Protocol::V3, true, &packets);
            prop_assert_eq!(decode_payload_v3_binary(&raw).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn arbitrary_bodies_end(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(decode_payload(&body).count() <= body.len() + 1);
            prop_assert!(decode_payload_v3(&body).count() <= body.len() + 1);
            prop_assert!(decode_payload_v3_binary(&body).count() <= body.len() + 1);
        }

        #[test]
        fn arbitrary_v3_texts_end(body in "[0-9:b4a-c😀]{0,40}") {
            prop_assert!(decode_payload_v3(body.as_bytes()).count() <= body.len() + 1);
        }
    }
}
