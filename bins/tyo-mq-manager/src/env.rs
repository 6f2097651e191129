//! The environment: the process's own, and behind it an `.env` file, which never overrides it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// The largest `.env` file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Variables by name.
#[derive(Debug, Default)]
pub(crate) struct Env {
    file: PathBuf,
    from_file: HashMap<String, String>,
}

impl Env {
    /// Reads the file that was named, or else the one of `TYO_MQ_ENV_FILE`, or else `.env`, which need not exist.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let from_variable = process("TYO_MQ_ENV_FILE").map(PathBuf::from);
        let must_exist = named.is_some();
        let file = named
            .map(Path::to_path_buf)
            .or(from_variable)
            .unwrap_or_else(|| PathBuf::from(".env"));
        let from_file = match read(&file) {
            Ok(text) => parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => {
                HashMap::new()
            }
            Err(error) => {
                return Err(Failure::Local(format!("{}: {error}", file.display())));
            }
        };
        Ok(Self { file, from_file })
    }

    /// A variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<String> {
        process(name).or_else(|| {
            self.from_file
                .get(name)
                .filter(|value| !value.is_empty())
                .cloned()
        })
    }

    /// The file that was looked at.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

fn process(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn read(file: &Path) -> std::io::Result<String> {
    if std::fs::metadata(file)?.len() > MAX_FILE_BYTES {
        return Err(std::io::Error::other("the file is too large"));
    }
    std::fs::read_to_string(file)
}

/// One `NAME=value` a line; `#` begins a comment line; one pair of quotes around a value is taken off.
fn parse(text: &str) -> HashMap<String, String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), unquote(value.trim()).to_owned()))
        .collect()
}

fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, &str)>) {
        let read = parse(line);
        let read: Vec<_> = read
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(read, expected.into_iter().collect::<Vec<_>>(), "{line:?}");
    }

    #[test]
    fn lines() {
        check("A=b", Some(("A", "b")));
        check(" A = b c \r", Some(("A", "b c")));
        check("A=\"b=c\"", Some(("A", "b=c")));
        check("A='b\"'", Some(("A", "b\"")));
        check("A=\"b'", Some(("A", "\"b'")));
        check("A=\"", Some(("A", "\"")));
        check("A=b # c", Some(("A", "b # c")));
        check("# A=b", None);
        check("export", None);
    }
}
