//! The broker: a deterministic engine and the tokio runtime that embeds it.
#![forbid(unsafe_code)]
