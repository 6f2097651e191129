//! Brokers of others: which package has them, how they are started, and what they are asked beside each scenario.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// A broker of others in one of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Nats,
    JetStreamMemory,
    JetStreamFile,
    Mosquitto,
    MosquittoAcked,
    RedisChannel,
    RedisStream,
    RedisEverysec,
    RedisAlways,
}

/// In the order of the table.
pub(super) const PEERS: [Peer; 9] = [
    Peer::Nats,
    Peer::Mosquitto,
    Peer::RedisChannel,
    Peer::JetStreamMemory,
    Peer::MosquittoAcked,
    Peer::RedisStream,
    Peer::JetStreamFile,
    Peer::RedisEverysec,
    Peer::RedisAlways,
];

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nats => "nats",
            Self::JetStreamMemory => "jetstream-memory",
            Self::JetStreamFile => "jetstream-file",
            Self::Mosquitto => "mosquitto",
            Self::MosquittoAcked => "mosquitto-qos1",
            Self::RedisChannel => "redis",
            Self::RedisStream => "redis-stream",
            Self::RedisEverysec => "redis-everysec",
            Self::RedisAlways => "redis-always",
        }
    }

    /// The program, which is also the name of its Debian package.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Nats | Self::JetStreamMemory | Self::JetStreamFile => "nats-server",
            Self::Mosquitto | Self::MosquittoAcked => "mosquitto",
            Self::RedisChannel | Self::RedisStream | Self::RedisEverysec | Self::RedisAlways => {
                "redis-server"
            }
        }
    }

    /// What its bench is told in this scenario; nothing if it is not comparable there.
    pub(super) fn args(self, scenario: &str) -> Option<Vec<String>> {
        if !self.scenarios().contains(&scenario) {
            return None;
        }
        let backlog = scenario.starts_with("backlog");
        let kind: &[&str] = match (self, backlog) {
            (Self::Nats, _) => &["nats"],
            (Self::Mosquitto, _) => &["mqtt"],
            (Self::MosquittoAcked, _) => &["mqtt", "--qos", "1"],
            (Self::RedisChannel, _) => &["redis"],
            (Self::JetStreamMemory, false) => &["js", "--memory"],
            (Self::JetStreamMemory, true) => &["js-backlog", "--memory"],
            (Self::JetStreamFile, false) => &["js"],
            (Self::JetStreamFile, true) => &["js-backlog"],
            (_, false) => &["stream"],
            (_, true) => &["stream-backlog"],
        };
        let args = kind.iter().chain(shape(scenario));
        Some(args.map(|arg| (*arg).to_owned()).collect())
    }

    fn scenarios(self) -> &'static [&'static str] {
        match self {
            Self::Nats | Self::Mosquitto | Self::RedisChannel => {
                &["1-1", "1-1-1k", "1-100", "pairs"]
            }
            Self::JetStreamMemory => &["ack", "ack-50", "backlog"],
            Self::RedisStream => &["ack", "ack-50", "ack-redis", "backlog", "backlog-redis"],
            Self::MosquittoAcked => &["ack"],
            Self::JetStreamFile | Self::RedisEverysec => {
                &["ack-sqlite", "backlog-sqlite", "backlog-ack"]
            }
            Self::RedisAlways => &["ack-full"],
        }
    }

    /// How `program` is started on `port` with its files in `folder`.
    pub(super) fn command(self, program: &Path, port: u16, folder: &Path) -> Result<Command> {
        let mut command = Command::new(program);
        let number = port.to_string();
        match self {
            Self::Nats => _ = command.args(["-a", "127.0.0.1", "-p", &number]),
            Self::JetStreamMemory | Self::JetStreamFile => {
                command.args(["-a", "127.0.0.1", "-p", &number, "-js", "-sd"]);
                command.arg(folder);
            }
            Self::Mosquitto | Self::MosquittoAcked => {
                let settings = folder.join("mosquitto.conf");
                std::fs::write(&settings, format!("listener {port} 127.0.0.1\n{MOSQUITTO}"))?;
                command.arg("-c").arg(settings);
            }
            Self::RedisChannel | Self::RedisStream | Self::RedisEverysec | Self::RedisAlways => {
                command.args(["--bind", "127.0.0.1", "--port", &number, "--save", ""]);
                command.args(self.redis_log());
            }
        }
        Ok(command)
    }

    fn redis_log(self) -> &'static [&'static str] {
        match self {
            Self::RedisEverysec => &["--appendonly", "yes", "--appendfsync", "everysec"],
            Self::RedisAlways => &["--appendonly", "yes", "--appendfsync", "always"],
            _ => &["--appendonly", "no"],
        }
    }
}

/// No login, nothing on the disk, and queues that drop nothing.
const MOSQUITTO: &str = "\
allow_anonymous true
persistence false
max_inflight_messages 1000
max_queued_messages 0
set_tcp_nodelay true
";

/// The same sizes and messages under way as the scenario has against ours.
fn shape(scenario: &str) -> &'static [&'static str] {
    match scenario {
        "1-1-1k" => &["--payload", "1024", "--window", "512"],
        "1-100" => &["--consumers", "100", "--window", "16"],
        "pairs" => &["--channels", "100", "--window", "32"],
        "ack" | "ack-sqlite" | "ack-full" | "ack-redis" => &["--window", "256"],
        "ack-50" => &["--channels", "50", "--window", "256"],
        "backlog" | "backlog-sqlite" | "backlog-ack" | "backlog-redis" => &["--count", "100000"],
        _ => &["--window", "512"],
    }
}

/// Those whose programs are there; says what to install for the others.
pub(super) fn installed() -> Vec<(Peer, PathBuf)> {
    let mut missing: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for peer in PEERS {
        match find(peer.package()) {
            Ok(program) => found.push((peer, program)),
            Err(_) if missing.contains(&peer.package()) => {}
            Err(error) => {
                eprintln!("left out: {error:#}");
                missing.push(peer.package());
            }
        }
    }
    found
}

/// A server's program, on the PATH or where Debian puts servers.
pub(super) fn find(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .with_context(|| format!("there is no {program}; Debian has it in the package {program}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario::SCENARIOS;

    #[test]
    fn peers_are_asked_what_scenarios_ask() {
        for peer in PEERS {
            for id in peer.scenarios() {
                assert!(SCENARIOS.iter().any(|scenario| scenario.id == *id), "{id}");
            }
            assert!(peer.args("topics").is_none());
        }
        let args = Peer::JetStreamMemory.args("ack-50").unwrap().join(" ");
        assert_eq!(args, "js --memory --channels 50 --window 256");
        let args = Peer::RedisEverysec.args("backlog-ack").unwrap().join(" ");
        assert_eq!(args, "stream-backlog --count 100000");
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = find("no-such-server").unwrap_err().to_string();
        assert!(error.contains("package no-such-server"), "{error}");
    }
}
