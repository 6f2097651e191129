//! Where attachments stand in a JSON text: `{"_placeholder":true,"num":0}` on the wire, `{"type":"Buffer","data":[..]}` in stored rows.
//!
//! One pass over the text, no stack: an object is one of the two forms or it is not, whatever surrounds it.

use bytes::Bytes;

use super::PacketError;
use super::encode::push_number;
use super::shape::{skip_space, spells, string_end};

/// Checks that every placeholder is `{"_placeholder":true,"num":n}` (members in either order) with n below `count`.
/// A receiver would take anything else for a reason to close.
///
/// # Errors
/// [`PacketError::Placeholder`].
pub fn check_placeholders(json: &str, count: u32) -> Result<(), PacketError> {
    let mut sound = true;
    walk(json, |piece| {
        sound &= match piece {
            Piece::Placeholder { num, .. } => num < u64::from(count),
            Piece::StrayPlaceholder => false,
            Piece::Buffer { .. } => true,
        };
    });
    if sound {
        Ok(())
    } else {
        Err(PacketError::Placeholder)
    }
}

/// Writes attachments out where their placeholders stand, as `{"type":"Buffer","data":[…]}`: the form for
/// stored rows and for texts that travel in chunks. Placeholders that point to no attachment stay.
#[must_use]
pub fn placeholders_to_buffers(json: &str, attachments: &[Bytes]) -> String {
    let mut out = Vec::with_capacity(json.len());
    let mut copied = 0;
    walk(json, |piece| {
        let Piece::Placeholder { start, end, num } = piece else {
            return;
        };
        let Some(bytes) = usize::try_from(num)
            .ok()
            .and_then(|num| attachments.get(num))
        else {
            return;
        };
        out.extend_from_slice(&json.as_bytes()[copied..start]);
        push_buffer(&mut out, bytes);
        copied = end;
    });
    out.extend_from_slice(&json.as_bytes()[copied..]);
    into_text(out)
}

/// The inverse: takes `{"type":"Buffer","data":[…]}` objects out of the text and numbers them in order.
/// A text that already holds something like a placeholder comes back as it is, since the two could not be told
/// apart on the wire; so does one with more than [`MAX_ATTACHMENTS`](super::MAX_ATTACHMENTS) of them.
#[must_use]
pub fn buffers_to_placeholders(json: &str) -> (String, Vec<Bytes>) {
    let mut out = Vec::with_capacity(json.len());
    let mut attachments: Vec<Bytes> = Vec::new();
    let mut copied = 0;
    let mut convertible = true;
    walk(json, |piece| match piece {
        Piece::Buffer { start, end, data } => {
            let Some(bytes) = read_bytes(&json.as_bytes()[data.0..data.1]) else {
                return;
            };
            out.extend_from_slice(&json.as_bytes()[copied..start]);
            out.extend_from_slice(b"{\"_placeholder\":true,\"num\":");
            push_number(&mut out, attachments.len() as u64);
            out.push(b'}');
            attachments.push(bytes);
            convertible &= attachments.len() <= super::MAX_ATTACHMENTS as usize;
            copied = end;
        }
        Piece::Placeholder { .. } | Piece::StrayPlaceholder => convertible = false,
    });
    if !convertible || attachments.is_empty() {
        return (json.to_owned(), Vec::new());
    }
    out.extend_from_slice(&json.as_bytes()[copied..]);
    (into_text(out), attachments)
}

/// What the walk reports. Ranges are byte offsets into the text.
enum Piece {
    Placeholder {
        start: usize,
        end: usize,
        num: u64,
    },
    /// A member `"_placeholder": true` in an object of another shape.
    StrayPlaceholder,
    Buffer {
        start: usize,
        end: usize,
        data: (usize, usize),
    },
}

