//! The client against the server of this workspace, over real sockets.

#![allow(
    clippy::unwrap_used,
    reason = "a test that finds nothing to unwrap has failed"
)]

mod lifecycle;
mod messages;
mod server;
mod tls;
mod tls_proxy;
