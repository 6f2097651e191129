//! Used nonces in a file, for brokers without an auth store: a line each, so that a restart does not forget them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use crate::files;
use crate::nonce::{MAX_NONCES, UsedNonce};
use crate::secret::SecretHash;

/// The file of used nonces.
#[derive(Debug)]
pub struct NonceJournal {
    path: PathBuf,
    file: File,
    lines: usize,
}

impl NonceJournal {
    /// Opens the file, or makes it, and reads the nonces that still count. Lines that cannot be read are left out.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn open(path: &Path, now_ms: u64) -> io::Result<(Self, Vec<UsedNonce>)> {
        let used = read(path, now_ms)?;
        let mut journal = Self {
            path: path.to_owned(),
            file: files::append_private(path)?,
            lines: 0,
        };
        journal.rewrite(&used)?;
        Ok((journal, used))
    }

    /// Keeps a nonce. To be done before what it signed. `all` are those of the window, for when the file has grown long.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(
        &mut self,
        nonce: UsedNonce,
        all: impl Iterator<Item = UsedNonce>,
    ) -> io::Result<()> {
        if self.lines >= MAX_LINES {
            return self.rewrite(&all.collect::<Vec<_>>());
        }
        self.file.write_all(line(nonce).as_bytes())?;
        self.file.sync_data()?;
        self.lines += 1;
        Ok(())
    }

    fn rewrite(&mut self, nonces: &[UsedNonce]) -> io::Result<()> {
        let content: String = nonces.iter().copied().map(line).collect();
        files::replace_private(&self.path, content.as_bytes())?;
        self.file = files::append_private(&self.path)?;
        self.lines = nonces.len();
        Ok(())
    }
}

fn read(path: &Path, now_ms: u64) -> io::Result<Vec<UsedNonce>> {
    let file = match File::open(path) {
        Ok(file) => file.take(MAX_BYTES),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut used = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let nonce = std::str::from_utf8(&line?).ok().and_then(parse);
        used.extend(nonce.filter(|nonce| nonce.expires_ms >= now_ms));
    }
    Ok(used)
}

fn parse(line: &str) -> Option<UsedNonce> {
    let (expires, hash) = line.split_once(' ')?;
    Some(UsedNonce {
        expires_ms: expires.parse().ok()?,
        hash: SecretHash::from_hex(hash)?,
    })
}

fn line(nonce: UsedNonce) -> String {
    format!("{} {}\n", nonce.expires_ms, nonce.hash.to_hex())
}

/// So many lines, then the file is written anew.
const MAX_LINES: usize = 2 * MAX_NONCES;
/// No more of the file is read. A line has at most 86 bytes.
const MAX_BYTES: u64 = 86 * MAX_LINES as u64;

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(text: &str, expires_ms: u64) -> UsedNonce {
        UsedNonce {
            expires_ms,
            hash: SecretHash::of(text),
        }
    }

    #[test]
    fn nonces_outlive_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nonces");
        let (mut journal, used) = NonceJournal::open(&path, 0).unwrap();
        assert_eq!(used, []);
        let (old, new) = (nonce("old", 10), nonce("new", 20));
        journal.append(old, [].into_iter()).unwrap();
        journal.append(new, [].into_iter()).unwrap();
        drop(journal);
        let (_, used) = NonceJournal::open(&path, 10).unwrap();
        assert_eq!(used, [old, new]);
        let (_, used) = NonceJournal::open(&path, 11).unwrap();
        assert_eq!(used, [new]);
    }

    #[test]
    fn damaged_lines_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nonces");
        let good = nonce("good", 20);
        let mut content = b"rubbish\n\xFF\xFE 1\n-1 00\n99999999999999999999999 00\n".to_vec();
        content.extend_from_slice(line(good).as_bytes());
        content.extend_from_slice(b"20 1a439448cfba69b3");
        std::fs::write(&path, content).unwrap();
        let (mut journal, used) = NonceJournal::open(&path, 0).unwrap();
        assert_eq!(used, [good]);
        let next = nonce("next", 30);
        journal.append(next, [].into_iter()).unwrap();
        assert_eq!(read(&path, 0).unwrap(), [good, next]);
    }

    #[test]
    fn the_file_stays_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nonces");
        let (mut journal, _) = NonceJournal::open(&path, 0).unwrap();
        journal.lines = MAX_LINES;
        let all = [nonce("a", 5), nonce("b", 6)];
        journal.append(all[1], all.into_iter()).unwrap();
        assert_eq!(journal.lines, 2);
        assert_eq!(read(&path, 0).unwrap(), all);
    }
}
