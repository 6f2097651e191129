//! The array of an event: its name, and its first argument as text. One pass; PRODUCE, the event that counts, gets its fields in the same one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::produce::{PRODUCE_KEYS, ProduceFields};
use crate::ParseError;
use crate::events::EventKind;
use crate::json::FieldsSeed;

pub(super) struct Call<'a> {
    pub(super) name: Name<'a>,
    pub(super) first: First<'a>,
}

/// The first argument.
pub(super) enum First<'a> {
    /// An object, of PRODUCE, whose fields were read.
    Fields,
    /// Anything, unread.
    Text(Option<&'a str>),
}

pub(super) enum Name<'a> {
    Known(EventKind),
    Other(Cow<'a, str>),
}

impl<'a> Call<'a> {
    /// Reads the array; into `fields`, which are empty yet, goes what PRODUCE has.
    pub(super) fn read(args: &'a str, fields: &mut ProduceFields<'a>) -> Result<Self, ParseError> {
        // What is wrong with a PRODUCE that is no object, the second reading finds out.
        read(args, Some(fields))
            .or_else(|_| read(args, None))
            .map_err(|_| ParseError::Packet)
    }
}

fn read<'a>(
    args: &'a str,
    fields: Option<&mut ProduceFields<'a>>,
) -> Result<Call<'a>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(args);
    let call = reader.deserialize_seq(CallVisitor { fields })?;
    reader.end()?;
    Ok(call)
}

struct CallVisitor<'v, 'de> {
    fields: Option<&'v mut ProduceFields<'de>>,
}

impl<'de> Visitor<'de> for CallVisitor<'_, 'de> {
    type Value = Call<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Call<'de>, A::Error> {
        let missing = || A::Error::custom("no event name or payload");
        let name = seq.next_element_seed(NameSeed)?.ok_or_else(missing)?;
        let first = match (&name, self.fields) {
            (Name::Known(EventKind::Produce), Some(values)) => {
                let seed = FieldsSeed {
                    keys: &PRODUCE_KEYS,
                    values,
                };
                seq.next_element_seed(seed)?.ok_or_else(missing)?;
                First::Fields
            }
            _ => First::Text(seq.next_element::<&RawValue>()?.map(RawValue::get)),
        };
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Call { name, first })
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
