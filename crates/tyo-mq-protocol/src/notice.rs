//! What the broker tells clients: the names and payloads of its own events, and the answers to PRODUCE and UNSUBSCRIBE.

use std::borrow::Cow;
use std::fmt;

use crate::events;
use crate::json::write_json_string;
use crate::{ErrorCode, Status};

/// An event of the broker's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// A consumer subscribed to the producer that gets this.
    SubscribeTo {
        /// The producer's id, if it has one.
        producer_id: Option<&'a str>,
        /// The consumer's name.
        name: &'a str,
        /// The consumer's id.
        id: &'a str,
        /// The consumer's socket while it has one.
        socket: Option<&'a str>,
        /// Subscription keys.
        events: &'a [&'a str],
        /// Whether the consumer is online.
        online: bool,
    },
    /// To a consumer: a producer it relates to came.
    ProducerConnected {
        /// The consumer's id.
        consumer_id: &'a str,
        /// The producer's socket.
        socket: &'a str,
        /// The producer's name.
        producer: &'a str,
    },
    /// To a producer: a consumer of it came.
    ConsumerConnected {
        /// The producer's id.
        producer_id: &'a str,
        /// The consumer's socket.
        socket: &'a str,
        /// The consumer's id.
        id: &'a str,
        /// The consumer's name.
        consumer: &'a str,
    },
    /// To a consumer: a producer it relates to went.
    ProducerDisconnected {
        /// The consumer's id.
        consumer_id: &'a str,
        /// The socket that is gone.
        socket: &'a str,
        /// The producer's name.
        producer: &'a str,
    },
    /// To a producer: a consumer of it went.
    ConsumerDisconnected {
        /// The producer's id.
        producer_id: &'a str,
        /// The socket that is gone.
        socket: &'a str,
        /// The consumer's name.
        consumer: &'a str,
    },
    /// Something was refused, with a code.
    Error {
        /// Why.
        code: ErrorCode,
        /// Why, in words.
        message: &'a str,
    },
    /// Something was refused, or is worth knowing; words only.
    ErrorText(&'a str),
    /// The socket is authenticated.
    AuthOk {
        /// Its realm.
        realm: &'a str,
        /// Its role there.
        role: &'a str,
    },
    /// The socket is not authenticated, or may not do this.
    AuthFail {
        /// Why.
        code: Status,
        /// Why, in words.
        message: &'a str,
    },
    /// An ACK was taken. The payload is the answer to the Socket.IO ack, too.
    AckOk {
        /// The message's id.
        msg_id: &'a str,
    },
    /// An ACK was refused. The payload is the answer to the Socket.IO ack, too.
    AckFail {
        /// Why.
        code: Status,
        /// Why, in words.
        message: &'a str,
    },
    /// An event was dropped because its sender is over its rate.
    RateLimited {
        /// What it is over.
        reason: &'a str,
        /// Seconds to wait.
        retry_after_secs: u64,
    },
}

/// What the Socket.IO ack of an event is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm<'a> {
    /// A PRODUCE was routed, and every durable copy is stored.
    Produced {
        /// The message's id.
        msg_id: &'a str,
        /// To how many consumers it went.
        routed: u64,
        /// How many copies were stored.
        queued: u64,
    },
    /// Subscriptions were ended.
    Unsubscribed {
        /// How many.
        removed: u64,
    },
    /// The event was refused.
    Refused {
        /// Why.
        code: Status,
        /// Why, in words.
        message: &'a str,
    },
}

