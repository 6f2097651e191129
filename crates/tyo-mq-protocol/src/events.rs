//! Event names, as they stand on the wire.

use std::fmt;

/// The events of clients that this crate reads the payloads of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `PRODUCER`: register a producer.
    Producer,
    /// `CONSUMER`: register a consumer.
    Consumer,
    /// `SUBSCRIBE`.
    Subscribe,
    /// `UNSUBSCRIBE`.
    Unsubscribe,
    /// `PRODUCE`: publish a message.
    Produce,
    /// `PRODUCE_CHUNK`: a piece of a large PRODUCE.
    ProduceChunk,
    /// `ACK`: a message was handled.
    Ack,
    /// `PING`.
    Ping,
    /// `HELLO`.
    Hello,
    /// `QUIT`.
    Quit,
    /// `DEBUG`.
    Debug,
    /// `AUTHENTICATION`.
    Authentication,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Produce,
        Self::Ack,
        Self::ProduceChunk,
        Self::Ping,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Producer,
        Self::Consumer,
        Self::Hello,
        Self::Quit,
        Self::Debug,
        Self::Authentication,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Producer => PRODUCER,
            Self::Consumer => CONSUMER,
            Self::Subscribe => SUBSCRIBE,
            Self::Unsubscribe => UNSUBSCRIBE,
            Self::Produce => PRODUCE,
            Self::ProduceChunk => PRODUCE_CHUNK,
            Self::Ack => ACK,
            Self::Ping => PING,
            Self::Hello => HELLO,
            Self::Quit => QUIT,
            Self::Debug => DEBUG,
            Self::Authentication => AUTHENTICATION,
        }
    }

    pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Register a producer.
pub const PRODUCER: &str = "PRODUCER";
/// Register a consumer.
pub const CONSUMER: &str = "CONSUMER";
/// Subscribe to an event.
pub const SUBSCRIBE: &str = "SUBSCRIBE";
/// End a subscription.
pub const UNSUBSCRIBE: &str = "UNSUBSCRIBE";
/// Publish a message.
pub const PRODUCE: &str = "PRODUCE";
/// A piece of a large PRODUCE.
pub const PRODUCE_CHUNK: &str = "PRODUCE_CHUNK";
/// A message was handled.
pub const ACK: &str = "ACK";
/// Are you there?
pub const PING: &str = "PING";
/// For the log.
pub const HELLO: &str = "HELLO";
/// Disconnect me.
pub const QUIT: &str = "QUIT";
/// For the log.
pub const DEBUG: &str = "DEBUG";
/// Authenticate the socket.
pub const AUTHENTICATION: &str = "AUTHENTICATION";

/// What deliveries begin with; the subscription key follows.
pub const CONSUME_PREFIX: &str = "CONSUME-";
/// A piece of a large delivery.
pub const CONSUME_CHUNK: &str = "CONSUME_CHUNK";
/// Something was refused.
pub const ERROR: &str = "ERROR";
/// The socket is authenticated.
pub const AUTH_OK: &str = "AUTH_OK";
/// The socket is not authenticated, or may not do this.
pub const AUTH_FAIL: &str = "AUTH_FAIL";
/// An ACK was taken.
pub const ACK_OK: &str = "ACK_OK";
/// An ACK was refused.
pub const ACK_FAIL: &str = "ACK_FAIL";
/// The sender is over its rate.
pub const RATE_LIMITED: &str = "RATE_LIMITED";
/// What notices of a new subscription begin with; the producer's id follows.
pub const SUBSCRIBE_TO: &str = "SUBSCRIBE-TO";
/// What notices of a peer that came begin with; the receiver's id follows.
pub const CONNECT: &str = "CONNECT";
/// What notices of a peer that went begin with; the receiver's id follows.
pub const DISCONNECT: &str = "DISCONNECT";

/// Ask for a role in a realm.
pub const AUTHORIZATION_REQUEST: &str = "AUTHORIZATION_REQUEST";
/// A manager asks for the next request.
pub const AUTHORIZATION_NEXT: &str = "AUTHORIZATION_NEXT";
/// A manager decides a request.
pub const AUTHORIZATION_DECIDE: &str = "AUTHORIZATION_DECIDE";
/// The request was granted.
pub const AUTHORIZATION_APPROVED: &str = "AUTHORIZATION_APPROVED";
/// The request was not granted.
pub const AUTHORIZATION_REJECTED: &str = "AUTHORIZATION_REJECTED";
/// A signed management command.
pub const AUTH_MANAGEMENT_COMMAND: &str = "AUTH_MANAGEMENT_COMMAND";
/// Ask for a ticket to `/remote`.
pub const REMOTE_TICKET_REQUEST: &str = "REMOTE_TICKET_REQUEST";
