//! PRODUCE and PRODUCE_CHUNK.

use std::borrow::Cow;

use super::{ClientEvent, field_error, not_an_object, object_text, own};
use crate::events::EventKind;
use crate::json;
use crate::{ANONYMOUS, MAX_RECIPIENTS, ParseError, RawJson, Ttl, parse_ttl};

/// A message to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Produce<'a> {
    /// The event, case kept; may be empty.
    pub event: Cow<'a, str>,
    /// The payload as it came; absent when the sender gave none.
    pub message: Option<RawJson<'a>>,
    /// The producer, unless it is absent or empty: see [`producer`](Self::producer).
    pub from: Option<Cow<'a, str>>,
    /// The message's own lifetime; when absent the producer's default applies.
    pub ttl: Option<Ttl>,
    /// A lifetime was given that cannot be read and counts as absent.
    pub ttl_unreadable: bool,
    /// Store it for every consumer that is away, durable or not.
    pub guaranteed: bool,
    /// Whom to send it to instead of the subscribers.
    pub broadcast: Option<Broadcast<'a>>,
    /// Passed through when JavaScript takes it for true.
    pub to: Option<RawJson<'a>>,
    /// The encryption envelope, passed through likewise.
    pub enc: Option<RawJson<'a>>,
    /// Delivered as `content_type`, likewise.
    pub content_type: Option<RawJson<'a>>,
    /// The id for a producer that registers by producing.
    pub id: Option<Cow<'a, str>>,
    /// Deliver to these consumers only.
    pub recipients: Option<Vec<Cow<'a, str>>>,
}

/// Whom a broadcast is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broadcast<'a> {
    /// Every registered socket of the realm.
    Realm,
    /// Every member of the group.
    Group(Cow<'a, str>),
}

/// A piece of a PRODUCE payload's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceChunk<'a> {
    /// Names the transfer on its socket; empty when the sender gave none.
    pub transfer_id: Cow<'a, str>,
    /// The piece's place.
    pub index: u32,
    /// How many pieces there are.
    pub total: u32,
    /// The piece as a JSON string, quotes and escapes in place: it may begin or end inside a surrogate pair.
    pub data: RawJson<'a>,
}

/// Fields of PRODUCE, the ones that every message has first.
pub(super) const PRODUCE_KEYS: [&str; 19] = [
    "event",
    "message",
    "from",
    "ttl",
    "lifespan",
    "method",
    "broadcast",
    "group",
    "to",
    "enc",
    "contentType",
    "id",
    "recipients",
    "guaranteed",
    "guaranteed_delivery",
    "guaranteedDelivery",
    "durable",
    "delivery",
    "delivery_mode",
];

/// The fields of a PRODUCE_CHUNK.
pub(super) const CHUNK_KEYS: [&str; 4] = ["transferId", "index", "total", "data"];

pub(super) type ChunkFields<'a> = [Option<&'a str>; CHUNK_KEYS.len()];

pub(super) type ProduceFields<'a> = [Option<&'a str>; PRODUCE_KEYS.len()];

/// Reads the text of a PRODUCE payload, as chunks add up to or as an HTTP request brings it.
///
/// # Errors
/// When it is no JSON object or a field is malformed.
pub fn parse_produce(text: &str) -> Result<Produce<'_>, ParseError> {
    let fields = json::fields(text, &PRODUCE_KEYS).ok_or(not_an_object(EventKind::Produce))?;
    Produce::from_fields(&fields)
}

pub(super) fn from_payload(first: Option<&str>) -> Result<ClientEvent<'_>, ParseError> {
    let produce = match object_text(EventKind::Produce, first)? {
        Cow::Borrowed(text) => parse_produce(text)?,
        Cow::Owned(text) => parse_produce(&text)?.into_owned(),
    };
    Ok(ClientEvent::Produce(produce))
}

pub(super) fn chunk_from_payload(first: Option<&str>) -> Result<ClientEvent<'_>, ParseError> {
    let chunk = match object_text(EventKind::ProduceChunk, first)? {
        Cow::Borrowed(text) => ProduceChunk::from_text(text)?,
        Cow::Owned(text) => ProduceChunk::from_text(&text)?.into_owned(),
    };
    Ok(ClientEvent::ProduceChunk(chunk))
}

impl<'a> Produce<'a> {
    /// The producer's name: [`ANONYMOUS`] when the sender gave none.
    #[must_use]
    pub fn producer(&self) -> &str {
        self.from.as_deref().unwrap_or(ANONYMOUS)
    }

    pub(super) fn from_fields(fields: &ProduceFields<'a>) -> Result<Self, ParseError> {
        let [
            event,
            message,
            from,
            ttl,
            lifespan,
            method,
            broadcast,
            group,
            rest @ ..,
        ] = *fields;
        let [to, enc, content_type, id, recipients, flags @ ..] = rest;
        let raw = |value| json::truthy(value).map(Cow::Borrowed);
        let (ttl, ttl_unreadable) = lifetime(ttl, lifespan);
        Ok(Self {
            event: event.and_then(event_name).ok_or(malformed("event"))?,
            message: message.map(Cow::Borrowed),
            from: match json::present(from) {
                Some(raw) => Some(json::name(raw).ok_or(malformed("from"))?),
                None => None,
            }
            .filter(|name| !name.is_empty()),
            ttl,
            ttl_unreadable,
            guaranteed: is_guaranteed(flags),
            broadcast: audience(method, broadcast, group),
            to: raw(to),
            enc: raw(enc),
            content_type: raw(content_type),
            id: json::label(id),
            recipients: names(recipients).ok_or(malformed("recipients"))?,
        })
    }

