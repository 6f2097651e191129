//! Why a client event cannot be read, and which answer that has on the wire.

use crate::events::EventKind;
use crate::{ErrorCode, Status};

/// Why a client event cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Not a JSON array that begins with a string: the connection must be closed.
    #[error("event is not a JSON array that begins with a name")]
    Packet,
    /// The payload is not what the event wants: see [`answer`](Self::answer).
    #[error("{event}: {reason}")]
    Payload {
        /// The event.
        event: EventKind,
        /// What is wrong with it.
        reason: PayloadError,
    },
}

/// What is wrong with a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// There is none, or it is null.
    #[error("payload is missing")]
    Missing,
    /// It is a string that does not hold JSON.
    #[error("payload text is not JSON")]
    NotJson,
    /// It is JSON, and no object.
    #[error("payload must be an object")]
    NotAnObject,
    /// A field is missing, of the wrong type, too long, or not Unicode text.
    #[error("{0} is missing or malformed")]
    Field(&'static str),
}

/// How a [`ParseError`] is answered, besides the refusal of the Socket.IO ack if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Close the connection.
    Close,
    /// Not at all.
    Silent,
    /// ERROR with an object `{message, code}`.
    ErrorObject(ErrorCode),
    /// ERROR with a string.
    ErrorText,
    /// ACK_FAIL, as an event and as the ack.
    AckFail(Status),
    /// AUTH_FAIL.
    AuthFail(Status),
}

impl ParseError {
    /// The answer that the sender gets.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let Self::Payload { event, reason } = self else {
            return Answer::Close;
        };
        match (event, reason) {
            (EventKind::Ack, _) => Answer::AckFail(Status::Malformed),
            (EventKind::Authentication, _) => Answer::AuthFail(Status::Unauthenticated),
            (_, PayloadError::NotJson) => Answer::Silent,
            (EventKind::Producer | EventKind::Consumer, _) => {
                Answer::ErrorObject(ErrorCode::BadName)
            }
            (EventKind::Subscribe, _) => Answer::ErrorText,
            _ => Answer::Silent,
        }
    }

    /// The event whose payload is wrong; its permissions are checked before it is answered.
    #[must_use]
    pub fn event(&self) -> Option<EventKind> {
        match self {
            Self::Packet => None,
            Self::Payload { event, .. } => Some(*event),
        }
    }
}
