//! Engine.IO packets, both revisions, text and binary.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyo_mq_codec::engine::{Packet, Protocol, decode_binary, decode_text};

fuzz_target!(|data: &[u8]| {
    for protocol in [Protocol::V3, Protocol::V4] {
        if let Ok(Packet::Binary(bytes)) = decode_binary(protocol, data) {
            assert!(bytes.len() <= data.len());
        }
        if let Ok(text) = std::str::from_utf8(data)
            && let Ok(Packet::Text(message)) = decode_text(protocol, text)
        {
            assert_eq!(message, &text[1..]);
        }
    }
});
