//! Binary content in stored JSON: `{"type":"Buffer","data":[…]}` in rows, numbered placeholders on the wire. All else stays byte for byte.

use bytes::Bytes;

/// Writes the text with each `{"_placeholder":true,"num":n}` replaced by the bytes it stands for.
pub(crate) fn placeholders_to_buffers(json: &str, attachments: &[Bytes]) -> String {
    let mut out =
        String::with_capacity(json.len() + 4 * attachments.iter().map(Bytes::len).sum::<usize>());
    let mut copied = 0;
    for_each_object(json, |start| {
        let (end, number) = placeholder(&json[start..])?;
        let bytes = attachments.get(number)?;
        out.push_str(&json[copied..start]);
        push_buffer(&mut out, bytes);
        copied = start + end;
        Some(copied)
    });
    out.push_str(&json[copied..]);
    out
}

/// Writes the text with each `{"type":"Buffer","data":[…]}` replaced by a placeholder, and gives the bytes in order.
pub(crate) fn buffers_to_placeholders(json: &str) -> (String, Vec<Bytes>) {
    let mut out = String::with_capacity(json.len());
    let mut attachments = Vec::new();
    let mut copied = 0;
    for_each_object(json, |start| {
        let (end, bytes) = buffer(&json[start..])?;
        out.push_str(&json[copied..start]);
        out.push_str("{\"_placeholder\":true,\"num\":");
        out.push_str(&attachments.len().to_string());
        out.push('}');
        attachments.push(bytes);
        copied = start + end;
        Some(copied)
    });
    out.push_str(&json[copied..]);
    (out, attachments)
}

/// Calls `visit` with the place of each `{` outside of strings; it gives the place to go on from, or none for the next byte.
fn for_each_object(json: &str, mut visit: impl FnMut(usize) -> Option<usize>) {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'"' => string_end(bytes, at),
            b'{' => visit(at).unwrap_or(at + 1),
            _ => at + 1,
        };
    }
}

/// The place behind the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn placeholder(text: &str) -> Option<(usize, usize)> {
    let mut reader = Reader { text, at: 0 };
    reader.token("{")?;
    let number = if reader.token("\"_placeholder\"").is_some() {
        reader.token(":")?;
        reader.token("true")?;
        reader.token(",")?;
        reader.token("\"num\"")?;
        reader.token(":")?;
        reader.number()?
    } else {
        reader.token("\"num\"")?;
        reader.token(":")?;
        let number = reader.number()?;
        reader.token(",")?;
        reader.token("\"_placeholder\"")?;
        reader.token(":")?;
        reader.token("true")?;
        number
    };
    reader.token("}")?;
    Some((reader.at, number))
}

fn buffer(text: &str) -> Option<(usize, Bytes)> {
    let mut reader = Reader { text, at: 0 };
    for token in [
        "{",
        "\"type\"",
        ":",
        "\"Buffer\"",
        ",",
        "\"data\"",
        ":",
        "[",
    ] {
        reader.token(token)?;
    }
    let mut bytes = Vec::new();
    if reader.token("]").is_none() {
        loop {
            bytes.push(u8::try_from(reader.number()?).ok()?);
            if reader.token(",").is_none() {
                break;
            }
        }
        reader.token("]")?;
    }
    reader.token("}")?;
    Some((reader.at, bytes.into()))
}

fn push_buffer(out: &mut String, bytes: &[u8]) {
    out.push_str("{\"type\":\"Buffer\",\"data\":[");
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if *byte >= 100 {
            out.push(char::from(b'0' + byte / 100));
        }
        if *byte >= 10 {
            out.push(char::from(b'0' + byte / 10 % 10));
        }
        out.push(char::from(b'0' + byte % 10));
    }
    out.push_str("]}");
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        self.at += space.count();
    }

    fn token(&mut self, token: &str) -> Option<()> {
        self.skip_space();
        self.text[self.at..]
            .starts_with(token)
            .then(|| self.at += token.len())
    }

    fn number(&mut self) -> Option<usize> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..digits].parse().ok()?;
        self.at += digits;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(open: &str, attachments: &[&'static [u8]], stored: &str) {
        let attachments: Vec<Bytes> = attachments
            .iter()
            .map(|it| Bytes::from_static(it))
            .collect();
        assert_eq!(placeholders_to_buffers(open, &attachments), stored);
    }

    #[test]
    fn placeholders_become_buffers() {
        check("{}", &[], "{}");
        check(
            r#"{"_placeholder":true,"num":0}"#,
            &[b"\x00\x09\x0a\x63\x64\xff"],
            r#"{"type":"Buffer","data":[0,9,10,99,100,255]}"#,
        );
        check(
            r#"[{ "num" : 1 , "_placeholder" : true },{"_placeholder":true,"num":0}]"#,
            &[b"", b"\x01"],
            r#"[{"type":"Buffer","data":[1]},{"type":"Buffer","data":[]}]"#,
        );
        let text = r#"["{\"_placeholder\":true,\"num\":0}",{"_placeholder":true,"num":7},{"_placeholder":true,"num":0,"x":1}]"#;
        check(text, &[b"x"], text);
    }

    fn check_back(stored: &str, open: &str, attachments: &[&[u8]]) {
        let (text, found) = buffers_to_placeholders(stored);
        assert_eq!(text, open);
        assert_eq!(found, attachments);
    }

    #[test]
    fn buffers_become_placeholders() {
        check_back(
            r#"{"a":{"type":"Buffer","data":[0,1,2,255]},"b":1e400}"#,
            r#"{"a":{"_placeholder":true,"num":0},"b":1e400}"#,
            &[&[0, 1, 2, 255]],
        );
        check_back(
            r#"[{"type":"Buffer","data":[]},{"type" : "Buffer", "data": [ 7 ]}]"#,
            r#"[{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]"#,
            &[&[], &[7]],
        );
        for kept in [
            r#"{"type":"Buffer","data":[256]}"#,
            r#"{"type":"Buffer","data":[1.5]}"#,
            r#"{"type":"Buffer","data":[-1]}"#,
            r#"{"type":"Buffer","data":[1,]}"#,
            r#"{"type":"Buffer","data":[1],"x":1}"#,
            r#"{"type":"Buffer","data":"x"}"#,
            r#""{\"type\":\"Buffer\",\"data\":[1]}""#,
            r#"{"type":"Buffer","data":[1"#,
        ] {
            check_back(kept, kept, &[]);
        }
    }

    proptest! {
        #[test]
        fn bytes_survive(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..4)) {
            let parts: Vec<Bytes> = parts.into_iter().map(Bytes::from).collect();
            let marks: Vec<String> = (0..parts.len()).map(|n| format!("{{\"_placeholder\":true,\"num\":{n}}}")).collect();
            let text = format!("{{\"a\":[{}]}}", marks.join(","));
            let (back, found) = buffers_to_placeholders(&placeholders_to_buffers(&text, &parts));
            prop_assert_eq!(back, text);
            prop_assert_eq!(found, parts);
        }

        #[test]
        fn any_text_is_read(text in "[\\[{}\",:a-z0-9\\\\ü]{0,60}") {
            prop_assert_eq!(placeholders_to_buffers(&text, &[]), text.clone());
            buffers_to_placeholders(&text);
        }
    }
}
