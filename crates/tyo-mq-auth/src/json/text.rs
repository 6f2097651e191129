//! A JavaScript string: UTF-8, and for halves of surrogate pairs that stand alone the three bytes that UTF-8 forbids (WTF-8).

use std::cmp::Ordering;

/// A JavaScript string.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Box<[u8]>);

/// A character of a [`Text`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Char(char),
    Lone(u16),
}

impl Text {
    pub(super) fn from_wtf8(bytes: Vec<u8>) -> Self {
        Self(bytes.into_boxed_slice())
    }

    /// The bytes: UTF-8 unless there are lone surrogates.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, unless there are lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text with U+FFFD for lone surrogates.
    #[must_use]
    pub fn to_lossy(&self) -> String {
        self.units()
            .map(|unit| match unit {
                Unit::Char(c) => c,
                Unit::Lone(_) => char::REPLACEMENT_CHARACTER,
            })
            .collect()
    }

    /// Whether it has no characters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The order of JavaScript's sort: by UTF-16 units.
    #[must_use]
    pub fn cmp_utf16(&self, other: &Self) -> Ordering {
        self.utf16().cmp(other.utf16())
    }

    pub(super) fn units(&self) -> impl Iterator<Item = Unit> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (unit, tail) = split_first(rest)?;
            rest = tail;
            Some(unit)
        })
    }

    fn utf16(&self) -> impl Iterator<Item = u16> {
        self.units().flat_map(|unit| {
            let mut buffer = [0; 2];
            let pair = match unit {
                Unit::Char(c) => match *c.encode_utf16(&mut buffer) {
                    [high, low] => [Some(high), Some(low)],
                    [only] => [Some(only), None],
                    _ => [None, None],
                },
                Unit::Lone(unit) => [Some(unit), None],
            };
            pair.into_iter().flatten()
        })
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "text of {} bytes", self.0.len())
    }
}

fn split_first(bytes: &[u8]) -> Option<(Unit, &[u8])> {
    let &first = bytes.first()?;
    let length = match first {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    };
    let (character, rest) = bytes.split_at(length.min(bytes.len()));
    let unit = match *character {
        [0xED, high @ 0xA0..=0xBF, low] => {
            Unit::Lone(0xD000 | u16::from(high & 0x3F) << 6 | u16::from(low & 0x3F))
        }
        _ => Unit::Char(
            std::str::from_utf8(character)
                .ok()
                .and_then(|text| text.chars().next())
                .unwrap_or(char::REPLACEMENT_CHARACTER),
        ),
    };
    Some((unit, rest))
}
