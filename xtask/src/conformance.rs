//! Builds the servers that are tested from outside and starts the conformance runner on them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::metadata::Metadata;
use crate::process;

/// Where the runner is, from the project's root.
pub(crate) const RUNNER: &str = "conformance/run.mjs";

/// Passes `args` on to the runner.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if !process::root().join(RUNNER).is_file() {
        bail!("{RUNNER} is not there");
    }
    if !process::is_available("node", &["--version"]) {
        bail!("the conformance runner needs Node.js 18 or newer, and there is no `node`");
    }
    let servers = Servers::build()?;
    process::run(
        process::command("node")
            .arg(RUNNER)
            .arg("--broker")
            .arg(&servers.broker)
            .arg("--manager")
            .arg(&servers.manager)
            .arg("--engine-echo")
            .arg(&servers.engine_echo)
            .arg("--socket-echo")
            .arg(&servers.socket_echo)
            .args(args),
    )
}

/// Release builds of the broker, of its manager and of the two example servers that the protocol suites talk to.
#[derive(Debug)]
struct Servers {
    broker: PathBuf,
    manager: PathBuf,
    engine_echo: PathBuf,
    socket_echo: PathBuf,
}

impl Servers {
    fn build() -> Result<Self> {
        let packages = [
            "-p",
            "tyo-mq",
            "-p",
            "tyo-mq-manager",
            "-p",
            "tyo-mq-transport",
            "-p",
            "tyo-mq-server",
        ];
        let targets = [
            "--bin",
            "tyo-mq",
            "--bin",
            "tyo-mq-manager",
            "--example",
            "engine_echo",
            "--example",
            "socket_echo",
        ];
        let release = build_release(&[&packages[..], &targets[..]].concat())?;
        Ok(Self {
            broker: program(&release, "tyo-mq")?,
            manager: program(&release, "tyo-mq-manager")?,
            engine_echo: program(&release, "examples/engine_echo")?,
            socket_echo: program(&release, "examples/socket_echo")?,
        })
    }
}

/// A release build of the broker alone.
pub(crate) fn build_broker() -> Result<PathBuf> {
    program(
        &build_release(&["-p", "tyo-mq", "--bin", "tyo-mq"])?,
        "tyo-mq",
    )
}

/// A release build of one of the server's examples.
pub(crate) fn build_example(name: &str) -> Result<PathBuf> {
    let release = build_release(&["-p", "tyo-mq-server", "--example", name])?;
    program(&release, &format!("examples/{name}"))
}

/// Builds and returns the folder that the results are in.
fn build_release(args: &[&str]) -> Result<PathBuf> {
    process::run(process::cargo().args(["build", "--release"]).args(args))?;
    Ok(Metadata::load()?.target_directory.join("release"))
}

fn program(release: &Path, name: &str) -> Result<PathBuf> {
    let path = release
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);
    path.canonicalize()
        .with_context(|| format!("the build left no {}", path.display()))
}
