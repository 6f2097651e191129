//! Writing JSON: as it came, and in the form that is signed.

use tyo_mq_protocol::write_json_string;

use super::text::Unit;
use super::{Object, Text, Value};

/// How the signed form is spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As JavaScript does: keys in the order of UTF-16 units, nothing escaped that need not be.
    JavaScript,
    /// As the encoder of Go's library does: keys in the order of bytes, `<`, `>`, `&`, U+2028 and U+2029 escaped.
    HtmlEscaped,
}

pub(super) fn to_json(value: &Value) -> String {
    let mut out = Vec::new();
    write(&mut out, value, None);
    into_string(out)
}

pub(super) fn to_pretty_json(value: &Value) -> String {
    let mut out = Vec::new();
    write(&mut out, value, Some(0));
    into_string(out)
}

pub(super) fn canonical(out: &mut Vec<u8>, value: &Value, style: Style) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Number(_) => write_number(out, value.as_number().unwrap_or(f64::NAN)),
        Value::Text(text) => write_text(out, text, style),
        Value::List(items) => write_sequence(out, b"[]", items, |out, item| {
            canonical(out, item, style);
        }),
        Value::Object(object) => {
            let mut fields: Vec<_> = object.fields().iter().collect();
            match style {
                Style::JavaScript => fields.sort_by(|(a, _), (b, _)| a.cmp_utf16(b)),
                Style::HtmlEscaped => {
                    fields.sort_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
                }
            }
            write_sequence(out, b"{}", &fields, |out, (name, value)| {
                write_text(out, name, style);
                out.push(b':');
                canonical(out, value, style);
            });
        }
    }
}

/// Appends a number as JavaScript prints it; `null` when it is not finite.
pub fn write_number(out: &mut Vec<u8>, number: f64) {
    if !number.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    if number == 0.0 {
        out.push(b'0');
        return;
    }
    if number < 0.0 {
        out.push(b'-');
    }
    let scientific = format!("{:e}", number.abs());
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: Vec<u8> = digits.bytes().filter(|&byte| byte != b'.').collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    place_point(out, &digits, exponent + 1);
}

/// Writes digits with the decimal point behind the first `point` of them, or with an exponent where JavaScript has one.
fn place_point(out: &mut Vec<u8>, digits: &[u8], point: i32) {
    let count = digits.len() as i32;
    if (count..=21).contains(&point) {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', (point - count) as usize));
    } else if (1..=21).contains(&point) {
        let (whole, fraction) = digits.split_at(point as usize);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else if (-5..=0).contains(&point) {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', -point as usize));
        out.extend_from_slice(digits);
    } else {
        let (first, rest) = digits.split_at(1);
        out.extend_from_slice(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        let exponent = point - 1;
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{}", exponent.abs()).as_bytes());
    }
}

fn write_text(out: &mut Vec<u8>, text: &Text, style: Style) {
    out.push(b'"');
    for unit in text.units() {
        match unit {
            Unit::Lone(unit) => escape(out, unit),
            Unit::Char(c) => write_char(out, c, style),
        }
    }
    out.push(b'"');
}

fn write_char(out: &mut Vec<u8>, c: char, style: Style) {
    let short = match c {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\t' => b't',
        '\n' => b'n',
        '\u{c}' => b'f',
        '\r' => b'r',
        '\0'..='\u{1f}' => return escape(out, c as u16),
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if style == Style::HtmlEscaped => {
            return escape(out, c as u16);
        }
        _ => return out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn escape(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
}

fn write(out: &mut Vec<u8>, value: &Value, indent: Option<usize>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Number(text) => out.extend_from_slice(text.as_bytes()),
        Value::Text(text) => write_string(out, text),
        Value::List(items) if indent.is_none() || items.is_empty() => {
            write_sequence(out, b"[]", items, |out, item| write(out, item, None));
        }
        Value::List(items) => {
            let level = indent.unwrap_or(0) + 1;
            write_lines(out, b"[]", level, items, |out, item| {
                write(out, item, Some(level));
            });
        }
        Value::Object(object) => write_object(out, object, indent),
    }
}

fn write_object(out: &mut Vec<u8>, object: &Object, indent: Option<usize>) {
    let fields = object.fields();
    let Some(indent) = indent.filter(|_| !fields.is_empty()) else {
        return write_sequence(out, b"{}", fields, |out, (name, value)| {
            write_string(out, name);
            out.push(b':');
            write(out, value, None);
        });
    };
    write_lines(out, b"{}", indent + 1, fields, |out, (name, value)| {
        write_string(out, name);
        out.extend_from_slice(b": ");
        write(out, value, Some(indent + 1));
    });
}

fn write_string(out: &mut Vec<u8>, text: &Text) {
    match text.as_str() {
        Some(text) => write_json_string(out, text),
        None => write_text(out, text, Style::JavaScript),
    }
}

fn write_sequence<T>(
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    items: &[T],
    mut write: impl FnMut(&mut Vec<u8>, &T),
) {
    out.push(brackets[0]);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(brackets[1]);
}

fn write_lines<T>(
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    level: usize,
    items: &[T],
    mut write: impl FnMut(&mut Vec<u8>, &T),
) {
    out.push(brackets[0]);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        new_line(out, level);
        write(out, item);
    }
    new_line(out, level - 1);
    out.push(brackets[1]);
}

fn new_line(out: &mut Vec<u8>, level: usize) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', 2 * level));
}

fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("strings are written as Unicode text, all else is ASCII")
}
