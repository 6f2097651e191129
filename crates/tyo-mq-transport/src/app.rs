//! What an embedder implements: one application, one session object a connection.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderMap, Uri};
use tyo_mq_codec::engine::{Carrier, CloseReason, Protocol};

use crate::Connection;

/// Makes a [`Session`] of each connection.
pub trait Application: Send + Sync + 'static {
    /// What it makes.
    type Session: Session;

    /// A client has connected. What is sent here goes out right after the open packet.
    fn open(&self, conn: Arc<Connection>, info: ConnectInfo) -> Self::Session;
}

/// One connection's events. Never called by two threads at once, and never while a lock of the transport is held that
/// [`Connection`]'s methods need.
pub trait Session: Send + 'static {
    /// A message came. An error closes the connection at once, as a parse error.
    fn on_message(&mut self, message: Message<'_>) -> Result<(), Refused>;

    /// Everything that one read, or one POST, brought was handed over: the time to flush other connections.
    /// This connection itself is flushed afterwards.
    fn on_batch_end(&mut self);

    /// The outbound queue is below half its high-water mark, after having been above the mark.
    fn on_drained(&mut self);

    /// The connection has ended. Called exactly once, and nothing is called after it.
    fn on_close(&mut self, reason: CloseReason);
}

/// A message, without the packet type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Text, in UTF-8.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
}

/// The application does not take a message; its connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("message refused")]
pub struct Refused;

/// How a client connected.
#[derive(Debug, Clone)]
pub struct ConnectInfo {
    /// Headers of the request that opened the session.
    pub headers: HeaderMap,
    /// Its target, with the query.
    pub uri: Uri,
    /// The peer's address, where the server passed it on as [`PeerAddr`].
    pub remote_addr: Option<SocketAddr>,
    /// The revision that the client speaks.
    pub protocol: Protocol,
    /// What carries the session at first.
    pub carrier: Carrier,
}

/// The peer's address, as an extension of each request. [`crate::serve`] sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);
