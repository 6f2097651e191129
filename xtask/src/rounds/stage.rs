//! What one round happens on: a folder, a store in it, and the broker that is started and killed there.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::broker::{Broker, Program, Start};
use super::folder::TempFolder;
use super::redis::Redis;

/// Where messages are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
    Sqlite,
    Redis,
}

impl Store {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
        }
    }

    pub(super) fn by_name(name: &str) -> Option<Self> {
        [Self::Memory, Self::Sqlite, Self::Redis]
            .into_iter()
            .find(|store| store.name() == name)
    }
}

/// One round's folder, store and broker. What is dropped first stands first.
#[derive(Debug)]
pub(super) struct Stage {
    broker: Option<Broker>,
    redis: Option<Redis>,
    disk: Option<SmallDisk>,
    program: Program,
    store: Store,
    starts: usize,
    slowest_start: Duration,
    folder: TempFolder,
}

impl Stage {
    /// Makes the folder and the store; nothing of ours runs yet.
    pub(super) fn new(broker: &Path, store: Store) -> Result<Self> {
        let folder = TempFolder::new()?;
        let program = Program {
            path: broker.to_owned(),
            settings: folder.path().join("settings.json"),
            log: folder.path().join("broker.log"),
        };
        let redis = match store {
            Store::Redis => Some(Redis::start(&folder.path().join("redis"))?),
            Store::Memory | Store::Sqlite => None,
        };
        let stage = Self {
            broker: None,
            redis,
            disk: None,
            program,
            store,
            starts: 0,
            slowest_start: Duration::ZERO,
            folder,
        };
        fs::create_dir(stage.data())?;
        stage.write_settings()?;
        Ok(stage)
    }

    /// As [`Self::new`], with the store's files on a disk of so many bytes.
    pub(super) fn on_small_disk(broker: &Path, store: Store, bytes: u64) -> Result<Self> {
        let mut stage = Self::new(broker, store)?;
        stage.disk = Some(SmallDisk::mount(stage.data(), bytes)?);
        Ok(stage)
    }

    fn write_settings(&self) -> Result<()> {
        let options = match (self.store, &self.redis) {
            (Store::Redis, Some(redis)) => json!({ "url": redis.url(), "prefix": "rounds" }),
            (Store::Sqlite, _) => json!({ "filename": self.file(), "durability": "full" }),
            _ => json!({}),
        };
        let settings = json!({
            "storage": self.store.name(),
            "storage_options": options,
            "http_api": { "enabled": true },
        });
        fs::write(&self.program.settings, settings.to_string())?;
        Ok(())
    }

    /// The folder of the store's files.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The SQLite file.
    pub(super) fn file(&self) -> PathBuf {
        self.data().join("queue.sqlite")
    }

    pub(super) fn redis(&mut self) -> Result<&mut Redis> {
        self.redis.as_mut().context("this scenario needs redis")
    }

    pub(super) fn has_redis(&self) -> bool {
        self.redis.is_some()
    }

    /// Whether messages outlive the broker.
    pub(super) fn is_lasting(&self) -> bool {
        self.store != Store::Memory
    }

    /// How often the broker was started again.
    pub(super) fn life(&self) -> usize {
        self.starts.saturating_sub(1)
    }

    pub(super) fn slowest_start(&self) -> Duration {
        self.slowest_start
    }

    /// Starts the broker and returns where it listens.
    pub(super) fn start(&mut self) -> Result<SocketAddr> {
        let broker = self.program.start()?;
        Ok(self.take(broker))
    }

    /// Starts the broker; the error is what it says when it refuses to start.
    pub(super) fn try_start(&mut self) -> Result<Result<SocketAddr, String>> {
        match self.program.try_start()? {
            Start::Listening(broker) => Ok(Ok(self.take(broker))),
            Start::Refused(status, said) if status.code().is_some_and(|code| code != 0) => {
                Ok(Err(said))
            }
            Start::Refused(status, said) => bail!("the broker ended with {status}: {said}"),
        }
    }

    fn take(&mut self, broker: Broker) -> SocketAddr {
        self.starts += 1;
        self.slowest_start = self.slowest_start.max(broker.started_in());
        let addr = broker.addr();
        self.broker = Some(broker);
        addr
    }

    pub(super) fn addr(&self) -> Result<SocketAddr> {
        Ok(self.broker.as_ref().context(NOT_RUNNING)?.addr())
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.broker.take().context(NOT_RUNNING)?.kill()
    }

    /// SIGTERM.
    pub(super) fn stop(&mut self) -> Result<()> {
        self.broker.take().context(NOT_RUNNING)?.stop()
    }

    pub(super) fn ensure_alive(&mut self) -> Result<()> {
        self.broker.as_mut().context(NOT_RUNNING)?.ensure_alive()
    }

    /// Dead letters there are.
    pub(super) fn dead_letters(&self) -> Result<usize> {
        let broker = self.broker.as_ref().context(NOT_RUNNING)?;
        let body: Value = serde_json::from_str(&broker.get("/api/realms/default/dlq")?)?;
        let entries = body["entries"].as_array().context("no dead letter list")?;
        Ok(entries.len())
    }

    pub(super) fn panics(&self) -> Vec<String> {
        self.program.panics()
    }

    /// Ends everything and keeps the folder, for a look at what went wrong.
    pub(super) fn keep(mut self) -> PathBuf {
        self.broker = None;
        self.redis = None;
        self.disk = None;
        self.folder.keep()
    }
}

const NOT_RUNNING: &str = "the broker does not run";

/// A file system in memory that is soon full.
#[derive(Debug)]
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf, bytes: u64) -> Result<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(&at)
            .status()
            .context("cannot run `mount`")?;
        if !mounted.success() {
            bail!("a small disk needs the right to mount a tmpfs (root)");
        }
        Ok(Self(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What is left over is in memory and named in `mount`.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
