//! Client events: any text is read or refused, and a message that was read is delivered and stored as the same message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use tyo_mq_protocol::{
    ClientEvent, Envelope, Produce, encode_envelope, parse_event, write_ping_reply, write_receipt,
};

fuzz_target!(|args: &str| {
    match parse_event(args) {
        Ok(ClientEvent::Produce(produce)) => check_message(&produce),
        Ok(ClientEvent::Ping(Some(payload))) => {
            let mut out = Vec::new();
            write_ping_reply(&mut out, &payload, 0);
            let text: String = serde_json::from_slice(&out).expect("a JSON string");
            assert!(serde_json::from_str::<&RawValue>(&text).is_ok());
        }
        Ok(_) => {}
        Err(error) => drop((error.answer(), error.to_string())),
    }
});

fn check_message(produce: &Produce<'_>) {
    let mut out = Vec::new();
    encode_envelope(produce, &mut out);
    write_receipt(&mut out, "m", 1);
    out.push(b'}');
    let text = String::from_utf8(out).expect("text");
    let envelope = Envelope::parse(&text).expect("an envelope");
    assert_eq!(envelope.event, produce.event);
    assert_eq!(envelope.message, produce.message);
    assert_eq!(envelope.from, produce.producer());
    assert_eq!((&envelope.enc, &envelope.to), (&produce.enc, &produce.to));
}
