//! What is there beside the pair that is measured: connections, subscriptions, realms, a queue.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::curve::{Curve, Kind, token};
use crate::bench::generator::Generator;
use crate::bench::subject::Running;
use crate::client::{Client, Incoming};

/// It ends when this is dropped.
pub(super) enum Background {
    Nothing,
    Idle(Child),
    Clients { _held: Vec<Client> },
}

impl Background {
    /// Returns when all of it is there.
    pub(super) fn start(
        generator: &Generator,
        server: &Running,
        curve: &Curve,
        point: u64,
    ) -> Result<Self> {
        let addr: SocketAddr = server.addr().parse()?;
        Ok(match curve.kind {
            Kind::Idle => idle(generator, server, point)?,
            Kind::Subscriptions => Self::Clients {
                _held: vec![subscriptions(addr, point)?],
            },
            Kind::Realms => {
                let clients = (1..point).map(|n| subscriber(addr, n));
                Self::Clients {
                    _held: clients.collect::<Result<_>>()?,
                }
            }
            Kind::Queued => {
                queue(addr, point)?;
                Self::Nothing
            }
            Kind::Busy
            | Kind::Topics
            | Kind::Backlog
            | Kind::WorkersPairs
            | Kind::WorkersFanOut => Self::Nothing,
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Self::Idle(child) = self {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How long it may take until all of it is there.
const PATIENCE: Duration = Duration::from_secs(120);

fn idle(generator: &Generator, server: &Running, count: u64) -> Result<Background> {
    let before = settled_files(server.pid())?;
    let child = Command::new(&generator.load)
        .args(["--addr", &server.addr(), "idle", "--register", "--hold"])
        .args(["3600", "--connections", &count.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the idle connections")?;
    let background = Background::Idle(child);
    let until = Instant::now() + PATIENCE;
    while open_files(server.pid())? < before + count {
        if Instant::now() > until {
            bail!("{count} connections are not there after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // The last ones still subscribe.
    std::thread::sleep(Duration::from_millis(500));
    Ok(background)
}

/// What the server has open on its own: the connection that saw it listen may still be closing.
fn settled_files(pid: u32) -> Result<u64> {
    let mut least = open_files(pid)?;
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(20));
        least = least.min(open_files(pid)?);
    }
    Ok(least)
}

fn open_files(pid: u32) -> Result<u64> {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))?;
    Ok(entries.count() as u64)
}

/// Commands that are under way at a time.
const BATCH: u64 = 500;

fn subscriptions(addr: SocketAddr, count: u64) -> Result<Client> {
    let mut client = Client::connect(addr)?;
    client.emit("CONSUMER", &json!({ "name": "other", "id": "other" }))?;
    for n in 0..count {
        let event = format!("other-{n}");
        let subscribe = json!({ "event": event, "producer": "nobody", "consumer": "other" });
        client.emit("SUBSCRIBE", &subscribe)?;
        if n % BATCH == BATCH - 1 {
            settle(&mut client)?;
        }
    }
    settle(&mut client)?;
    Ok(client)
}

/// A client that subscribed in the n-th realm.
fn subscriber(addr: SocketAddr, n: u64) -> Result<Client> {
    let mut client = Client::connect(addr)?;
    client.emit("AUTHENTICATION", &json!({ "token": token(n) }))?;
    client.emit("CONSUMER", &json!({ "name": "other", "id": "other" }))?;
    let subscribe = json!({ "event": "event", "producer": "nobody", "consumer": "other" });
    client.emit("SUBSCRIBE", &subscribe)?;
    settle(&mut client)?;
    Ok(client)
}

/// So many messages wait for a consumer that is gone.
fn queue(addr: SocketAddr, count: u64) -> Result<()> {
    let mut consumer = Client::connect(addr)?;
    let who = json!({ "name": "away", "id": "away" });
    consumer.emit("CONSUMER", &who)?;
    let subscribe = json!({
        "event": "kept", "producer": "sender", "consumer": "away", "consumer_id": "away", "durable": true,
    });
    consumer.emit("SUBSCRIBE", &subscribe)?;
    settle(&mut consumer)?;
    drop(consumer);
    let mut producer = Client::connect(addr)?;
    producer.emit("PRODUCER", &json!({ "name": "sender" }))?;
    let filler = "x".repeat(50);
    for n in 0..count {
        let message = json!({ "event": "kept", "message": [n, filler], "from": "sender" });
        producer.emit("PRODUCE", &message)?;
        if n % BATCH == BATCH - 1 {
            settle(&mut producer)?;
        }
    }
    settle(&mut producer)
}

/// Waits until everything sent so far was handled, and looks at what was refused.
fn settle(client: &mut Client) -> Result<()> {
    let asked = client.call("PING", &json!({}))?;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match client.next(Duration::from_secs(1))? {
            Some(Incoming::Answer { ack, .. }) if ack == asked => return Ok(()),
            Some(Incoming::Event { name, payload })
                if matches!(name.as_str(), "ERROR" | "AUTH_FAIL") =>
            {
                bail!("{name}: {payload}")
            }
            _ => {}
        }
    }
    bail!("no answer after {PATIENCE:?}")
}
