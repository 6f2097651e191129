//! The rugs there are: for SQLite a lock and a full disk, for Redis its end, its restart, refused writes and no memory.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::random::Random;
use super::rug::Rug;
use super::stage::Stage;

/// Another process holds the SQLite file's write lock.
#[derive(Debug)]
pub(super) struct Locked {
    holder: Option<Holder>,
    /// Longer than the broker waits for a lock.
    is_long: bool,
}

#[derive(Debug)]
struct Holder {
    child: Child,
    /// It lets go when this closes.
    hold: Option<ChildStdin>,
}

/// Takes the write lock, says so, and lets go at the end of its input.
const HOLD_LOCK: &str = "\
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
db.execute('BEGIN IMMEDIATE')
print('locked', flush=True)
sys.stdin.read()
db.execute('ROLLBACK')
";

impl Locked {
    pub(super) fn new(is_long: bool) -> Self {
        Self {
            holder: None,
            is_long,
        }
    }
}

impl Rug for Locked {
    fn pull(&mut self, stage: &mut Stage) -> Result<()> {
        let mut child = Command::new("python3")
            .args(["-c", HOLD_LOCK])
            .arg(stage.file())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("locking the file needs `python3`")?;
        let out = child.stdout.take().context("standard output is piped")?;
        let hold = child.stdin.take();
        self.holder = Some(Holder { child, hold });
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        if line.trim() != "locked" {
            bail!("the file cannot be locked");
        }
        Ok(())
    }

    fn restore(&mut self, _: &mut Stage) -> Result<()> {
        let mut holder = self.holder.take().context("nothing holds the lock")?;
        holder.hold = None;
        let status = holder.child.wait()?;
        if !status.success() {
            bail!("the holder of the lock ended with {status}");
        }
        Ok(())
    }

    fn refused_for(&self, random: &mut Random) -> Option<Duration> {
        self.is_long
            .then(|| Duration::from_millis(random.between(0, 500)))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The disk of the SQLite file is full.
#[derive(Debug)]
pub(super) struct FullDisk;

/// The size of a disk that a round can fill, and does not fill by itself.
pub(super) const SMALL_DISK_BYTES: u64 = 256 * 1024 * 1024;

impl FullDisk {
    fn ballast(stage: &Stage) -> PathBuf {
        stage.data().join("ballast")
    }
}

impl Rug for FullDisk {
    fn pull(&mut self, stage: &mut Stage) -> Result<()> {
        let mut file = File::create(Self::ballast(stage))?;
        for piece in [vec![1; 1024 * 1024], vec![1; 4096]] {
            loop {
                match file.write_all(&piece) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error).context("cannot fill the disk"),
                }
            }
        }
        Ok(())
    }

    fn restore(&mut self, stage: &mut Stage) -> Result<()> {
        // Shortened first: a file that is open somewhere keeps its space.
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(Self::ballast(stage))?;
        std::fs::remove_file(Self::ballast(stage))?;
        Ok(())
    }

    fn padding(&self) -> usize {
        2000
    }
}

/// What is done to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedisRug {
    /// SIGKILL, and a start on the files it left.
    Killed,
    /// SHUTDOWN and a start.
    Restarted,
    /// It follows a server that is not there and takes no writes.
    ReadOnly,
    /// Its memory is used up.
    OutOfMemory,
}

impl Rug for RedisRug {
    fn pull(&mut self, stage: &mut Stage) -> Result<()> {
        let redis = stage.redis()?;
        match self {
            Self::Killed => redis.kill(),
            Self::Restarted => redis.shut_down(),
            Self::ReadOnly => redis.command(&["REPLICAOF", "127.0.0.1", "1"]),
            Self::OutOfMemory => redis.command(&["CONFIG", "SET", "maxmemory", "1"]),
        }
    }

    fn restore(&mut self, stage: &mut Stage) -> Result<()> {
        let redis = stage.redis()?;
        match self {
            Self::Killed | Self::Restarted => redis.start_again(),
            Self::ReadOnly => redis.command(&["REPLICAOF", "NO", "ONE"]),
            Self::OutOfMemory => redis.command(&["CONFIG", "SET", "maxmemory", "0"]),
        }
    }
}
