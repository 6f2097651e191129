//! Walks over JSON text: where values end and whether they are well formed. Builds nothing, and depth costs no stack.

/// A place in a text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Passes the next value and returns its text.
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        self.skip_space();
        let start = self.at;
        match self.peek()? {
            b'{' | b'[' => self.container()?,
            _ => self.scalar()?,
        }
        Some(&self.text[start..self.at])
    }

    /// Passes the next string and returns its text with the quotes.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        self.skip_space();
        let start = self.at;
        self.skip_string()?;
        Some(&self.text[start..self.at])
    }

    /// Passes one byte if it comes next, behind white space.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Nothing but white space is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn container(&mut self) -> Option<()> {
        let mut open = Nesting::default();
        loop {
            self.skip_space();
            match self.peek()? {
                b'{' => {
                    self.at += 1;
                    if !self.take(b'}') {
                        open.push(true);
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if !self.take(b']') {
                        open.push(false);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.close(&mut open)? {
                return Some(());
            }
        }
    }

    /// Behind a value: passes what closes; true when nothing is open any more, false when another value must follow.
    fn close(&mut self, open: &mut Nesting) -> Option<bool> {
        while let Some(object) = open.top() {
            if self.take(b',') {
                if object {
                    self.key()?;
                }
                return Some(false);
            }
            if !self.take(if object { b'}' } else { b']' }) {
                return None;
            }
            open.pop();
        }
        Some(true)
    }

    fn key(&mut self) -> Option<()> {
        self.skip_space();
        self.skip_string()?;
        self.take(b':').then_some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.skip_string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => self.number(),
        }
    }

    fn literal(&mut self, word: &str) -> Option<()> {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        found.then_some(())
    }

    fn number(&mut self) -> Option<()> {
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn skip_string(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            self.at += plain_prefix(&self.text.as_bytes()[self.at..]);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                // A control character.
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let bytes = &self.text.as_bytes()[self.at..];
        self.at += match bytes.get(1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' if bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        Some(())
    }
}

/// Open arrays and objects, a bit each.
#[derive(Default)]
struct Nesting {
    depth: usize,
    first: u64,
    rest: Vec<u64>,
}

impl Nesting {
    fn push(&mut self, object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        self.depth += 1;
        if word > self.rest.len() {
            self.rest.push(0);
        }
        let word = if word == 0 {
            &mut self.first
        } else {
            &mut self.rest[word - 1]
        };
        *word = *word & !(1 << bit) | u64::from(object) << bit;
    }

    fn top(&self) -> Option<bool> {
        let place = self.depth.checked_sub(1)?;
        let (word, bit) = (place / 64, place % 64);
        let word = if word == 0 {
            self.first
        } else {
            self.rest[word - 1]
        };
        Some(word >> bit & 1 == 1)
    }

    fn pop(&mut self) {
        self.depth -= 1;
        // A word goes when its first bit is free again, so that the next push finds the list as long as it expects.
        self.rest
            .truncate(self.depth.div_ceil(64).saturating_sub(1));
    }
}

/// How many bytes come before a quote, a backslash or a control character: eight at a time, and in strides that compile to
/// vector instructions where a text is long.
#[inline]
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    match first_special(bytes, SHORT_WORDS) {
        Ok(at) => at,
        Err(passed) => passed + long_prefix(&bytes[passed..]),
    }
}

/// Words that are looked at before strides: names are shorter than this.
const SHORT_WORDS: usize = 3;

fn long_prefix(bytes: &[u8]) -> usize {
    let (strides, _) = bytes.as_chunks::<32>();
    let has_special = |stride: &[u8; 32]| {
        stride
            .iter()
            .fold(false, |any, byte| any | is_special(*byte))
    };
    let plain = strides.iter().position(has_special);
    let passed = plain.unwrap_or(strides.len()) * 32;
    passed + first_special(&bytes[passed..], usize::MAX).unwrap_or_else(|end| end)
}

/// The first special byte of at most so many words and, when those are all, the rest; or how far there is none.
#[inline]
fn first_special(bytes: &[u8], most: usize) -> Result<usize, usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().take(most).enumerate() {
        let word = u64::from_le_bytes(*word);
        let special = below(word, 0x20) | zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5C));
        if special != 0 {
            return Ok(index * 8 + special.trailing_zeros() as usize / 8);
        }
    }
    if words.len() > most {
        return Err(most * 8);
    }
    let special = rest.iter().position(|byte| is_special(*byte));
    special.map_or(Err(bytes.len()), |at| Ok(words.len() * 8 + at))
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of each byte that is zero; bytes behind the first such one may be wrong.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Sets the high bit of each byte below `limit`, which is at most 0x80; bytes behind the first such one may be wrong.
fn below(word: u64, limit: u64) -> u64 {
    word.wrapping_sub(ONES * limit) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// serde_json is the judge.
    fn check(text: &str) {
        let mut scanner = Scanner::new(text);
        let found = scanner.value().filter(|_| scanner.is_at_end());
        let expected = serde_json::from_str::<&RawValue>(text)
            .ok()
            .map(RawValue::get);
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn texts_are_judged_as_serde_judges_them() {
        let texts = [
            "",
            " ",
            "{",
            "}",
            "[]",
            "[ ]",
            "{}",
            "{ }",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\":1,}",
            "{\"a\" : [ {} , [] ] }",
            "{a:1}",
            "{\"a\"}",
            "{\"a\":}",
            "[1}",
            "{\"a\":1]",
            "\"",
            "\"a",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\u{1f}\"",
            "\"\t\"",
            "\"\u{7f}é☃😀\"",
            "tru",
            "true",
            "nulll",
            "-",
            "-0",
            "01",
            "1.",
            ".5",
            "1.5e",
            "1e+5",
            "1E-05",
            "--1",
            "+1",
            "1e400",
            "12345678901234567890",
            " [ 1 , \"x\" ] ",
            "\"12345678\\n\"",
            "\"1234567\"",
        ];
        texts.into_iter().for_each(check);
    }

    #[test]
    fn depth_costs_no_stack() {
        for depth in [1, 63, 64, 65, 128, 129, 100_000] {
            check(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
            check(&format!(
                "{}{}",
                "{\"k\":[".repeat(depth),
                "]}".repeat(depth)
            ));
            check(&format!("{}{}", "[".repeat(depth), "]".repeat(depth + 1)));
        }
        check(&"[[],{\"a\":[]},".repeat(70));
    }

    proptest! {
        #[test]
        fn a_special_byte_is_found_wherever_it_is(plain in "[ !#-Z]{0,100}", special in any::<u8>(), rest in "[ -~]{0,40}") {
            let mut bytes = plain.clone().into_bytes();
            bytes.push(special);
            let is_plain = special >= 0x20 && special != b'"' && special != b'\\';
            bytes.extend_from_slice(rest.as_bytes());
            let found = plain_prefix(&bytes);
            if is_plain {
                prop_assert!(found > plain.len());
            } else {
                prop_assert_eq!(found, plain.len());
            }
        }

        #[test]
        fn strings_of_any_kind_are_judged_as_serde_judges_them(text in "\"[ -~\\\\\"é\u{0}\u{1f}\u{7f}\u{20ac}]{0,40}\"?") {
            check(&text);
        }

        #[test]
        fn values_of_any_kind_are_judged_as_serde_judges_them(text in "[\\[\\]{},:\" \\\\a0-1.eEtrufalsn-]{0,24}") {
            check(&text);
        }
    }
}
