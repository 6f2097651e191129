//! What a durable subscription asked for, as JSON text. Fields that a newer program adds are ignored, missing ones have their default.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tyo_mq_core::engine::{RetryPolicy, SubscriptionSpec};

/// Writes a specification.
#[must_use]
pub fn encode_spec(spec: &SubscriptionSpec) -> String {
    let record = SpecRecord {
        producer: Cow::Borrowed(&spec.producer),
        event: Cow::Borrowed(&spec.event),
        all_events: spec.all_events,
        topic: spec.topic,
        durable: spec.durable,
        ack: spec.ack,
        ack_timeout_ms: spec.ack_timeout_ms,
        max_attempts: spec.retry.max_attempts,
        retry_delay_ms: spec.retry.delay_ms,
        exponential: spec.retry.exponential,
        group: spec.group.as_deref().map(Cow::Borrowed),
        prefetch: spec.prefetch,
    };
    serde_json::to_string(&record).expect("numbers and texts are JSON")
}

/// Reads a specification; none when it is not one.
#[must_use]
pub fn decode_spec(text: &str) -> Option<SubscriptionSpec> {
    let record: SpecRecord<'_> = serde_json::from_str(text).ok()?;
    Some(SubscriptionSpec {
        producer: record.producer.as_ref().into(),
        event: record.event.as_ref().into(),
        all_events: record.all_events,
        topic: record.topic,
        durable: record.durable,
        ack: record.ack,
        ack_timeout_ms: record.ack_timeout_ms,
        retry: RetryPolicy {
            max_attempts: record.max_attempts,
            delay_ms: record.retry_delay_ms,
            exponential: record.exponential,
        },
        group: record.group.as_deref().map(Into::into),
        prefetch: record.prefetch,
    })
}

#[derive(Serialize, Deserialize)]
struct SpecRecord<'a> {
    producer: Cow<'a, str>,
    event: Cow<'a, str>,
    #[serde(default)]
    all_events: bool,
    #[serde(default)]
    topic: bool,
    #[serde(default)]
    durable: bool,
    #[serde(default)]
    ack: bool,
    #[serde(default)]
    ack_timeout_ms: Option<u64>,
    #[serde(default = "default_max_attempts")]
    max_attempts: u32,
    #[serde(default = "default_retry_delay_ms")]
    retry_delay_ms: u64,
    #[serde(default)]
    exponential: bool,
    #[serde(default)]
    group: Option<Cow<'a, str>>,
    #[serde(default)]
    prefetch: Option<u32>,
}

fn default_max_attempts() -> u32 {
    RetryPolicy::default().max_attempts
}

fn default_retry_delay_ms() -> u64 {
    RetryPolicy::default().delay_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SubscriptionSpec {
        SubscriptionSpec {
            producer: "Shop \"ü\"".into(),
            event: "org/+/#".into(),
            all_events: true,
            topic: true,
            durable: true,
            ack: true,
            ack_timeout_ms: Some(u64::MAX),
            retry: RetryPolicy {
                max_attempts: 9,
                delay_ms: 7,
                exponential: true,
            },
            group: Some("".into()),
            prefetch: Some(0),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(decode_spec(&encode_spec(&spec())), Some(spec()));
    }

    #[test]
    fn missing_fields_have_their_default() {
        let read = decode_spec(r#"{"producer":"p","event":"e","later":1}"#).unwrap();
        assert_eq!(read.retry, RetryPolicy::default());
        assert!(!read.durable && read.group.is_none());
    }

    #[test]
    fn other_texts_are_none() {
        for text in ["", "1", "{}", r#"{"producer":1,"event":"e"}"#] {
            assert_eq!(decode_spec(text), None, "{text}");
        }
    }
}
