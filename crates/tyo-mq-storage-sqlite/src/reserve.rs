//! Room kept aside on the disk: a file that is given up when the disk is full, so that acknowledgements can still be written.
//!
//! While it is given up, new messages are refused unless the database has that much room inside. It is taken again when the
//! disk has room. Small databases need none, and a disk on which there is no room for it has none.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tracing::{info, warn};

/// The size of the file: what the log may hold that the database has no room for yet.
const SIZE: u64 = 4 * 1024 * 1024;

/// It is only kept where so much was free before.
const NEEDED: u64 = 2 * SIZE;

/// Databases up to this size have none.
const SMALL: u64 = 16 * 1024 * 1024;

/// The wait between two looks at the database's size.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// The wait between two attempts to take the room.
const TAKE_PAUSE: Duration = Duration::from_millis(250);

/// The room kept aside for one database.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    state: State,
    /// No look before this moment.
    not_before: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    None,
    Held,
    GivenUp,
}

impl Reserve {
    pub(crate) fn new(database: &Path) -> Self {
        let mut name = OsString::from(database);
        name.push("-reserve");
        let path = PathBuf::from(name);
        let held = fs::metadata(&path).is_ok_and(|file| file.len() == SIZE);
        Self {
            path,
            state: if held { State::Held } else { State::None },
            not_before: None,
        }
    }

    /// Takes the room if it is wanted and there. It looks once in a while only.
    pub(crate) fn tend(&mut self, conn: &Connection) {
        let now = Instant::now();
        if self.state == State::Held || self.not_before.is_some_and(|at| now < at) {
            return;
        }
        let wanted = self.state == State::GivenUp || bytes_of(conn, "page_count") > SMALL;
        let pause = if wanted { TAKE_PAUSE } else { LOOK_PAUSE };
        self.not_before = Some(now + pause);
        if wanted && self.take().is_ok() {
            if self.state == State::GivenUp {
                info!("the disk has room again");
            }
            self.state = State::Held;
        }
    }

    /// The disk is full. Without room to give up there is nothing to guard.
    pub(crate) fn give_up(&mut self) {
        if self.state != State::Held {
            return;
        }
        warn!("the disk is full: new messages are refused");
        drop(fs::remove_file(&self.path));
        self.state = State::GivenUp;
        self.not_before = Some(Instant::now() + TAKE_PAUSE);
    }

    /// New messages may be written.
    pub(crate) fn allows_growth(&self, conn: &Connection) -> bool {
        self.state != State::GivenUp || bytes_of(conn, "freelist_count") >= SIZE
    }

    fn take(&self) -> io::Result<()> {
        let taken = self.write();
        if taken.is_err() {
            drop(fs::remove_file(&self.path));
        }
        taken
    }

    fn write(&self) -> io::Result<()> {
        let mut file = File::create(&self.path)?;
        let zeros = vec![0; 64 * 1024];
        for _ in 0..NEEDED / zeros.len() as u64 {
            file.write_all(&zeros)?;
        }
        file.set_len(SIZE)
    }
}

/// A number of pages in bytes; 0 if it cannot be told.
fn bytes_of(conn: &Connection, pages: &str) -> u64 {
    let value = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let bytes =
        value(pages).and_then(|pages| Ok(u64::from(pages) * u64::from(value("page_size")?)));
    bytes.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(dir: &Path, bytes: u64) -> (PathBuf, Connection) {
        let path = dir.join("q.sqlite");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("CREATE TABLE t (x)").unwrap();
        conn.execute("INSERT INTO t VALUES (zeroblob(?1))", [bytes.cast_signed()])
            .unwrap();
        (path, conn)
    }

    #[test]
    fn a_small_database_needs_none() {
        let dir = tempfile::tempdir().unwrap();
        let (path, conn) = database(dir.path(), SMALL / 2);
        let mut reserve = Reserve::new(&path);
        reserve.tend(&conn);
        assert!(!reserve.path.exists());
        reserve.give_up();
        assert!(reserve.allows_growth(&conn));
    }

    #[test]
    fn what_was_given_up_is_taken_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, conn) = database(dir.path(), SMALL);
        let mut reserve = Reserve::new(&path);
        reserve.tend(&conn);
        assert_eq!(fs::metadata(&reserve.path).unwrap().len(), SIZE);
        assert_eq!(
            Reserve::new(&path).state,
            State::Held,
            "found again at the next start"
        );
        reserve.give_up();
        assert!(!reserve.path.exists());
        assert!(!reserve.allows_growth(&conn));
        reserve.tend(&conn);
        assert!(!reserve.path.exists(), "not so soon");
        conn.execute_batch("DELETE FROM t").unwrap();
        assert!(reserve.allows_growth(&conn), "the database has room inside");
        reserve.not_before = None;
        reserve.tend(&conn);
        assert!(reserve.path.exists() && reserve.allows_growth(&conn));
    }
}