    /// The same, borrowing from nothing.
    #[must_use]
    pub fn into_owned(self) -> Produce<'static> {
        Produce {
            event: own(self.event),
            message: self.message.map(own),
            from: self.from.map(own),
            ttl: self.ttl,
            ttl_unreadable: self.ttl_unreadable,
            guaranteed: self.guaranteed,
            broadcast: self.broadcast.map(Broadcast::into_owned),
            to: self.to.map(own),
            enc: self.enc.map(own),
            content_type: self.content_type.map(own),
            id: self.id.map(own),
            recipients: self
                .recipients
                .map(|names| names.into_iter().map(own).collect()),
        }
    }
}

impl Broadcast<'_> {
    /// The same, borrowing from nothing.
    #[must_use]
    pub fn into_owned(self) -> Broadcast<'static> {
        match self {
            Self::Realm => Broadcast::Realm,
            Self::Group(name) => Broadcast::Group(own(name)),
        }
    }
}

impl<'a> ProduceChunk<'a> {
    fn from_text(text: &'a str) -> Result<Self, ParseError> {
        let fields =
            json::fields(text, &CHUNK_KEYS).ok_or(not_an_object(EventKind::ProduceChunk))?;
        Self::from_fields(&fields)
    }

    pub(super) fn from_fields(fields: &ChunkFields<'a>) -> Result<Self, ParseError> {
        let malformed = |field| field_error(EventKind::ProduceChunk, field);
        let [id, index, total, data] = *fields;
        let transfer_id = match json::present(id) {
            Some(raw) if raw.starts_with('"') => json::name(raw).ok_or(malformed("transferId"))?,
            Some(raw) => Cow::Borrowed(
                json::number(raw)
                    .map(|_| raw)
                    .ok_or(malformed("transferId"))?,
            ),
            None => Cow::Borrowed(""),
        };
        Ok(Self {
            transfer_id,
            index: index
                .and_then(json::whole_number)
                .ok_or(malformed("index"))?,
            total: total
                .and_then(json::whole_number)
                .ok_or(malformed("total"))?,
            data: data
                .filter(|raw| raw.starts_with('"'))
                .map(Cow::Borrowed)
                .ok_or(malformed("data"))?,
        })
    }

    /// The same, borrowing from nothing.
    #[must_use]
    pub fn into_owned(self) -> ProduceChunk<'static> {
        let Self {
            transfer_id,
            index,
            total,
            data,
        } = self;
        ProduceChunk {
            transfer_id: own(transfer_id),
            index,
            total,
            data: own(data),
        }
    }
}

/// An event's name: a string, or an object that has it as its own `event`.
pub(super) fn event_name(raw: &str) -> Option<Cow<'_, str>> {
    if raw.starts_with('"') {
        return json::name(raw);
    }
    let [event] = json::fields(raw, &["event"])?;
    event.and_then(json::name)
}

fn malformed(field: &'static str) -> ParseError {
    field_error(EventKind::Produce, field)
}

/// `ttl`, else `lifespan` (where -1 means that it was not given).
fn lifetime(ttl: Option<&str>, lifespan: Option<&str>) -> (Option<Ttl>, bool) {
    let ttl_given = ttl.is_some();
    let ttl = ttl.map(parse_ttl);
    if let Some(Some(ttl)) = ttl {
        return (Some(ttl), false);
    }
    let lifespan = json::present(lifespan).filter(|raw| json::number(raw) != Some(-1.0));
    let lifespan_given = lifespan.is_some();
    let lifespan = lifespan.and_then(parse_ttl);
    (
        lifespan,
        lifespan.is_none() && (ttl_given || lifespan_given),
    )
}

/// Four flags, any of which does, and two words.
fn is_guaranteed(flags: [Option<&str>; 6]) -> bool {
    let [a, b, c, d, delivery, delivery_mode] = flags;
    [a, b, c, d]
        .into_iter()
        .any(|raw| json::truthy(raw).is_some())
        || [delivery, delivery_mode]
            .into_iter()
            .any(|raw| is_word(raw, "guaranteed"))
}

fn audience<'a>(
    method: Option<&str>,
    broadcast: Option<&str>,
    group: Option<&'a str>,
) -> Option<Broadcast<'a>> {
    if !is_word(method, "broadcast") {
        return None;
    }
    let group = json::label(group).filter(|_| is_word(broadcast, "group"));
    Some(group.map_or(Broadcast::Realm, Broadcast::Group))
}

fn is_word(raw: Option<&str>, word: &str) -> bool {
    raw.and_then(json::string).is_some_and(|text| text == word)
}

/// A list of names, or one name; the outer none is for anything else.
fn names(raw: Option<&str>) -> Option<Option<Vec<Cow<'_, str>>>> {
    let Some(raw) = json::present(raw) else {
        return Some(None);
    };
    if raw.starts_with('"') {
        return Some(Some(vec![json::name(raw)?]));
    }
    let items = json::items(raw, MAX_RECIPIENTS)?;
    items
        .into_iter()
        .map(json::name)
        .collect::<Option<Vec<_>>>()
        .map(Some)
}
