//! What message stores share: how rows look, which settings choose a store, what every store must pass, and falling back.
//!
//! No back end is here, so that nobody compiles one who does not use it. The tables and keys are the reference broker's,
//! with additions that it does not notice.
#![forbid(unsafe_code)]

mod config;
pub mod conformance;
mod fallback;
mod json_row;
mod moving;
mod record;
mod spec;
mod timestamp;

pub use config::{
    Backend, ConfigError, DEFAULT_FILE, Durability, FALLBACK_NAMES, FILE_NAMES, Fallback,
    RedisConfig, RedisUrl, SqliteConfig, StorageConfig,
};
pub use fallback::{FallbackStore, Opener, Plan};
pub use json_row::{decode_json_letter, decode_json_row, encode_json_letter, encode_json_row};
pub use moving::Move;
pub use record::{EncodedMessage, MessageRow, RowReader};
pub use spec::{decode_spec, encode_spec};
pub use timestamp::parse_iso8601;
pub use tyo_mq_protocol::{write_iso8601, write_json_string};
