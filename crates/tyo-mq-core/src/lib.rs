//! The tyo-mq broker without a wire: realms, routing, topics, groups, presence and reliable delivery.
//!
//! [`engine`] is a deterministic state machine: no clock, no randomness, no I/O, no threads. `runtime`
//! (feature `runtime`, on by default) is the tokio shell around it: shards, timers, the store executor and
//! in-process sessions. Nothing here knows JSON, sockets or tokens: a message's body is opaque bytes.
#![forbid(unsafe_code)]

pub mod engine;
pub mod memory_store;
pub mod message;
#[cfg(feature = "runtime")]
pub mod runtime;
pub mod store;

pub use engine::Engine;
pub use message::{Message, MessageId, Receipt, SessionId};
