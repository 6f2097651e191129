//! The transport over real sockets, with raw bytes and tokio-tungstenite as peers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cors;
mod handshake;
mod heartbeat;
mod http_framing;
mod other_io;
mod polling;
mod shutdown;
mod slow;
mod support;
mod upgrade;
mod websocket;
