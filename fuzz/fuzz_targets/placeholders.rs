//! Attachments in JSON texts: what is JSON stays JSON, and there and back is where it was.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use tyo_mq_codec::socket::{buffers_to_placeholders, check_placeholders, placeholders_to_buffers};

fuzz_target!(|json: &str| {
    let attachments = [Bytes::from_static(b"a"), Bytes::from_static(b"bc")];
    let stored = placeholders_to_buffers(json, &attachments);
    let (wire, found) = buffers_to_placeholders(json);
    if serde_json::from_str::<&RawValue>(json).is_err() {
        return;
    }
    assert!(serde_json::from_str::<&RawValue>(&stored).is_ok());
    assert!(serde_json::from_str::<&RawValue>(&wire).is_ok());
    if !found.is_empty() {
        assert!(check_placeholders(&wire, found.len() as u32).is_ok());
        assert_eq!(
            buffers_to_placeholders(&placeholders_to_buffers(&wire, &found)),
            (wire, found)
        );
    }
});
