//! PRODUCER, CONSUMER and ACK.

use std::borrow::Cow;

use super::{ClientEvent, field_error, not_an_object, object_text, own};
use crate::events::EventKind;
use crate::json;
use crate::{ParseError, Ttl, parse_ttl};

/// A producer to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    /// Its name; empty stands for [`ANONYMOUS`](crate::ANONYMOUS).
    pub name: String,
    /// What its notices are named by; the socket id when absent.
    pub id: Option<String>,
    /// The lifetime of its messages, when it says so.
    pub default_ttl: Option<Ttl>,
    /// A default lifetime was given that cannot be read and counts as absent.
    pub default_ttl_unreadable: bool,
}

/// A consumer to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Its name; empty stands for [`ANONYMOUS`](crate::ANONYMOUS).
    pub name: String,
    /// What its notices are named by; the socket id when absent.
    pub id: Option<String>,
}

/// A message that was handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The message's id.
    pub msg_id: Cow<'a, str>,
}

/// The names of an ACK's field, in the order in which they count.
pub(super) const ACK_KEYS: [&str; 3] = ["msgId", "msg_id", "id"];

pub(super) type AckFields<'a> = [Option<&'a str>; ACK_KEYS.len()];

impl Producer {
    pub(super) fn from_payload(first: Option<&str>) -> Result<Self, ParseError> {
        let text = object_text(EventKind::Producer, first)?;
        let [name, id, ttl] = json::fields(&text, &["name", "id", "default_ttl"])
            .ok_or(not_an_object(EventKind::Producer))?;
        let default_ttl = ttl.and_then(parse_ttl);
        Ok(Self {
            name: registered_name(EventKind::Producer, name)?,
            id: json::label(id).map(Cow::into_owned),
            default_ttl,
            default_ttl_unreadable: ttl.is_some() && default_ttl.is_none(),
        })
    }
}

impl Consumer {
    pub(super) fn from_payload(first: Option<&str>) -> Result<Self, ParseError> {
        let text = object_text(EventKind::Consumer, first)?;
        let [name, id] =
            json::fields(&text, &["name", "id"]).ok_or(not_an_object(EventKind::Consumer))?;
        Ok(Self {
            name: registered_name(EventKind::Consumer, name)?,
            id: json::label(id).map(Cow::into_owned),
        })
    }
}

pub(super) fn ack_from_payload(first: Option<&str>) -> Result<ClientEvent<'_>, ParseError> {
    let ack = match object_text(EventKind::Ack, first)? {
        Cow::Borrowed(text) => Ack::from_text(text)?,
        Cow::Owned(text) => Ack {
            msg_id: own(Ack::from_text(&text)?.msg_id),
        },
    };
    Ok(ClientEvent::Ack(ack))
}

impl<'a> Ack<'a> {
    fn from_text(text: &'a str) -> Result<Self, ParseError> {
        let fields = json::fields(text, &ACK_KEYS).ok_or(not_an_object(EventKind::Ack))?;
        Self::from_fields(&fields)
    }

    pub(super) fn from_fields(fields: &AckFields<'a>) -> Result<Self, ParseError> {
        let mut ids = fields.iter().copied();
        let id = ids.find(|raw| json::truthy(*raw).is_some()).flatten();
        let msg_id = json::label(id).ok_or(field_error(EventKind::Ack, "msgId"))?;
        Ok(Self { msg_id })
    }
}

fn registered_name(event: EventKind, raw: Option<&str>) -> Result<String, ParseError> {
    raw.and_then(json::name)
        .map(Cow::into_owned)
        .ok_or(field_error(event, "name"))
}
