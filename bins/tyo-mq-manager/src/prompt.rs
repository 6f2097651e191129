//! Asking the user, line by line from standard input. The terminal edits the line; a secret is not shown on it.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::exit::Failure;
use crate::hidden;

/// The longest line that is taken, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// Somebody at a terminal.
    Terminal,
    /// Whatever is at the other end of standard input.
    Lines,
}

impl Prompt {
    /// The one that fits standard input.
    pub(crate) fn of_stdin() -> Self {
        if io::stdin().is_terminal() && io::stderr().is_terminal() {
            Self::Terminal
        } else {
            Self::Lines
        }
    }

    /// Whether somebody is there.
    pub(crate) fn is_terminal(self) -> bool {
        self == Self::Terminal
    }

    /// A text; the default, or an empty one, when nothing is typed.
    pub(crate) fn text(self, question: &str, default: &str) -> Result<String, Failure> {
        let proposal = match default {
            "" => String::new(),
            default => format!(" [{default}]"),
        };
        let line = self.line(&format!("{question}{proposal}"))?;
        let line = line.trim();
        Ok(if line.is_empty() { default } else { line }.to_owned())
    }

    /// A secret, which is not shown.
    pub(crate) fn secret(self, question: &str) -> Result<String, Failure> {
        let secret = match self {
            Self::Terminal => hidden::line(question)?,
            Self::Lines => self.line(question)?,
        };
        Ok(secret.trim().to_owned())
    }

    /// Yes or no. Anything else is neither: a slip of the finger must not decide.
    pub(crate) fn confirm(self, question: &str, default: bool) -> Result<bool, Failure> {
        let choices = if default { "Y/n" } else { "y/N" };
        let answer = self.line(&format!("{question} [{choices}]"))?;
        match answer.trim().to_lowercase().as_str() {
            "" => Ok(default),
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            _ => Err(Failure::Declined(
                "that is neither y nor n; nothing was changed".to_owned(),
            )),
        }
    }

    fn line(self, question: &str) -> Result<String, Failure> {
        ask(question);
        let mut line = String::new();
        let read = io::Read::take(io::stdin().lock(), MAX_LINE_BYTES).read_line(&mut line);
        match read {
            Ok(0) => {
                if self.is_terminal() {
                    end_line();
                }
                Err(Failure::Declined("standard input ended".to_owned()))
            }
            Ok(_) => Ok(line),
            Err(error) => Err(Failure::Local(format!("cannot read the answer: {error}"))),
        }
    }
}

/// Writes a question. Where nobody reads it, nobody misses it.
pub(crate) fn ask(question: &str) {
    let mut err = io::stderr();
    let _ = write!(err, "{question}: ").and_then(|()| err.flush());
}

/// Ends a line that the user did not end.
pub(crate) fn end_line() {
    let _ = writeln!(io::stderr());
}