impl Notice<'_> {
    /// The event's name.
    #[must_use]
    pub fn event_name(&self) -> Cow<'static, str> {
        let named = |event: &str, id: &str| Cow::Owned([event, "-", id].concat());
        Cow::Borrowed(match self {
            Self::SubscribeTo {
                producer_id: Some(id),
                ..
            } => return named(events::SUBSCRIBE_TO, id),
            Self::SubscribeTo {
                producer_id: None, ..
            } => events::SUBSCRIBE_TO,
            Self::ProducerConnected {
                consumer_id: id, ..
            }
            | Self::ConsumerConnected {
                producer_id: id, ..
            } => return named(events::CONNECT, id),
            Self::ProducerDisconnected {
                consumer_id: id, ..
            }
            | Self::ConsumerDisconnected {
                producer_id: id, ..
            } => return named(events::DISCONNECT, id),
            Self::Error { .. } | Self::ErrorText(_) => events::ERROR,
            Self::AuthOk { .. } => events::AUTH_OK,
            Self::AuthFail { .. } => events::AUTH_FAIL,
            Self::AckOk { .. } => events::ACK_OK,
            Self::AckFail { .. } => events::ACK_FAIL,
            Self::RateLimited { .. } => events::RATE_LIMITED,
        })
    }

    /// Writes the event's one argument.
    pub fn write_payload(&self, out: &mut Vec<u8>) {
        let object = |out| Object::open(out);
        match *self {
            Self::ErrorText(text) => write_json_string(out, text),
            Self::Error { code, message } => {
                object(out)
                    .text("message", message)
                    .number("code", code.code())
                    .close();
            }
            Self::AuthOk { realm, role } => {
                object(out).text("realm", realm).text("role", role).close()
            }
            Self::AuthFail { code, message } => {
                object(out)
                    .number("code", code.code())
                    .text("message", message)
                    .close();
            }
            Self::AckOk { msg_id } => object(out).flag("ok", true).text("msgId", msg_id).close(),
            Self::AckFail { code, message } => Object::refusal(out, code, message),
            Self::RateLimited {
                reason,
                retry_after_secs,
            } => object(out)
                .number("code", Status::RateLimited.code())
                .text("reason", reason)
                .number("retry_after", retry_after_secs)
                .close(),
            Self::SubscribeTo { .. }
            | Self::ProducerConnected { .. }
            | Self::ConsumerConnected { .. }
            | Self::ProducerDisconnected { .. }
            | Self::ConsumerDisconnected { .. } => self.write_peer(out),
        }
    }

    /// The payload of what is about a peer.
    fn write_peer(&self, out: &mut Vec<u8>) {
        let object = match *self {
            Self::SubscribeTo {
                name,
                id,
                socket,
                events,
                online,
                ..
            } => {
                let object = Object::open(out).text("name", name).text("id", id);
                object
                    .optional_text("socket", socket)
                    .texts("events", events)
                    .flag("online", online)
            }
            Self::ProducerConnected {
                socket, producer, ..
            } => Object::presence(out, events::CONNECT, socket).text("producer", producer),
            Self::ConsumerConnected {
                socket,
                id,
                consumer,
                ..
            } => Object::presence(out, events::CONNECT, socket)
                .text("id", id)
                .text("consumer", consumer),
            Self::ProducerDisconnected {
                socket, producer, ..
            } => Object::presence(out, events::DISCONNECT, socket).text("producer", producer),
            Self::ConsumerDisconnected {
                socket, consumer, ..
            } => Object::presence(out, events::DISCONNECT, socket).text("consumer", consumer),
            _ => return,
        };
        object.close();
    }
}

impl Confirm<'_> {
    /// Writes the answer's one argument.
    pub fn write_payload(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Produced {
                msg_id,
                routed,
                queued,
            } => Object::open(out)
                .flag("ok", true)
                .text("msg_id", msg_id)
                .number("routed", routed)
                .number("queued", queued)
                .close(),
            Self::Unsubscribed { removed } => {
                Object::open(out)
                    .flag("ok", true)
                    .number("removed", removed)
                    .close();
            }
            Self::Refused { code, message } => Object::refusal(out, code, message),
        }
    }
}

