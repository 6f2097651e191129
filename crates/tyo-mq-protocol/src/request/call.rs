//! The array of an event: its name, and its first argument as text. One pass; PRODUCE, PRODUCE_CHUNK
//! and ACK, the events that count, get their fields in the same one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::produce::{CHUNK_KEYS, ChunkFields, PRODUCE_KEYS, ProduceFields};
use super::registration::{ACK_KEYS, AckFields};
use crate::ParseError;
use crate::events::EventKind;
use crate::json::FieldsSeed;
use crate::scan::Scanner;

pub(super) struct Call<'a> {
    pub(super) name: Name<'a>,
    pub(super) first: First<'a>,
}

/// The first argument.
pub(super) enum First<'a> {
    /// An object, of PRODUCE, whose fields were read.
    Fields,
    /// An object, of ACK, with its fields.
    AckFields(AckFields<'a>),
    /// An object, of PRODUCE_CHUNK, with its fields.
    ChunkFields(ChunkFields<'a>),
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
        if let Some(call) = scan(args, fields) {
            return Ok(call);
        }
        *fields = ProduceFields::default();
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

/// The fast way through a PRODUCE, PRODUCE_CHUNK or ACK with an object whose keys are plain text. None is no verdict: what is wrong, or
/// only unusual, the reading by serde finds out.
fn scan<'a>(args: &'a str, fields: &mut ProduceFields<'a>) -> Option<Call<'a>> {
    let mut scanner = Scanner::new(args);
    let name = scanner.take(b'[').then(|| scanner.string())??;
    let (kind, first) = match name {
        "\"PRODUCE\"" => {
            scan_object(scanner, &PRODUCE_KEYS, fields)?;
            (EventKind::Produce, First::Fields)
        }
        "\"ACK\"" => {
            let mut fields = AckFields::default();
            scan_object(scanner, &ACK_KEYS, &mut fields)?;
            (EventKind::Ack, First::AckFields(fields))
        }
        "\"PRODUCE_CHUNK\"" => {
            let mut fields = ChunkFields::default();
            scan_object(scanner, &CHUNK_KEYS, &mut fields)?;
            (EventKind::ProduceChunk, First::ChunkFields(fields))
        }
        _ => return None,
    };
    Some(Call {
        name: Name::Known(kind),
        first,
    })
}

/// What follows the name: an object with its fields, and arguments that nobody wants.
fn scan_object<'a, const N: usize>(
    mut scanner: Scanner<'a>,
    keys: &[&str; N],
    fields: &mut [Option<&'a str>; N],
) -> Option<()> {
    if !(scanner.take(b',') && scanner.take(b'{')) {
        return None;
    }
    let mut more = !scanner.take(b'}');
    while more {
        let key = scanner.string().filter(|key| !key.contains('\\'))?;
        let value = scanner.take(b':').then(|| scanner.value())??;
        let key = &key[1..key.len() - 1];
        if let Some(place) = keys.iter().position(|known| *known == key) {
            fields[place] = Some(value);
        }
        more = scanner.take(b',');
        if !more && !scanner.take(b'}') {
            return None;
        }
    }
    while scanner.take(b',') {
        scanner.value()?;
    }
    (scanner.take(b']') && scanner.is_at_end()).then_some(())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The fast way agrees with serde wherever it gives a verdict, and gives one on plain messages.
    fn check(args: &str, fast: bool) {
        let (mut scanned, mut read_fields) = (ProduceFields::default(), ProduceFields::default());
        let verdict = scan(args, &mut scanned);
        assert_eq!(verdict.is_some(), fast, "{args:?}");
        let Some(verdict) = verdict else {
            return;
        };
        let call = read(args, Some(&mut read_fields)).unwrap();
        match (verdict.first, call.first) {
            (First::Fields, First::Fields) => assert_eq!(scanned, read_fields),
            (First::AckFields(fields), First::Text(Some(text))) => {
                assert_eq!(fields, crate::json::fields(text, &ACK_KEYS).unwrap());
            }
            (First::ChunkFields(fields), First::Text(Some(text))) => {
                assert_eq!(fields, crate::json::fields(text, &CHUNK_KEYS).unwrap());
            }
            _ => panic!("{args:?} is read in two ways"),
        }
    }

    #[test]
    fn plain_messages_take_the_fast_way() {
        check(
            r#"["PRODUCE",{"event":"e","message":{"a":[1,"x"]},"from":"p"}]"#,
            true,
        );
        check(
            r#" [ "PRODUCE" , { "event" : "e" , "event":"f" } , 1 , {} ] "#,
            true,
        );
        check(r#"["PRODUCE",{}]"#, true);
        check(r#"["PRODUCE",{"\u0065vent":"e"}]"#, false);
        check(r#"["PRODUCE",{"event":"e",}]"#, false);
        check(r#"["PRODUCE",{"event":"e"}]x"#, false);
        check(r#"["PRODUCE",{"event":"e"}"#, false);
        check(r#"["PRODUCE","{}"]"#, false);
        check(r#"["PRODUCE"]"#, false);
        check(r#"["PING",{}]"#, false);
        check(r#"["ACK",{"msgId":"m","id":7,"more":[{}]},1]"#, true);
        check(r#"["ACK",{}]"#, true);
        check(
            r#"["PRODUCE_CHUNK",{"transferId":"t","index":0,"total":2,"data":"\"x"}]"#,
            true,
        );
        check(r#"["PRODUCE_CHUNK",{"transferId":"t"]"#, false);
        check(r#"["ACK",{"msgId":"m"}"#, false);
        check(r#"["ACK","{}"]"#, false);
        check(r#"["ACK",null]"#, false);
    }

    proptest! {
        #[test]
        fn a_verdict_is_serdes(middle in "[\\[\\]{},:\" \\\\aevnt0-1.-]{0,30}") {
            let args = format!("[\"PRODUCE\",{{\"event\":\"e\"{middle}}}]");
            let mut scanned = ProduceFields::default();
            let verdict = scan(&args, &mut scanned);
            let mut fields = ProduceFields::default();
            let judged = read(&args, Some(&mut fields)).is_ok();
            prop_assert!(verdict.is_none() || judged && scanned == fields, "{}", args);
            prop_assert!(verdict.is_some() || !judged || args.contains('\\'), "{}", args);
        }
    }
}
