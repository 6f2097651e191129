//! What can go wrong, by whose fault it is.

use tokio_tungstenite::tungstenite;

use crate::{AddressError, TlsError};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Nobody listens there.
    #[error("cannot connect: {0}")]
    Io(#[from] std::io::Error),
    /// Whoever listens there is not trusted, or does not speak TLS, or speaks it where plain HTTP was expected.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Whoever listens there does not speak WebSocket.
    #[error("not a broker: {0}")]
    WebSocket(#[source] Box<tungstenite::Error>),
    /// Whoever listens there does not speak Engine.IO 4 and Socket.IO 5.
    #[error("not a broker: {0}")]
    Handshake(&'static str),
    /// The broker does not admit us to the namespace.
    #[error("refused by the broker: {0}")]
    Refused(String),
    /// It took too long.
    #[error("no connection within {0:?}")]
    Timeout(std::time::Duration),
}

/// Why something was not sent, or not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The payload cannot be written as JSON.
    #[error("payload is no json: {0}")]
    Payload(#[from] serde_json::Error),
    /// The client is closed.
    #[error("client is closed")]
    Closed,
    /// The connection was lost before the answer came.
    #[error("connection was lost before the answer came")]
    Lost,
    /// No answer came in time.
    #[error("no answer within {0:?}")]
    Timeout(std::time::Duration),
    /// The answer cannot be read.
    #[error("answer is not what the protocol says")]
    Answer,
    /// Too many answers are waited for.
    #[error("more than {max} calls wait for their answers")]
    TooManyCalls {
        /// The bound.
        max: usize,
    },
    /// Too many registrations are kept for the next connection.
    #[error("more than {max} registrations on one client")]
    TooManyRegistrations {
        /// The bound.
        max: usize,
    },
    /// The message has more pieces than the protocol allows.
    #[error("message is too large: it needs more than {max} pieces")]
    TooLarge {
        /// The bound.
        max: usize,
    },
}

/// The broker's no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("refused with {code}: {message}")]
pub struct Refusal {
    /// Its code, such as 403.
    pub code: i32,
    /// Its words.
    pub message: String,
}

/// Why a request had no success.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The broker says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It was not answered.
    #[error(transparent)]
    Call(#[from] CallError),
}
