//! Engine.IO and Socket.IO wire formats: bytes in, bytes out, no I/O and no clock.
#![forbid(unsafe_code)]
pub mod engine;
pub mod socket;
pub mod websocket;
