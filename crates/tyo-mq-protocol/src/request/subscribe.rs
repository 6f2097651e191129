//! SUBSCRIBE with its aliases and nested options, and UNSUBSCRIBE.

use std::borrow::Cow;

use super::produce::event_name;
use super::{field_error, not_an_object, object_text};
use crate::events::{CONSUME_PREFIX, EventKind};
use crate::json;
use crate::{ALL_EVENTS, ANONYMOUS, ParseError, PayloadError, parse_duration_ms};

/// A subscription to make or to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// The event or topic pattern, case kept, not empty.
    pub event: String,
    /// The producer; [`ALL_PRODUCERS`](crate::ALL_PRODUCERS) for any, [`ANONYMOUS`] when absent.
    pub producer: String,
    /// The consumer; [`ANONYMOUS`] when absent.
    pub consumer: String,
    /// The id for a consumer that registers by subscribing.
    pub id: Option<String>,
    /// The identity of its queue; when absent `id`, else the socket id.
    pub consumer_id: Option<String>,
    /// All events of the producer, whatever `event` says.
    pub all_events: bool,
    /// Keep messages while the consumer is away.
    pub durable: bool,
    /// Messages want an ACK: `ack` or `manual_ack` was asked for.
    pub ack: bool,
    /// The application acknowledges, not its library. Makes no difference to the broker.
    pub manual_ack: bool,
    /// How long an ACK may take, in milliseconds; the broker's default when absent.
    pub ack_timeout_ms: Option<u64>,
    /// What happens without an ACK; the default when absent.
    pub retry: Option<Retry>,
    /// `event` is a topic pattern.
    pub topic_mode: bool,
    /// The group whose members share the messages.
    pub group: Option<String>,
    /// How many messages may wait for their ACK; 0 for any number, the default when absent.
    pub prefetch: Option<u32>,
}

/// How often a message is delivered that nobody acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Deliveries in all, at least one.
    pub max_attempts: u32,
    /// The wait before the second delivery, in milliseconds.
    pub delay_ms: u64,
    /// How the wait grows.
    pub backoff: Backoff,
}

/// How the wait between deliveries grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backoff {
    /// It does not.
    #[default]
    Fixed,
    /// It doubles.
    Exponential,
}

/// Subscriptions to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsubscribe {
    /// Those under a subscription key.
    Key(String),
    /// Those to an event (or, without a producer, under a key of that spelling).
    Event {
        /// The event or topic pattern.
        event: String,
        /// The producer.
        producer: Option<String>,
        /// The consumer.
        consumer: Option<String>,
    },
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            delay_ms: 5000,
            backoff: Backoff::Fixed,
        }
    }
}

impl Subscribe {
    pub(super) fn from_payload(first: Option<&str>) -> Result<Self, ParseError> {
        let malformed = |field| field_error(EventKind::Subscribe, field);
        let text = object_text(EventKind::Subscribe, first)?;
        let fields = Options::read(&text).ok_or(not_an_object(EventKind::Subscribe))?;
        let named = |field| match json::present(fields.top(field)) {
            Some(raw) => json::name(raw).map(Cow::into_owned).ok_or(malformed(field)),
            None => Ok(String::new()),
        };
        let event = fields
            .top("event")
            .and_then(event_name)
            .map(Cow::into_owned);
        let event = event
            .filter(|event| !event.is_empty())
            .ok_or(malformed("event"))?;
        let everything = fields.is_word("scope", "all") || event.eq_ignore_ascii_case(ALL_EVENTS);
        let manual_ack = fields.is_set(&["manual_ack", "manualAck"]);
        Ok(Self {
            all_events: everything,
            event,
            producer: or_anonymous(named("producer")?),
            consumer: or_anonymous(named("consumer")?),
            id: fields.label(&["id"]),
            consumer_id: fields.label(&["consumer_id", "consumerId"]),
            durable: fields.is_set(&["durable"]),
            ack: manual_ack || fields.is_set(&["ack", "require_ack", "requireAck"]),
            manual_ack,
            ack_timeout_ms: fields
                .option(&["ack_timeout", "ackTimeout"])
                .and_then(parse_duration_ms)
                .filter(|&ms| ms > 0),
            retry: fields.option(&["retry"]).and_then(Retry::read),
            topic_mode: fields.is_word("mode", "topic"),
            group: json::label(fields.option(&["group"])).map(Cow::into_owned),
            prefetch: fields.given("prefetch").and_then(json::whole_number),
        })
    }
}