/// Writes an object member by member.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Object<'o> {
    fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    fn presence(out: &'o mut Vec<u8>, event: &str, socket: &str) -> Self {
        Self::open(out).text("event", event).text("socket", socket)
    }

    fn refusal(out: &'o mut Vec<u8>, code: Status, message: &str) {
        let refusal = Self::open(out)
            .flag("ok", false)
            .number("code", code.code());
        refusal.text("message", message).close();
    }

    fn key(&mut self, key: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write_json_string(self.out, key);
        self.out.push(b':');
    }

    fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        write_json_string(self.out, value);
        self
    }

    fn optional_text(mut self, key: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            return self.text(key, value);
        }
        self.key(key);
        self.out.extend_from_slice(b"null");
        self
    }

    fn texts(mut self, key: &str, values: &[&str]) -> Self {
        self.key(key);
        self.out.push(b'[');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write_json_string(self.out, value);
        }
        self.out.push(b']');
        self
    }

    fn flag(mut self, key: &str, value: bool) -> Self {
        self.key(key);
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
        self
    }

    fn number(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.key(key);
        self.out.extend_from_slice(value.to_string().as_bytes());
        self
    }

    fn close(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(notice: Notice<'_>, name: &str, payload: &str) {
        let mut out = Vec::new();
        notice.write_payload(&mut out);
        assert_eq!(
            (
                notice.event_name().as_ref(),
                String::from_utf8(out).unwrap().as_str()
            ),
            (name, payload)
        );
    }

    fn check_confirm(confirm: Confirm<'_>, payload: &str) {
        let mut out = Vec::new();
        confirm.write_payload(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), payload);
    }

    #[test]
    fn subscriptions() {
        let notice = |producer_id, socket, events, online| Notice::SubscribeTo {
            producer_id,
            name: "c",
            id: "c-1",
            socket,
            events,
            online,
        };
        check(
            notice(Some("p-1"), Some("S"), &["p-e", "p-\"f"], true),
            "SUBSCRIBE-TO-p-1",
            r#"{"name":"c","id":"c-1","socket":"S","events":["p-e","p-\"f"],"online":true}"#,
        );
        check(
            notice(None, None, &[], false),
            "SUBSCRIBE-TO",
            r#"{"name":"c","id":"c-1","socket":null,"events":[],"online":false}"#,
        );
    }

    #[test]
    fn presence() {
        check(
            Notice::ProducerConnected {
                consumer_id: "c",
                socket: "S",
                producer: "P",
            },
            "CONNECT-c",
            r#"{"event":"CONNECT","socket":"S","producer":"P"}"#,
        );
        check(
            Notice::ConsumerConnected {
                producer_id: "u",
                socket: "S",
                id: "i",
                consumer: "c",
            },
            "CONNECT-u",
            r#"{"event":"CONNECT","socket":"S","id":"i","consumer":"c"}"#,
        );
        check(
            Notice::ProducerDisconnected {
                consumer_id: "c",
                socket: "S",
                producer: "P",
            },
            "DISCONNECT-c",
            r#"{"event":"DISCONNECT","socket":"S","producer":"P"}"#,
        );
        check(
            Notice::ConsumerDisconnected {
                producer_id: "u",
                socket: "S",
                consumer: "c",
            },
            "DISCONNECT-u",
            r#"{"event":"DISCONNECT","socket":"S","consumer":"c"}"#,
        );
    }

    #[test]
    fn refusals() {
        check(
            Notice::Error {
                code: ErrorCode::DuplicateConsumer,
                message: "a duplicate",
            },
            "ERROR",
            r#"{"message":"a duplicate","code":-3}"#,
        );
        check(
            Notice::ErrorText("joined \"again\""),
            "ERROR",
            r#""joined \"again\"""#,
        );
        check(
            Notice::AuthOk {
                realm: "default",
                role: "both",
            },
            "AUTH_OK",
            r#"{"realm":"default","role":"both"}"#,
        );
        check(
            Notice::AuthFail {
                code: Status::Unauthenticated,
                message: "no",
            },
            "AUTH_FAIL",
            r#"{"code":401,"message":"no"}"#,
        );
        check(
            Notice::AckOk { msg_id: "m" },
            "ACK_OK",
            r#"{"ok":true,"msgId":"m"}"#,
        );
        check(
            Notice::AckFail {
                code: Status::NotFound,
                message: "no",
            },
            "ACK_FAIL",
            r#"{"ok":false,"code":404,"message":"no"}"#,
        );
        check(
            Notice::RateLimited {
                reason: "messages",
                retry_after_secs: 1,
            },
            "RATE_LIMITED",
            r#"{"code":429,"reason":"messages","retry_after":1}"#,
        );
    }

    #[test]
    fn confirms() {
        check_confirm(
            Confirm::Produced {
                msg_id: "m",
                routed: 2,
                queued: 1,
            },
            r#"{"ok":true,"msg_id":"m","routed":2,"queued":1}"#,
        );
        check_confirm(
            Confirm::Unsubscribed { removed: 1 },
            r#"{"ok":true,"removed":1}"#,
        );
        check_confirm(
            Confirm::Refused {
                code: Status::QueueFull,
                message: "full",
            },
            r#"{"ok":false,"code":507,"message":"full"}"#,
        );
    }
}
