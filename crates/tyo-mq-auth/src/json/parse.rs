//! Reading JSON into a tree. Depth is bounded, and nothing is built for what was only promised.

use std::collections::HashSet;

use super::{Object, Text, Value};

/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 128;

/// Why a text is no JSON value for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Not JSON.
    #[error("not JSON at byte {at}")]
    Syntax {
        /// Where reading stopped.
        at: usize,
    },
    /// Nested too deeply.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

pub(super) fn parse(json: &str) -> Result<Value, JsonError> {
    let mut reader = Reader {
        text: json,
        bytes: json.as_bytes(),
        at: 0,
        depth: 0,
    };
    reader.skip_space();
    let value = reader.value()?;
    if reader.at == reader.bytes.len() {
        Ok(value)
    } else {
        Err(reader.error())
    }
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    /// A value and the space behind it.
    fn value(&mut self) -> Result<Value, JsonError> {
        let value = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            _ => return Err(self.error()),
        };
        self.skip_space();
        Ok(value)
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Value, JsonError>,
    ) -> Result<Value, JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.depth += 1;
        self.at += 1;
        self.skip_space();
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, JsonError> {
        let mut fields = Vec::new();
        if self.take(b'}') {
            return Ok(Value::Object(Object::new()));
        }
        loop {
            let key = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            fields.push((key, self.value()?));
            if self.take(b'}') {
                return Ok(Value::Object(distinct(fields)));
            }
            self.expect(b',')?;
            self.skip_space();
        }
    }

    fn list(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value()?);
            if self.take(b']') {
                return Ok(Value::List(items));
            }
            self.expect(b',')?;
            self.skip_space();
        }
    }

    fn string(&mut self) -> Result<Text, JsonError> {
        self.expect(b'"')?;
        let mut out = Vec::new();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
            {
                self.at += 1;
            }
            let plain = &self.bytes[start..self.at];
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    out.reserve_exact(plain.len());
                    out.extend_from_slice(plain);
                    return Ok(Text::from_wtf8(out));
                }
                Some(b'\\') => {
                    out.extend_from_slice(plain);
                    self.escape(&mut out)?;
                }
                _ => return Err(self.error()),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        self.at += 1;
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0C,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.at += 1;
                let unit = self.hex()?;
                return self.unicode(unit, out);
            }
            _ => return Err(self.error()),
        };
        self.at += 1;
        out.push(byte);
        Ok(())
    }

    /// A unit that was escaped; with a second escape behind it, it may make one character.
    fn unicode(&mut self, unit: u16, out: &mut Vec<u8>) -> Result<(), JsonError> {
        if matches!(unit, 0xD800..0xDC00) && self.bytes[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            let low = self.hex()?;
            if let Some(Ok(c)) = char::decode_utf16([unit, low]).next() {
                push_char(out, c);
                return Ok(());
            }
            self.at = back;
        }
        match char::from_u32(u32::from(unit)) {
            Some(c) => push_char(out, c),
            None => out.extend_from_slice(&[
                0xED,
                0x80 | (unit >> 6 & 0x3F) as u8,
                0x80 | (unit & 0x3F) as u8,
            ]),
        }
        Ok(())
    }

    fn hex(&mut self) -> Result<u16, JsonError> {
        let digits = self
            .bytes
            .get(self.at..self.at + 4)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .ok_or(self.error())?;
        let unit = digits.iter().fold(0, |unit, &digit| {
            unit << 4 | (digit as char).to_digit(16).unwrap_or(0) as u16
        });
        self.at += 4;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(Value::Number(self.text[start..self.at].into()))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error());
        }
        self.at += word.len();
        Ok(value)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    const fn error(&self) -> JsonError {
        JsonError::Syntax { at: self.at }
    }
}

fn push_char(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Keeps the last of fields that have one name.
fn distinct(fields: Vec<(Text, Value)>) -> Object {
    let is_first = |(index, (name, _)): (usize, &(Text, Value))| {
        fields[..index].iter().all(|(other, _)| other != name)
    };
    if fields.len() <= FEW_FIELDS && fields.iter().enumerate().all(is_first) {
        return Object::from_distinct_fields(fields);
    }
    let mut names = HashSet::with_capacity(fields.len());
    let keep: Vec<bool> = fields
        .iter()
        .rev()
        .map(|(name, _)| names.insert(name.as_bytes()))
        .collect();
    if keep.iter().all(|&keep| keep) {
        drop(names);
        return Object::from_distinct_fields(fields);
    }
    drop(names);
    let kept = fields
        .into_iter()
        .zip(keep.into_iter().rev())
        .filter_map(|(field, keep)| keep.then_some(field));
    Object::from_distinct_fields(kept.collect())
}

/// Of so many fields, comparing all names is the quickest way.
const FEW_FIELDS: usize = 16;
