//! What a server answers to a handshake: the open packet, or why not. Knows nothing of HTTP but the query.

/// The open packet's fields.
#[derive(Debug, Clone, Copy)]
pub struct Open<'a> {
    /// Session id; visible ASCII without quotes or backslashes.
    pub sid: &'a str,
    /// Whether the client may go on by WebSocket.
    pub upgrade: bool,
    /// Milliseconds.
    pub ping_interval_ms: u64,
    /// Milliseconds.
    pub ping_timeout_ms: u64,
    /// Largest message, in bytes.
    pub max_payload: usize,
}

impl Open<'_> {
    /// Appends the whole packet, type included.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"0{\"sid\":\"");
        out.extend_from_slice(self.sid.as_bytes());
        out.extend_from_slice(b"\",\"upgrades\":[");
        if self.upgrade {
            out.extend_from_slice(b"\"websocket\"");
        }
        let rest = format!(
            "],\"pingInterval\":{},\"pingTimeout\":{},\"maxPayload\":{}}}",
            self.ping_interval_ms, self.ping_timeout_ms, self.max_payload
        );
        out.extend_from_slice(rest.as_bytes());
    }
}

/// Why a request is refused, with the code and the text that Engine.IO clients show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The `transport` parameter names none of ours.
    #[error("Transport unknown")]
    UnknownTransport,
    /// No such session, or no longer.
    #[error("Session ID unknown")]
    UnknownSession,
    /// A handshake is a GET.
    #[error("Bad handshake method")]
    BadMethod,
    /// Anything else that does not fit the session.
    #[error("Bad request")]
    BadRequest,
    /// Not allowed, such as over a limit.
    #[error("Forbidden")]
    Forbidden,
    /// A revision that is switched off.
    #[error("Unsupported protocol version")]
    UnsupportedVersion,
}

impl RequestError {
    /// The number on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::UnknownTransport => 0,
            Self::UnknownSession => 1,
            Self::BadMethod => 2,
            Self::BadRequest => 3,
            Self::Forbidden => 4,
            Self::UnsupportedVersion => 5,
        }
    }

    /// The JSON body of the refusal.
    pub fn json(self) -> String {
        format!("{{\"code\":{},\"message\":\"{self}\"}}", self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_packet() {
        let mut open = Open {
            sid: "e1",
            upgrade: false,
            ping_interval_ms: 5000,
            ping_timeout_ms: 10000,
            max_payload: 52_428_800,
        };
        let write = |open: &Open<'_>| {
            let mut out = Vec::new();
            open.write(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            write(&open),
            r#"0{"sid":"e1","upgrades":[],"pingInterval":5000,"pingTimeout":10000,"maxPayload":52428800}"#
        );
        open.upgrade = true;
        assert!(write(&open).contains(r#""upgrades":["websocket"],"#));
    }

    #[test]
    fn refusals() {
        assert_eq!(
            RequestError::UnknownSession.json(),
            r#"{"code":1,"message":"Session ID unknown"}"#
        );
    }
}