fn walk(json: &str, mut report: impl FnMut(Piece)) {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'{', b'"', rest))
    {
        let start = at + found;
        if bytes[start] == b'{' {
            at = match two_members(json, start) {
                Some(members) => match members.piece(json) {
                    Some(piece) => {
                        report(piece);
                        members.end
                    }
                    None => start + 1,
                },
                None => start + 1,
            };
            continue;
        }
        let Some(end) = string_end(bytes, start) else {
            return;
        };
        if is_true_member(bytes, end) && spells(&json[start..end], "_placeholder") {
            report(Piece::StrayPlaceholder);
        }
        at = end;
    }
}

/// An object of exactly two members, as ranges of the text.
struct Members {
    start: usize,
    end: usize,
    first: Member,
    second: Member,
}

#[derive(Clone, Copy)]
struct Member {
    key: (usize, usize),
    value: (usize, usize),
}

impl Members {
    fn piece(&self, json: &str) -> Option<Piece> {
        let &Self { start, end, .. } = self;
        let either = [(self.first, self.second), (self.second, self.first)];
        either.into_iter().find_map(|(one, other)| {
            let text = |range: (usize, usize)| &json[range.0..range.1];
            let keys = |a, b| spells(text(one.key), a) && spells(text(other.key), b);
            if keys("_placeholder", "num") && text(one.value) == "true" {
                let num = text(other.value);
                let plain = !num.is_empty() && num.bytes().all(|byte| byte.is_ascii_digit());
                return plain
                    .then(|| num.parse().ok())
                    .flatten()
                    .map(|num| Piece::Placeholder { start, end, num });
            }
            if keys("type", "data")
                && spells(text(one.value), "Buffer")
                && text(other.value).starts_with('[')
            {
                return Some(Piece::Buffer {
                    start,
                    end,
                    data: other.value,
                });
            }
            None
        })
    }
}

fn two_members(json: &str, start: usize) -> Option<Members> {
    let bytes = json.as_bytes();
    let (first, at) = member(bytes, start + 1)?;
    if bytes.get(at) != Some(&b',') {
        return None;
    }
    let (second, at) = member(bytes, at + 1)?;
    (bytes.get(at) == Some(&b'}')).then_some(Members {
        start,
        end: at + 1,
        first,
        second,
    })
}

/// Reads `"key": value` where the value is a string, a word or number, or an array of numbers.
/// Gives the offset of what follows.
fn member(bytes: &[u8], at: usize) -> Option<(Member, usize)> {
    let start = skip_space(bytes, at);
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let end = string_end(bytes, start)?;
    let colon = skip_space(bytes, end);
    if bytes.get(colon) != Some(&b':') {
        return None;
    }
    let value = skip_space(bytes, colon + 1);
    let value_end = match bytes.get(value)? {
        b'"' => string_end(bytes, value)?,
        b'[' => number_array_end(bytes, value)?,
        _ => word_end(bytes, value),
    };
    if value_end == value {
        return None;
    }
    let member = Member {
        key: (start, end),
        value: (value, value_end),
    };
    Some((member, skip_space(bytes, value_end)))
}

fn word_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes
        .get(at)
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
    {
        at += 1;
    }
    at
}

fn number_array_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += 1;
    while matches!(
        bytes.get(at)?,
        b'0'..=b'9' | b',' | b' ' | b'\t' | b'\n' | b'\r'
    ) {
        at += 1;
    }
    (bytes[at] == b']').then_some(at + 1)
}

fn is_true_member(bytes: &[u8], key_end: usize) -> bool {
    let colon = skip_space(bytes, key_end);
    bytes.get(colon) == Some(&b':')
        && bytes
            .get(skip_space(bytes, colon + 1)..)
            .is_some_and(|value| value.starts_with(b"true"))
}

/// Reads `[1,2,255]`; none when an element is no byte.
fn read_bytes(array: &[u8]) -> Option<Bytes> {
    serde_json::from_slice::<Vec<u8>>(array)
        .ok()
        .map(Bytes::from)
}

fn push_buffer(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"Buffer\",\"data\":[");
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_number(out, u64::from(*byte));
    }
    out.extend_from_slice(b"]}");
}

fn into_text(out: Vec<u8>) -> String {
    String::from_utf8(out).expect("pieces of a text, cut at ASCII characters, are text")
}
