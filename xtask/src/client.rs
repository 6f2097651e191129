//! A small Socket.IO client that blocks: one WebSocket, the main namespace, events and their acks. Knows no broker events.

use std::fmt;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;
use tungstenite::{Message, WebSocket};

/// How long connecting and each write may take. On a busy machine this is much; a broker that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that has joined the main namespace.
pub(crate) struct Client {
    socket: WebSocket<TcpStream>,
    next_ack: u64,
    wait: Duration,
}

/// What the broker sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    /// An event with its first argument.
    Event { name: String, payload: Value },
    /// The answer to the call with this ack id.
    Answer { ack: u64, payload: Value },
}

/// The connection ended, and how.
#[derive(Debug, Clone)]
pub(crate) struct Gone(String);

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the connection ended: {}", self.0)
    }
}

impl std::error::Error for Gone {}

impl Client {
    /// Connects and joins.
    pub(crate) fn connect(addr: SocketAddr) -> Result<Self, Gone> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE).map_err(gone)?;
        stream.set_nodelay(true).map_err(gone)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(gone)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(gone)?;
        let url = format!("ws://{addr}/socket.io/?EIO=4&transport=websocket");
        let (socket, _) = tungstenite::client(url, stream).map_err(gone)?;
        let mut client = Self {
            socket,
            next_ack: 0,
            wait: PATIENCE,
        };
        client.expect_start("0{")?;
        client.write("40".to_owned())?;
        client.expect_start("40{")?;
        Ok(client)
    }

    /// Sends an event that asks for no answer.
    pub(crate) fn emit(&mut self, name: &str, payload: &Value) -> Result<(), Gone> {
        self.write(format!("42[\"{name}\",{payload}]"))
    }

    /// Sends an event and returns the ack id that its answer will have.
    pub(crate) fn call(&mut self, name: &str, payload: &Value) -> Result<u64, Gone> {
        let ack = self.next_ack;
        self.next_ack += 1;
        self.write(format!("42{ack}[\"{name}\",{payload}]"))?;
        Ok(ack)
    }

    /// The next event or answer, or nothing if none came for so long. Heartbeats are answered on the way.
    pub(crate) fn next(&mut self, wait: Duration) -> Result<Option<Incoming>, Gone> {
        if wait != self.wait {
            let stream = self.socket.get_ref();
            stream.set_read_timeout(Some(wait)).map_err(gone)?;
            self.wait = wait;
        }
        loop {
            let Some(text) = self.read()? else {
                return Ok(None);
            };
            match parse(&text) {
                Packet::Ping => self.write("3".to_owned())?,
                Packet::Left => return Err(Gone("the broker closed the namespace".to_owned())),
                Packet::Incoming(incoming) => return Ok(Some(incoming)),
                Packet::Other => {}
            }
        }
    }

    /// Ends the connection by a reset, as a machine does that lost its process.
    pub(crate) fn reset(self) -> Result<(), Gone> {
        let stream = self.socket.get_ref();
        socket2::SockRef::from(stream)
            .set_linger(Some(Duration::ZERO))
            .map_err(gone)
    }

    fn expect_start(&mut self, start: &str) -> Result<(), Gone> {
        match self.read()? {
            Some(text) if text.starts_with(start) => Ok(()),
            Some(text) => Err(Gone(format!("expected {start}, got {text}"))),
            None => Err(Gone(format!("no {start} came"))),
        }
    }

    /// The next text; nothing if none came in time.
    fn read(&mut self) -> Result<Option<String>, Gone> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Ok(Some(text.as_str().to_owned())),
                Ok(Message::Close(frame)) => return Err(Gone(format!("close frame {frame:?}"))),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if is_wait_over(error.kind()) => {
                    return Ok(None);
                }
                Err(error) => return Err(gone(error)),
            }
        }
    }

    fn write(&mut self, text: String) -> Result<(), Gone> {
        self.socket.send(Message::text(text)).map_err(gone)
    }
}

fn is_wait_over(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn gone(error: impl fmt::Display) -> Gone {
    Gone(error.to_string())
}

#[derive(Debug, PartialEq)]
enum Packet {
    Ping,
    Left,
    Incoming(Incoming),
    Other,
}

fn parse(text: &str) -> Packet {
    if text == "2" {
        return Packet::Ping;
    }
    if text.starts_with("41") || text == "1" {
        return Packet::Left;
    }
    let Some(kind) = text.get(..2).filter(|kind| matches!(*kind, "42" | "43")) else {
        return Packet::Other;
    };
    let rest = &text[2..];
    let (ack, args) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
    let Ok(Value::Array(args)) = serde_json::from_str(args) else {
        return Packet::Other;
    };
    let mut args = args.into_iter();
    let mut next = || args.next().unwrap_or_default();
    match (kind, ack.parse()) {
        ("43", Ok(ack)) => Packet::Incoming(Incoming::Answer {
            ack,
            payload: next(),
        }),
        ("42", _) => match next() {
            Value::String(name) => Packet::Incoming(Incoming::Event {
                name,
                payload: next(),
            }),
            _ => Packet::Other,
        },
        _ => Packet::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expected: Packet) {
        assert_eq!(parse(text), expected, "{text}");
    }

    #[test]
    fn packets_are_told_apart() {
        let event = |name: &str, payload| {
            Packet::Incoming(Incoming::Event {
                name: name.to_owned(),
                payload,
            })
        };
        check("2", Packet::Ping);
        check("41", Packet::Left);
        check("42[\"a\",{\"b\":1}]", event("a", json!({"b": 1})));
        check("427[\"a\"]", event("a", Value::Null));
        let answer = Incoming::Answer {
            ack: 12,
            payload: json!({"ok": true}),
        };
        check("4312[{\"ok\":true}]", Packet::Incoming(answer));
        check("43[1]", Packet::Other);
        check("42[1]", Packet::Other);
        check("42", Packet::Other);
        check("6", Packet::Other);
        check("ä", Packet::Other);
    }
}
