//! The broker's vocabulary on the wire: event names, payloads, chunks, error codes.
#![forbid(unsafe_code)]
