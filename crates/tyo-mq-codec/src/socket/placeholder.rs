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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(parts: &[&[u8]]) -> Vec<Bytes> {
        parts
            .iter()
            .map(|part| Bytes::copy_from_slice(part))
            .collect()
    }

    fn check(json: &str, attachments: &[&[u8]], stored: &str) {
        let attachments = bytes(attachments);
        assert_eq!(
            placeholders_to_buffers(json, &attachments),
            stored,
            "{json}"
        );
        assert_eq!(
            buffers_to_placeholders(stored),
            (json.to_owned(), attachments),
            "{stored}"
        );
    }

    #[test]
    fn there_and_back() {
        check("[]", &[], "[]");
        check(
            r#"{"_placeholder":true,"num":0}"#,
            &[&[0, 9, 255]],
            r#"{"type":"Buffer","data":[0,9,255]}"#,
        );
        check(
            r#"{"_placeholder":true,"num":0}"#,
            &[&[]],
            r#"{"type":"Buffer","data":[]}"#,
        );
        check(
            r#"["é\"{",{"b":{"_placeholder":true,"num":0},"c":[{"_placeholder":true,"num":1}]}]"#,
            &[b"a", b"bc"],
            r#"["é\"{",{"b":{"type":"Buffer","data":[97]},"c":[{"type":"Buffer","data":[98,99]}]}]"#,
        );
    }

    #[test]
    fn other_spellings() {
        let one = bytes(&[&[1]]);
        for json in [
            r#"{"num":0,"_placeholder":true}"#,
            r#"{ "\u005fplaceholder" : true , "n\u0075m" : 0 }"#,
        ] {
            assert_eq!(
                placeholders_to_buffers(json, &one),
                r#"{"type":"Buffer","data":[1]}"#,
                "{json}"
            );
        }
        let stored = r#"{ "data" : [ 1 ] , "type" : "Buffer" }"#;
        assert_eq!(
            buffers_to_placeholders(stored),
            (r#"{"_placeholder":true,"num":0}"#.into(), one)
        );
    }

    #[test]
    fn what_is_no_attachment_stays() {
        for json in [
            r#""{\"_placeholder\":true,\"num\":0}""#,
            r#"{"_placeholder":true,"num":1}"#,
            r#"{"_placeholder":false,"num":0}"#,
            r#"{"_placeholder":true,"num":0,"x":1}"#,
            r#"{"_placeholder":true}"#,
        ] {
            assert_eq!(
                placeholders_to_buffers(json, &bytes(&[b"x"])),
                json,
                "{json}"
            );
        }
        for json in [
            r#"{"type":"Buffer","data":[256]}"#,
            r#"{"type":"Buffer","data":[1,]}"#,
            r#"{"type":"Buffer","data":"x"}"#,
            r#"{"type":"buffer","data":[1]}"#,
            r#"{"type":"Buffer","data":[1],"x":1}"#,
            r#"{"type":"Buffer"}"#,
        ] {
            assert_eq!(
                buffers_to_placeholders(json),
                (json.to_owned(), vec![]),
                "{json}"
            );
        }
    }

    #[test]
    fn placeholders_among_buffers_could_not_be_told_apart() {
        let json = r#"[{"type":"Buffer","data":[1]},{"_placeholder":true,"num":0}]"#;
        assert_eq!(buffers_to_placeholders(json), (json.to_owned(), vec![]));
    }

    #[test]
    fn sound_and_unsound() {
        for json in [
            "[]",
            r#"[{"_placeholder":true,"num":1},{"num":0,"_placeholder":true}]"#,
            r#"{"_placeholder":1,"num":9}"#,
            r#"{"a":"_placeholder","b":true}"#,
            r#""\"_placeholder\":true""#,
        ] {
            assert_eq!(check_placeholders(json, 2), Ok(()), "{json}");
        }
        for json in [
            r#"{"_placeholder":true,"num":2}"#,
            r#"{"_placeholder":true,"num":-1}"#,
            r#"{"_placeholder":true,"num":"0"}"#,
            r#"{"_placeholder":true,"num":0.5}"#,
            r#"{"_placeholder":true,"num":1e0}"#,
            r#"{"_placeholder":true,"num":99999999999999999999}"#,
            r#"{"_placeholder":true,"num":{}}"#,
            r#"{"_placeholder":true,"num":"splice"}"#,
            r#"{"_placeholder":true}"#,
            r#"{"\u005fplaceholder":true,"num":2}"#,
            r#"{"x":[],"_placeholder": true,"num":0}"#,
            r#"{"_placeholder":true,"_placeholder":true,"num":0}"#,
        ] {
            assert_eq!(
                check_placeholders(json, 2),
                Err(PacketError::Placeholder),
                "{json}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(json in r#"(\{|\}|\[|\]|"|\\|:|,|true|"_placeholder"|"num"|"type"|"Buffer"|"data"|[0-9é ]){0,24}"#) {
            let _ = check_placeholders(&json, 1);
            let _ = placeholders_to_buffers(&json, &bytes(&[b"x"]));
            let _ = buffers_to_placeholders(&json);
        }

        #[test]
        fn any_bytes_there_and_back(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let json: Vec<String> = (0..parts.len()).map(|num| format!(r#"{{"_placeholder":true,"num":{num}}}"#)).collect();
            let json = format!("[{}]", json.join(","));
            let attachments: Vec<Bytes> = parts.into_iter().map(Bytes::from).collect();
            let stored = placeholders_to_buffers(&json, &attachments);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&stored).is_ok());
            prop_assert_eq!(buffers_to_placeholders(&stored), (json, attachments));
        }
    }
}
