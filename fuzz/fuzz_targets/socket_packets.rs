//! Socket.IO packets through a whole connection, one a line; lines that begin with `b` are binary.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tyo_mq_codec::socket::{Connection, Incoming, JsonCheck, Limits, Revision};

fuzz_target!(|input: (bool, bool, &str)| {
    let (v4, full, text) = input;
    let revision = if v4 { Revision::V4 } else { Revision::V5 };
    let json = if full {
        JsonCheck::Full
    } else {
        JsonCheck::Name
    };
    let mut connection = Connection::new(
        revision,
        json,
        Limits {
            max_packet_bytes: 1000,
        },
    );
    connection
        .accept("/", "S", &mut Vec::new())
        .expect("nothing is joined yet");
    for line in text.lines() {
        let received = match line.strip_prefix('b') {
            Some(bytes) => connection.receive_binary(bytes.as_bytes()),
            None => connection.receive_text(line),
        };
        match received {
            Ok(Incoming::Connect { namespace, .. }) => {
                connection
                    .accept(namespace, "S", &mut Vec::new())
                    .expect("it was not joined");
            }
            Ok(Incoming::Event {
                args,
                namespace,
                attachments,
                ..
            }) => {
                assert!(connection.socket_id(&namespace).is_some());
                if full || !attachments.is_empty() {
                    let args: Vec<&serde_json::value::RawValue> =
                        serde_json::from_str(&args).expect("checked");
                    assert!(args[0].get().starts_with('"'));
                }
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
});
