//! Polling bodies of revision 3, in text and in raw bytes: read, and what was written is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyo_mq_codec::engine::{
    Packet, PayloadEncoder, Protocol, decode_payload_v3, decode_payload_v3_binary,
};

fuzz_target!(|data: &[u8]| {
    let (mut size, mut failed) = (0, false);
    for packet in decode_payload_v3(data) {
        assert!(!failed, "nothing comes after an error");
        failed = packet.is_err();
        if let Ok(Packet::Text(text)) = packet {
            size += text.len();
        }
    }
    assert!(size <= data.len());
    for packet in decode_payload_v3_binary(data).flatten() {
        drop(packet);
    }
    let mut body = PayloadEncoder::new(Protocol::V3, true);
    let text = format!("4{}", String::from_utf8_lossy(data));
    body.push_text(text.as_bytes());
    body.push_binary(data);
    let body = body.finish();
    let packets: Vec<_> = decode_payload_v3_binary(&body)
        .map(|packet| packet.expect("we wrote it"))
        .collect();
    assert_eq!(
        packets,
        [Packet::Text(&text[1..]), Packet::Binary(data.into())]
    );
});
