//! Reading JSON as text: fields of an object, strings, truth. Values are not built and depth costs no stack.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::MAX_NAME_BYTES;
use crate::scan::plain_prefix;

/// Writes a JSON string: quotes, and escapes where JSON wants them.
pub fn write_json_string(out: &mut Vec<u8>, text: &str) {
    if plain_prefix(text.as_bytes()) == text.len() {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("a string goes into memory");
    }
}

/// The number of UTF-16 units of a text given as UTF-8.
#[must_use]
pub fn utf16_len(text: &[u8]) -> usize {
    // Sums of so few fit a byte, which makes vector instructions of the loop.
    let (strides, rest) = text.as_chunks::<64>();
    let strides = strides
        .iter()
        .map(|stride| usize::from(utf16_units(stride)));
    strides.sum::<usize>() + usize::from(utf16_units(rest))
}

/// Of at most 127 bytes: each character has one byte that continues none, and the four-byte ones are two units.
fn utf16_units(text: &[u8]) -> u8 {
    let units = |byte: &u8| u8::from(byte & 0xC0 != 0x80) + u8::from(*byte >= 0xF0);
    text.iter().map(units).sum()
}

/// Whether JavaScript would take the JSON value for true.
#[must_use]
pub fn is_truthy(raw: &str) -> bool {
    match raw {
        "null" | "false" | "\"\"" => false,
        _ => number(raw).is_none_or(|number| number != 0.0),
    }
}

/// The fields of an object by name, each as text; the last one counts when a name comes twice.
pub(crate) fn fields<'a, const N: usize>(
    json: &'a str,
    keys: &'static [&'static str; N],
) -> Option<[Option<&'a str>; N]> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let mut values = [None; N];
    let seed = FieldsSeed {
        keys,
        values: &mut values,
    };
    seed.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(values)
}

/// As [`fields`], inside a larger text and into a place of the caller's.
pub(crate) struct FieldsSeed<'v, 'de, const N: usize> {
    pub(crate) keys: &'static [&'static str; N],
    pub(crate) values: &'v mut [Option<&'de str>; N],
}

impl<'de, const N: usize> DeserializeSeed<'de> for FieldsSeed<'_, 'de, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for FieldsSeed<'_, 'de, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(KeySeed { keys: self.keys })? {
            match key {
                Some(index) => self.values[index] = Some(map.next_value::<&RawValue>()?.get()),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Finds a key's place in a list. Keys are read as bytes: one with half a surrogate pair is just another key.
struct KeySeed {
    keys: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_bytes(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_bytes<E>(self, key: &[u8]) -> Result<Self::Value, E> {
        Ok(self.keys.iter().position(|wanted| wanted.as_bytes() == key))
    }
}

/// The elements of an array, each as text; none when it is no array or has more than `max`.
pub(crate) fn items(json: &str, max: usize) -> Option<Vec<&str>> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let items = reader.deserialize_seq(ItemsVisitor { max }).ok()?;
    reader.end().ok()?;
    Some(items)
}

struct ItemsVisitor {
    max: usize,
}

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {} elements", self.max)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<&RawValue>()? {
            if items.len() == self.max {
                return Err(A::Error::invalid_length(self.max + 1, &self));
            }
            items.push(item.get());
        }
        Ok(items)
    }
}

/// The value unless it is missing or null.
pub(crate) fn present(raw: Option<&str>) -> Option<&str> {
    raw.filter(|&raw| raw != "null")
}

/// The value if JavaScript would take it for true.
pub(crate) fn truthy(raw: Option<&str>) -> Option<&str> {
    raw.filter(|raw| is_truthy(raw))
}

/// The text of a JSON string; none for other values and for strings that are not Unicode text.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.as_bytes().contains(&b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

/// A name: a string of at most [`MAX_NAME_BYTES`].
pub(crate) fn name(raw: &str) -> Option<Cow<'_, str>> {
    string(raw).filter(|name| name.len() <= MAX_NAME_BYTES)
}

/// A name where any scalar serves: a string that is not empty, or a number's digits.
pub(crate) fn label(raw: Option<&str>) -> Option<Cow<'_, str>> {
    let raw = truthy(raw)?;
    let label = if raw.starts_with('"') {
        string(raw)?
    } else {
        Cow::Borrowed(number_text(raw)?)
    };
    (label.len() <= MAX_NAME_BYTES).then_some(label)
}

/// The value of a JSON number; infinite when no float can hold it.
pub(crate) fn number(raw: &str) -> Option<f64> {
    number_text(raw)?.parse().ok()
}

/// A whole number from 0 to `u32::MAX`, also when it is written as `1.0` or `1e2`.
pub(crate) fn whole_number(raw: &str) -> Option<u32> {
    let value = number(raw)?;
    (value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value)).then_some(value as u32)
}

fn number_text(raw: &str) -> Option<&str> {
    matches!(raw.as_bytes().first(), Some(b'-' | b'0'..=b'9')).then_some(raw)
}
