//! Asking the user: on a terminal with line editing and hidden secrets, otherwise line by line from standard input.

use std::io::{self, BufRead, IsTerminal, Write};

use dialoguer::{Confirm, Input, Password, Select};

use crate::exit::Failure;

/// The longest line that is taken, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// How the user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// On the terminal.
    Terminal,
    /// Line by line, for what drives the menu by a pipe.
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
        match self {
            Self::Terminal => {
                let mut input = Input::<String>::new()
                    .with_prompt(question)
                    .allow_empty(true);
                if !default.is_empty() {
                    input = input.default(default.to_owned());
                }
                input.interact_text().map_err(unasked)
            }
            Self::Lines => {
                let line = line(question)?;
                let line = line.trim();
                Ok(if line.is_empty() { default } else { line }.to_owned())
            }
        }
    }

    /// A secret, which is not shown.
    pub(crate) fn secret(self, question: &str) -> Result<String, Failure> {
        match self {
            Self::Terminal => Password::new()
                .with_prompt(question)
                .allow_empty_password(true)
                .interact()
                .map_err(unasked),
            Self::Lines => line(question).map(|line| line.trim().to_owned()),
        }
    }

    /// Yes or no.
    pub(crate) fn confirm(self, question: &str, default: bool) -> Result<bool, Failure> {
        match self {
            Self::Terminal => Confirm::new()
                .with_prompt(question)
                .default(default)
                .interact()
                .map_err(unasked),
            Self::Lines => {
                let choices = if default { "Y/n" } else { "y/N" };
                let answer = line(&format!("{question} [{choices}]"))?;
                Ok(match answer.trim().to_lowercase().as_str() {
                    "" => default,
                    "y" | "yes" => true,
                    _ => false,
                })
            }
        }
    }

    /// One of several, each `number  what`; the number, or none when it is no number of the list.
    pub(crate) fn choose(self, title: &str, items: &[(u32, &str)]) -> Result<Option<u32>, Failure> {
        match self {
            Self::Terminal => {
                let shown: Vec<String> = items
                    .iter()
                    .map(|(number, what)| format!("{number:>2}  {what}"))
                    .collect();
                let chosen = Select::new()
                    .with_prompt(title)
                    .items(&shown)
                    .default(0)
                    .max_length(MENU_ROWS)
                    .interact_opt()
                    .map_err(unasked)?;
                // Escape leaves.
                Ok(Some(chosen.map_or(0, |index| items[index].0)))
            }
            Self::Lines => {
                for (number, what) in items {
                    eprintln!("{number:>3}) {what}");
                }
                let number = line(title)?.trim().parse().ok();
                Ok(number.filter(|number| items.iter().any(|(known, _)| known == number)))
            }
        }
    }
}

fn line(question: &str) -> Result<String, Failure> {
    let mut err = io::stderr();
    // Where nobody reads the question, nobody misses it.
    let _ = write!(err, "{question}: ").and_then(|()| err.flush());
    let mut line = String::new();
    let read = io::Read::take(io::stdin().lock(), MAX_LINE_BYTES).read_line(&mut line);
    match read {
        Ok(0) => Err(Failure::Declined("standard input ended".to_owned())),
        Ok(_) => Ok(line),
        Err(error) => Err(Failure::Local(format!("cannot read the answer: {error}"))),
    }
}

fn unasked(error: dialoguer::Error) -> Failure {
    Failure::Declined(format!("no answer: {error}"))
}

/// Rows of the menu at a time.
const MENU_ROWS: usize = 30;