impl Retry {
    fn read(raw: &str) -> Option<Self> {
        let [attempts, attempts_camel, delay, backoff] =
            json::fields(raw, &["max_attempts", "maxAttempts", "delay", "backoff"])?;
        let default = Self::default();
        let attempts = json::truthy(attempts)
            .or(json::truthy(attempts_camel))
            .and_then(attempts_number);
        let exponential = backoff
            .and_then(json::string)
            .is_some_and(|word| word == "exponential");
        Some(Self {
            max_attempts: attempts.unwrap_or(default.max_attempts),
            delay_ms: json::present(delay)
                .and_then(parse_duration_ms)
                .unwrap_or(default.delay_ms),
            backoff: if exponential {
                Backoff::Exponential
            } else {
                Backoff::Fixed
            },
        })
    }
}

impl Unsubscribe {
    pub(super) fn from_payload(first: Option<&str>) -> Result<Self, ParseError> {
        let error = |reason| ParseError::Payload {
            event: EventKind::Unsubscribe,
            reason,
        };
        let raw = json::present(first).ok_or(error(PayloadError::Missing))?;
        if raw.starts_with('"') {
            let key = json::name(raw).filter(|key| !key.is_empty());
            let key = key.ok_or(error(PayloadError::Field("subscription key")))?;
            return Ok(Self::Key(
                key.strip_prefix(CONSUME_PREFIX).unwrap_or(&key).to_owned(),
            ));
        }
        let [event, producer, consumer] = json::fields(raw, &["event", "producer", "consumer"])
            .ok_or(error(PayloadError::NotAnObject))?;
        let event = event.and_then(event_name).filter(|event| !event.is_empty());
        let event = event.ok_or(error(PayloadError::Field("event")))?;
        let named = |raw, field| match json::truthy(raw) {
            Some(raw) => {
                let name = json::name(raw).map(Cow::into_owned);
                name.map(Some).ok_or(error(PayloadError::Field(field)))
            }
            None => Ok(None),
        };
        Ok(Self::Event {
            event: event
                .strip_prefix(CONSUME_PREFIX)
                .unwrap_or(&event)
                .to_owned(),
            producer: named(producer, "producer")?,
            consumer: named(consumer, "consumer")?,
        })
    }
}

/// The fields of a SUBSCRIBE, and those of its `options`.
struct Options<'a> {
    top: SubscribeFields<'a>,
    nested: SubscribeFields<'a>,
}

type SubscribeFields<'a> = [Option<&'a str>; KEYS.len()];

const KEYS: [&str; 20] = [
    "event",
    "producer",
    "consumer",
    "id",
    "scope",
    "durable",
    "consumer_id",
    "consumerId",
    "ack",
    "require_ack",
    "requireAck",
    "manual_ack",
    "manualAck",
    "ack_timeout",
    "ackTimeout",
    "retry",
    "mode",
    "group",
    "prefetch",
    "options",
];

impl<'a> Options<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let top = json::fields(text, &KEYS)?;
        let [.., options] = top;
        let nested = options
            .and_then(|raw| json::fields(raw, &KEYS))
            .unwrap_or_default();
        Some(Self { top, nested })
    }

    fn top(&self, key: &str) -> Option<&'a str> {
        self.top[place(key)]
    }

    /// The first of the aliases that is given and true, at the top before the options.
    fn option(&self, aliases: &[&str]) -> Option<&'a str> {
        [&self.top, &self.nested]
            .into_iter()
            .flat_map(|fields| aliases.iter().map(|alias| fields[place(alias)]))
            .find_map(json::truthy)
    }

    fn is_set(&self, aliases: &[&str]) -> bool {
        self.option(aliases).is_some()
    }

    fn is_word(&self, key: &str, word: &str) -> bool {
        self.option(&[key])
            .and_then(json::string)
            .is_some_and(|text| text == word)
    }

    /// The value at the top or else in the options, also when it is 0.
    fn given(&self, key: &str) -> Option<&'a str> {
        let at = place(key);
        json::present(self.top[at]).or(json::present(self.nested[at]))
    }

    fn label(&self, aliases: &[&str]) -> Option<String> {
        aliases
            .iter()
            .find_map(|alias| json::label(self.top(alias)))
            .map(Cow::into_owned)
    }
}

fn place(key: &str) -> usize {
    KEYS.iter()
        .position(|known| *known == key)
        .expect("every key that is asked for is listed")
}

fn or_anonymous(name: String) -> String {
    if name.is_empty() {
        ANONYMOUS.to_owned()
    } else {
        name
    }
}

/// Attempts as JavaScript would compare them: fractions count up, anything below one is one.
fn attempts_number(raw: &str) -> Option<u32> {
    let value = match json::string(raw) {
        Some(text) => text
            .trim()
            .parse()
            .ok()
            .filter(|value: &f64| !value.is_nan() && *value != 0.0)?,
        None => json::number(raw)?,
    };
    Some((value.ceil() as u32).max(1))
}
