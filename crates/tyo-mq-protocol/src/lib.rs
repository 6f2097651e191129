//! The broker's vocabulary on the wire: event names, payloads, chunks, error codes. Pure functions from text to values and back.
//!
//! A client event comes in as the JSON array of a Socket.IO packet and leaves [`parse_event`] as a [`ClientEvent`].
//! What users send to each other (`message`, `enc`, `to`) stays the JSON text that arrived, byte for byte: it is never
//! rebuilt, so numbers that no float can hold and halves of surrogate pairs come out as they went in.
//! Nothing here knows sockets, clocks or the broker's state.
#![forbid(unsafe_code)]

pub mod events;

mod chunk;
mod codes;
mod duration;
mod envelope;
mod error;
mod json;
mod notice;
mod ping;
mod request;
mod scan;
mod timestamp;
mod wtf8;

pub use chunk::{
    CHUNK_UNITS, ChunkAssembler, ChunkError, ChunkLimits, MAX_CHUNKS, cut_chunks, needs_chunks,
    write_consume_chunk,
};
pub use codes::{ErrorCode, Status};
pub use duration::{MAX_DURATION_MS, MAX_TTL_MS, Ttl, parse_duration_ms, parse_ttl};
pub use envelope::{Envelope, EnvelopeError, encode_envelope, write_receipt};
pub use error::{Answer, ParseError, PayloadError};
pub use json::{is_truthy, utf16_len, write_json_string};
pub use notice::{Confirm, Notice};
pub use ping::{MAX_SPREAD, write_ping_reply};
pub use request::{
    Ack, Backoff, Broadcast, ClientEvent, Consumer, Produce, ProduceChunk, Producer, Retry,
    Subscribe, Unsubscribe, parse_event, parse_produce,
};
pub use timestamp::write_iso8601;

/// A JSON value as text, borrowed from the packet wherever that is possible.
pub type RawJson<'a> = std::borrow::Cow<'a, str>;

/// The name that producers and consumers without one have.
pub const ANONYMOUS: &str = "ANONYMOUS";

/// The producer name that stands for any producer (exact case).
pub const ALL_PRODUCERS: &str = "TYO-MQ-ALL";

/// The event name that stands for all events of a producer (any case).
pub const ALL_EVENTS: &str = "TM-ALL";

/// The longest name of an event, producer, consumer or group, in bytes.
pub const MAX_NAME_BYTES: usize = 64 * 1024;

/// The most names in `recipients` of one PRODUCE.
pub const MAX_RECIPIENTS: usize = 1000;
