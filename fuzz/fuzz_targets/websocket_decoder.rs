//! WebSocket frames: whatever the pieces they arrive in, the same messages come out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyo_mq_codec::websocket::{Decoded, Decoder, Role};

const MAX_MESSAGE: usize = 4096;

fuzz_target!(|input: (bool, u8, Vec<u8>)| {
    let (server, step, data) = input;
    let role = || if server { Role::Server } else { Role::Client };
    let at_once = decode(role(), &data, data.len().max(1));
    let in_pieces = decode(role(), &data, usize::from(step).max(1));
    assert_eq!(at_once, in_pieces);
});

/// Events as text, with the error that ended them.
fn decode(role: Role, data: &[u8], step: usize) -> Vec<String> {
    let mut decoder = Decoder::new(role, MAX_MESSAGE);
    let mut events = Vec::new();
    let mut buf: Vec<u8> = Vec::new();
    for piece in data.chunks(step) {
        buf.extend_from_slice(piece);
        loop {
            let consumed = match decoder.decode(&mut buf) {
                Ok(Decoded::Frame { consumed, event }) => {
                    events.extend(event.map(|event| format!("{event:?}")));
                    consumed
                }
                Ok(Decoded::Incomplete { needed }) => {
                    assert!(needed <= MAX_MESSAGE + 14);
                    break;
                }
                Err(error) => {
                    events.push(error.to_string());
                    return events;
                }
            };
            buf.drain(..consumed);
        }
    }
    events
}
