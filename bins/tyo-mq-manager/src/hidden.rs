//! A line from the terminal that is not shown. However it ends, the terminal is afterwards as it was before.

use std::io::{self, Read, Stdin};

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::exit::Failure;
use crate::prompt::{ask, end_line};

/// The longest secret that is typed, in bytes.
const MAX_BYTES: usize = 1 << 16;

/// Asks, and reads what is typed up to the end of the line.
pub(crate) fn line(question: &str) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::Local(format!("cannot read the answer: {error}"));
    let hiding = Hiding::begin().map_err(failed)?;
    ask(question);
    let typed = type_in(&mut io::stdin().lock()).map_err(failed);
    drop(hiding);
    end_line();
    match typed? {
        Typed::Line(bytes) => String::from_utf8(bytes)
            .map_err(|_| Failure::Local("what was typed is not text".to_owned())),
        Typed::Ended => Err(Failure::Declined("standard input ended".to_owned())),
        Typed::Interrupted => {
            // As anywhere else where the terminal sends the signal itself.
            let _ = kill_process(getpid(), Signal::INT);
            Err(Failure::Declined("interrupted".to_owned()))
        }
    }
}

/// How a line ended.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Line(Vec<u8>),
    Ended,
    Interrupted,
}

fn type_in(keys: &mut impl Read) -> io::Result<Typed> {
    let mut typed = Vec::new();
    let mut key = [0];
    loop {
        if keys.read(&mut key)? == 0 {
            return Ok(Typed::Ended);
        }
        match key[0] {
            b'\n' | b'\r' => return Ok(Typed::Line(typed)),
            CTRL_C => return Ok(Typed::Interrupted),
            CTRL_D if typed.is_empty() => return Ok(Typed::Ended),
            CTRL_U => typed.clear(),
            BACKSPACE | DELETE => remove_last(&mut typed),
            control if control < b' ' => {}
            _ if typed.len() >= MAX_BYTES => {
                return Err(io::Error::other(format!("longer than {MAX_BYTES} bytes")));
            }
            byte => typed.push(byte),
        }
    }
}

/// Takes the last character off, which may have several bytes.
fn remove_last(typed: &mut Vec<u8>) {
    while let Some(byte) = typed.pop() {
        let continues = byte & 0b1100_0000 == 0b1000_0000;
        if !continues {
            return;
        }
    }
}

/// A terminal that shows nothing and sends keys at once, Ctrl-C too.
struct Hiding {
    stdin: Stdin,
    before: Termios,
}

impl Hiding {
    fn begin() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut hidden = before.clone();
        hidden
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &hidden)?;
        Ok(Self { stdin, before })
    }
}

impl Drop for Hiding {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(&self.stdin, OptionalActions::Now, &self.before);
    }
}

const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const DELETE: u8 = 0x7f;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &str, expected: &Typed) {
        let typed = type_in(&mut keys.as_bytes()).unwrap();
        assert_eq!(typed, *expected, "{keys:?}");
    }

    #[test]
    fn keys() {
        let line = |text: &str| Typed::Line(text.as_bytes().to_vec());
        check("s3cret\n", &line("s3cret"));
        check("s3cret\rmore", &line("s3cret"));
        check("aé\u{7f}b\u{8}c\n", &line("ac"));
        check("\u{7f}wrong\u{15}right\n", &line("right"));
        check("a\u{1b}b\n", &line("ab"));
        check("a\u{4}b\n", &line("ab"));
        check("\u{4}", &Typed::Ended);
        check("a", &Typed::Ended);
        check("a\u{3}b\n", &Typed::Interrupted);
        let long = "x".repeat(MAX_BYTES + 1);
        assert!(type_in(&mut long.as_bytes()).is_err());
    }
}
