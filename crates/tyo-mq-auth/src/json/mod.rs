//! JSON as JavaScript holds it: strings may have halves of surrogate pairs, numbers keep their text, keys keep their order.
//!
//! Signed bodies are verified to the byte and the settings' unknown fields are written back as they were. A tree of
//! `serde_json` can do neither: it refuses such strings and rounds such numbers.

mod parse;
mod text;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;

pub use parse::{JsonError, MAX_DEPTH};
pub use text::Text;
pub use write::{Style, write_number};

/// A JSON value. `Debug` shows its kind only, since it may hold secrets.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(Box<str>),
    /// A string.
    Text(Text),
    /// An array.
    List(Vec<Value>),
    /// An object.
    Object(Object),
}

/// An object's fields in the order in which they came; no name comes twice.
#[derive(Clone, Default, PartialEq)]
pub struct Object {
    fields: Vec<(Text, Value)>,
}

impl Value {
    /// Reads one JSON value. Of fields with one name the last one counts.
    ///
    /// # Errors
    /// When the text is no JSON value or nests deeper than [`MAX_DEPTH`].
    pub fn parse(json: &str) -> Result<Self, JsonError> {
        parse::parse(json)
    }

    /// The string, if it is one and is Unicode text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_str(),
            _ => None,
        }
    }

    /// The number; infinite when no float can hold it.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The object, if it is one.
    #[must_use]
    pub const fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The array's elements, if it is one.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Whether JavaScript takes it for true.
    #[must_use]
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(_) => self.as_number().is_some_and(|number| number != 0.0),
            Self::Text(text) => !text.is_empty(),
            Self::List(_) | Self::Object(_) => true,
        }
    }

    /// What it is, for messages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// As JSON text: fields in their order, numbers as they were written.
    #[must_use]
    pub fn to_json(&self) -> String {
        write::to_json(self)
    }

    /// As JSON text, with two spaces for each level.
    #[must_use]
    pub fn to_pretty_json(&self) -> String {
        write::to_pretty_json(self)
    }

    /// Appends the form that is signed: sorted keys, JavaScript's numbers, no spaces.
    pub fn write_canonical(&self, out: &mut Vec<u8>, style: Style) {
        write::canonical(out, self, style);
    }
}

impl Object {
    /// An object without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self { fields: Vec::new() }
    }

    /// The number of fields.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// A field's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields
            .iter()
            .find(|(key, _)| key.as_bytes() == name.as_bytes())
            .map(|(_, value)| value)
    }

    /// A field's string, if it has one that is not empty.
    #[must_use]
    pub fn non_empty_str(&self, name: &str) -> Option<&str> {
        self.get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    /// Sets a field, in its place if it is there.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        match self
            .fields
            .iter_mut()
            .find(|(key, _)| key.as_bytes() == name.as_bytes())
        {
            Some((_, old)) => *old = value,
            None => self.fields.push((Text::from(name), value)),
        }
    }

    /// As [`set`](Self::set), for building.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self
            .fields
            .iter()
            .position(|(key, _)| key.as_bytes() == name.as_bytes())?;
        Some(self.fields.remove(at).1)
    }

    /// The fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&Text, &Value)> {
        self.fields.iter().map(|(key, value)| (key, value))
    }

    /// Appends a field whose name is known to be new.
    pub(crate) fn push(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.push((Text::from(name), value.into()));
    }

    pub(crate) fn into_fields(self) -> Vec<(Text, Value)> {
        self.fields
    }

    pub(crate) const fn from_distinct_fields(fields: Vec<(Text, Value)>) -> Self {
        Self { fields }
    }

    fn fields(&self) -> &[(Text, Value)] {
        &self.fields
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object of {}", self.fields.len())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Text::from(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Text::from(text.as_str()))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number.to_string().into())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number.to_string().into())
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl From<Vec<Value>> for Value {
    fn from(list: Vec<Value>) -> Self {
        Self::List(list)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
