//! Polling bodies of revision 4: read, and what was written is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyo_mq_codec::engine::{Packet, PayloadEncoder, Protocol, decode_payload};

fuzz_target!(|data: &[u8]| {
    for packet in decode_payload(data) {
        if let Ok(Packet::Text(text)) = packet {
            assert!(text.len() < data.len());
        }
    }
    let mut body = PayloadEncoder::new(Protocol::V4, false);
    body.push_binary(data);
    body.push_text(b"4x");
    let body = body.finish();
    let packets: Vec<_> = decode_payload(&body)
        .map(|packet| packet.expect("we wrote it"))
        .collect();
    assert_eq!(packets, [Packet::Binary(data.into()), Packet::Text("x")]);
});
