//! Who is measured: this build, another revision's, and servers that do the least possible. Starts and ends them.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::generator::Generator;
use super::peer::{self, Peer};
use super::scenario::{self, Floor, Scenario, Store};
use crate::conformance;
use crate::revision::Revision;

/// A server that can be started.
pub(super) struct Subject {
    pub(super) name: String,
    program: PathBuf,
    kind: Kind,
}

enum Kind {
    /// A broker of ours.
    Broker,
    Floor(Floor),
    Peer(Peer),
    /// No server: what the disk gives that a store has to wait for.
    Disk,
}

impl Subject {
    pub(super) fn takes(&self, scenario: &Scenario) -> bool {
        match self.kind {
            Kind::Broker => true,
            Kind::Floor(floor) => scenario.floors.contains(&floor),
            Kind::Peer(peer) => peer.args(scenario.id).is_some(),
            Kind::Disk => scenario.store == Store::SqliteFull,
        }
    }

    /// The program that loads it in this scenario, and what that is told.
    pub(super) fn load(
        &self,
        generator: &Generator,
        scenario: &Scenario,
        quick: bool,
    ) -> Result<(PathBuf, Vec<String>)> {
        let Kind::Peer(peer) = self.kind else {
            return Ok((generator.load.clone(), scenario.args(quick)));
        };
        let mut args = peer.args(scenario.id).context("it does not take that")?;
        if !quick && !scenario.id.starts_with("backlog") {
            args.extend(["--duration", "5"].map(str::to_owned));
        }
        Ok((generator.peer.clone(), scenario::shorten(args, quick)))
    }

    pub(super) fn is_disk(&self) -> bool {
        matches!(self.kind, Kind::Disk)
    }

    pub(super) fn is_floor(&self) -> bool {
        matches!(self.kind, Kind::Floor(_))
    }

    /// How it is started on this port with its files in this folder; settings are for ours.
    fn command(
        &self,
        port: u16,
        folder: &Path,
        (store, more): (Store, Map<String, Value>),
    ) -> Result<Command> {
        let number = port.to_string();
        let mut command = Command::new(&self.program);
        match self.kind {
            Kind::Peer(peer) => return peer.command(&self.program, port, folder),
            Kind::Disk => bail!("a disk cannot be started"),
            Kind::Floor(floor) => _ = command.args([kind_of(floor), "--port", &number]),
            Kind::Broker => {
                let settings = folder.join("settings.json");
                std::fs::write(&settings, settings_text(store, more, folder))?;
                command.args(["--host", "127.0.0.1", "--port", &number, "--log", "error"]);
                command.arg("--settings").arg(settings);
            }
        }
        Ok(command)
    }
}

/// The floor program's own name of what it does.
fn kind_of(floor: Floor) -> &'static str {
    match floor {
        Floor::Raw => "raw",
        Floor::Library => "tung",
        Floor::Relay => "oxide-sync",
    }
}

/// This build first: the others are compared with it.
pub(super) fn all(
    generator: &Generator,
    compare: Option<&str>,
    peers: bool,
) -> Result<Vec<Subject>> {
    let subject = |name: &str, program: &Path, kind| Subject {
        name: name.to_owned(),
        program: program.to_owned(),
        kind,
    };
    let floor = |name, floor| subject(name, &generator.floor, Kind::Floor(floor));
    let mut subjects = vec![subject("ours", &conformance::build_broker()?, Kind::Broker)];
    if let Some(revision) = compare {
        let program = Revision::check_out(revision)?.build(&["-p", "tyo-mq"], "tyo-mq")?;
        subjects.push(subject(revision, &program, Kind::Broker));
    }
    subjects.push(floor("floor", Floor::Raw));
    if peers {
        subjects.push(floor("floor-lib", Floor::Library));
        subjects.push(floor("relay", Floor::Relay));
        for (peer, program) in peer::installed() {
            subjects.push(subject(peer.name(), &program, Kind::Peer(peer)));
        }
        subjects.push(subject("disk", &generator.peer, Kind::Disk));
    }
    Ok(subjects)
}

/// A server under way; it ends when this is dropped, and then its files.
pub(super) struct Running {
    server: Process,
    /// What our broker keeps messages in, if that is Redis.
    _redis: Option<Process>,
    _folder: Folder,
}

impl Running {
    /// Starts it with this store and these settings besides, and waits until it listens.
    pub(super) fn start(
        subject: &Subject,
        store: Store,
        mut more: Map<String, Value>,
    ) -> Result<Self> {
        let port = free_port()?;
        let folder = Folder(fresh_folder(port));
        std::fs::create_dir_all(&folder.0)?;
        let mut redis = None;
        if store == Store::Redis && matches!(subject.kind, Kind::Broker) {
            let process = Process::start_redis(&folder.0)?;
            let url = format!("redis://127.0.0.1:{}", process.port);
            more.insert("storage_options".to_owned(), json!({ "url": url }));
            redis = Some(process);
        }
        let command = subject.command(port, &folder.0, (store, more))?;
        Ok(Self {
            server: Process::start(command, port, &folder.0)?,
            _redis: redis,
            _folder: folder,
        })
    }

    pub(super) fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.server.port)
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.child.id()
    }
}

/// A folder of this process in which a server or a disk is measured.
pub(super) fn fresh_folder(number: u16) -> PathBuf {
    let name = format!("tyo-mq-bench-{}-{number}", std::process::id());
    std::env::temp_dir().join(name)
}

/// A folder that is removed when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that listens on a port; it is killed when this is dropped.
struct Process {
    child: Child,
    port: u16,
}

impl Process {
    fn start(mut command: Command, port: u16, folder: &Path) -> Result<Self> {
        let child = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let mut process = Self { child, port };
        process.wait_until_it_listens()?;
        Ok(process)
    }

    /// A Redis that writes nothing to the disk.
    fn start_redis(folder: &Path) -> Result<Self> {
        let (peer, port) = (Peer::RedisStream, free_port()?);
        let program = peer::find(peer.package())?;
        Self::start(peer.command(&program, port, folder)?, port, folder)
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let until = Instant::now() + START_LIMIT;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended at once with {status}");
            }
            if Instant::now() > until {
                bail!("it does not listen after {START_LIMIT:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const START_LIMIT: Duration = Duration::from_secs(20);

fn settings_text(store: Store, more: Map<String, Value>, folder: &Path) -> String {
    let file = folder.join("queue.sqlite");
    let sqlite = |durability: &str| json!({ "storage": "sqlite", "storage_options": { "filename": file, "durability": durability } });
    let mut settings = match store {
        Store::Memory => json!({ "storage": "memory" }),
        Store::SqliteNormal => sqlite("normal"),
        Store::SqliteFull => sqlite("full"),
        Store::Redis => json!({ "storage": "redis" }),
    };
    for (name, value) in more {
        settings[name] = value;
    }
    settings.to_string()
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
