//! The array of an event: its name, and its first argument as text. One pass; PRODUCE, the event that counts, gets its fields in the same one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::produce::{PRODUCE_KEYS, ProduceFields};
use crate::ParseError;
use crate::events::EventKind;
use crate::json::FieldsSeed;

/// What reading found.
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack for one call; boxing would cost each message an allocation"
)]
pub(super) enum Read<'a> {
    /// PRODUCE with an object.
    Produce(ProduceFields<'a>),
    /// Any event, its first argument unread.
    Call(Call<'a>),
}

pub(super) struct Call<'a> {
    pub(super) name: Name<'a>,
    pub(super) first: Option<&'a str>,
}

pub(super) enum Name<'a> {
    Known(EventKind),
    Other(Cow<'a, str>),
}

impl<'a> Call<'a> {
    pub(super) fn read(args: &'a str) -> Result<Read<'a>, ParseError> {
        // What is wrong with a PRODUCE that is no object, the second reading finds out.
        read(args, true)
            .or_else(|_| read(args, false))
            .map_err(|_| ParseError::Packet)
    }
}

fn read(args: &str, produce_fields: bool) -> Result<Read<'_>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(args);
    let read = reader.deserialize_seq(CallVisitor { produce_fields })?;
    reader.end()?;
    Ok(read)
}

struct CallVisitor {
    produce_fields: bool,
}

impl<'de> Visitor<'de> for CallVisitor {
    type Value = Read<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Read<'de>, A::Error> {
        let missing = || A::Error::custom("no event name");
        let name = seq.next_element_seed(NameSeed)?.ok_or_else(missing)?;
        let read = match name {
            Name::Known(EventKind::Produce) if self.produce_fields => {
                let fields = seq.next_element_seed(FieldsSeed {
                    keys: &PRODUCE_KEYS,
                })?;
                Read::Produce(fields.ok_or_else(missing)?)
            }
            name => {
                let first = seq.next_element::<&RawValue>()?.map(RawValue::get);
                Read::Call(Call { name, first })
            }
        };
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(read)
    }
}

struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Name<'de>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Name<'de>, D::Error> {
        reader.deserialize_bytes(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event name")
    }

    fn visit_borrowed_bytes<E>(self, name: &'de [u8]) -> Result<Name<'de>, E> {
        Ok(known(name).unwrap_or_else(|| Name::Other(String::from_utf8_lossy(name))))
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Name<'de>, E> {
        Ok(known(name)
            .unwrap_or_else(|| Name::Other(Cow::Owned(String::from_utf8_lossy(name).into_owned()))))
    }
}

fn known(name: &[u8]) -> Option<Name<'static>> {
    EventKind::from_name(name).map(Name::Known)
}
