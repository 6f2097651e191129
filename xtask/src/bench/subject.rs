//! Who is measured: this build, another revision's, and servers that do the least possible. Starts and ends them.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Load;
use super::scenario::{Scenario, Store};
use crate::{conformance, process};

/// A server that can be started.
pub(super) struct Subject {
    pub(super) name: String,
    program: PathBuf,
    kind: Kind,
}

enum Kind {
    /// A broker of ours.
    Broker,
    /// A floor, and its own name of what it does.
    Floor(&'static str),
}

impl Subject {
    pub(super) fn takes(&self, scenario: &Scenario) -> bool {
        match self.kind {
            Kind::Broker => true,
            Kind::Floor(_) => scenario.floor,
        }
    }
}

/// This build first: the others are compared with it.
pub(super) fn all(load: &Load, compare: Option<&str>, peers: bool) -> Result<Vec<Subject>> {
    let floor = |name: &str, what| Subject {
        name: name.to_owned(),
        program: load.floor.clone(),
        kind: Kind::Floor(what),
    };
    let program = conformance::build_broker()?;
    let mut subjects = vec![Subject {
        name: "ours".to_owned(),
        program,
        kind: Kind::Broker,
    }];
    if let Some(revision) = compare {
        let program = build_revision(revision)?;
        subjects.push(Subject {
            name: revision.to_owned(),
            program,
            kind: Kind::Broker,
        });
    }
    subjects.push(floor("floor", "raw"));
    if peers {
        subjects.push(floor("floor-lib", "tung"));
        subjects.push(floor("relay", "oxide-sync"));
    }
    Ok(subjects)
}

/// Builds another revision in a work tree and a target folder of its own.
fn build_revision(revision: &str) -> Result<PathBuf> {
    let tree = process::root().join("target/compare/tree");
    let target = process::root().join("target/compare/build");
    if tree.exists() {
        process::run(
            process::command("git")
                .args(["worktree", "remove", "--force"])
                .arg(&tree),
        )?;
    }
    process::run(
        process::command("git")
            .args(["worktree", "add", "--detach"])
            .arg(&tree)
            .arg(revision),
    )?;
    let mut cargo = process::cargo();
    cargo.current_dir(&tree).args([
        "build",
        "--release",
        "--locked",
        "-p",
        "tyo-mq",
        "--target-dir",
    ]);
    process::run(cargo.arg(&target))?;
    Ok(target.join("release/tyo-mq"))
}

/// A server under way; it ends when this is dropped.
pub(super) struct Running {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Running {
    pub(super) fn start(subject: &Subject, scenario: &Scenario) -> Result<Self> {
        let port = free_port()?;
        let folder =
            std::env::temp_dir().join(format!("tyo-mq-bench-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(&subject.program);
        match subject.kind {
            Kind::Broker => {
                let settings = folder.join("settings.json");
                std::fs::write(&settings, settings_text(scenario.store, &folder))?;
                command.args([
                    "--host",
                    "127.0.0.1",
                    "--log",
                    "error",
                    "--port",
                    &port.to_string(),
                    "--settings",
                ]);
                command.arg(settings);
            }
            Kind::Floor(what) => _ = command.args([what, "--port", &port.to_string()]),
        }
        let child = command
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.with_context(|| format!("cannot start {}", subject.program.display()))?;
        let mut running = Self {
            child,
            port,
            folder,
        };
        running.wait_until_it_listens()?;
        Ok(running)
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

    pub(super) fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, and its folder be gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const START_LIMIT: Duration = Duration::from_secs(20);

fn settings_text(store: Store, folder: &Path) -> String {
    let file = folder.join("queue.sqlite");
    let sqlite = |durability: &str| serde_json::json!({ "storage": "sqlite", "storage_options": { "filename": file, "durability": durability } });
    let settings = match store {
        Store::Memory => serde_json::json!({ "storage": "memory" }),
        Store::SqliteNormal => sqlite("normal"),
        Store::SqliteFull => sqlite("full"),
    };
    settings.to_string()
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
