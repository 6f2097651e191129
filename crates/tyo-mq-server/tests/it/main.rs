//! The server over real sockets: transcripts of Socket.IO clients, and what cannot be written as one.
#![allow(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test there"
)]
#![recursion_limit = "256"]

mod auth;
mod binary;
mod chunks;
mod client;
mod commands;
mod delivery;
mod enrolment;
mod fallback;
mod http;
mod http_api;
mod lifecycle;
mod limits;
mod log;
mod malformed;
mod management;
mod manager;
mod payloads;
mod persistence;
mod polling;
mod presence;
mod rates;
mod redis;
mod reload;
mod rename;
mod routing;
mod script;
mod server;
mod settings;
mod validators;
