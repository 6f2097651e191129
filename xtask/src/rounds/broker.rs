//! The broker under test as a process: started with a settings file, killed without notice, asked over HTTP.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a start may take. The store of a round is small.
pub(super) const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a broker that was asked to stop may take.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Where the program and the files of one broker are.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) settings: PathBuf,
    /// What it writes to standard error, all starts together.
    pub(super) log: PathBuf,
}

/// A running broker. It is killed when dropped.
#[derive(Debug)]
pub(super) struct Broker {
    child: Child,
    addr: SocketAddr,
    started_in: Duration,
}

/// How a start ended.
#[derive(Debug)]
pub(super) enum Start {
    Listening(Broker),
    /// It ended by itself, with this status and this on standard error.
    Refused(ExitStatus, String),
}

impl Program {
    /// Starts it on a free port and waits until it listens.
    pub(super) fn start(&self) -> Result<Broker> {
        match self.try_start()? {
            Start::Listening(broker) => Ok(broker),
            Start::Refused(status, said) => bail!("the broker did not start, {status}: {said}"),
        }
    }

    /// Starts it and waits until it listens or ends.
    pub(super) fn try_start(&self) -> Result<Start> {
        let began = Instant::now();
        let log = open_log(&self.log)?;
        let said_before = log.metadata()?.len();
        let mut child = Command::new(&self.path)
            .args(["--host", "127.0.0.1", "--port", "0", "--settings"])
            .arg(&self.settings)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.path.display()))?;
        let lines = lines_of(&mut child)?;
        loop {
            match lines.recv_timeout(START_LIMIT.saturating_sub(began.elapsed())) {
                Ok(line) => {
                    if let Some(addr) = listening_address(&line) {
                        let started_in = began.elapsed();
                        return Ok(Start::Listening(Broker {
                            child,
                            addr,
                            started_in,
                        }));
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = child.wait()?;
                    return Ok(Start::Refused(status, self.said_since(said_before)?));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    child.kill()?;
                    child.wait()?;
                    bail!("the broker does not listen after {START_LIMIT:?}");
                }
            }
        }
    }

    /// Whether any start of it has panicked.
    pub(super) fn panics(&self) -> Vec<String> {
        let said = self.said_since(0).unwrap_or_default();
        let is_panic = |line: &&str| line.contains("panicked at");
        said.lines().filter(is_panic).map(str::to_owned).collect()
    }

    fn said_since(&self, offset: u64) -> Result<String> {
        let bytes = std::fs::read(&self.log)?;
        let from = usize::try_from(offset)?.min(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[from..]).trim().to_owned())
    }
}

impl Broker {
    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(super) fn started_in(&self) -> Duration {
        self.started_in
    }

    /// SIGKILL, and until it is gone.
    pub(super) fn kill(mut self) -> Result<()> {
        self.ensure_alive()?;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM, and until it has ended well.
    pub(super) fn stop(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status()?;
        if !sent.success() {
            bail!("cannot send SIGTERM to the broker");
        }
        let began = Instant::now();
        while began.elapsed() < STOP_LIMIT {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("the broker ended with {status} when asked to stop"),
                None => std::thread::sleep(LOOK_AGAIN),
            }
        }
        bail!("the broker still runs {STOP_LIMIT:?} after SIGTERM")
    }

    /// An error if it ended by itself.
    pub(super) fn ensure_alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the broker ended by itself with {status}"),
        }
    }

    /// The body of a GET.
    pub(super) fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(self.addr)?;
        stream.set_read_timeout(Some(START_LIMIT))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.addr
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
        if !head.starts_with("HTTP/1.1 200") {
            bail!("GET {path}: {}", head.lines().next().unwrap_or_default());
        }
        Ok(body.to_owned())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How often it is looked at whether a process has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

fn open_log(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The lines of a child's standard output, read to its end by a thread so that the child never waits.
pub(super) fn lines_of(child: &mut Child) -> Result<mpsc::Receiver<String>> {
    let out = child.stdout.take().context("standard output is piped")?;
    let (lines, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            // Nobody listens after the start.
            let _ = lines.send(line);
        }
    });
    Ok(receiver)
}

fn listening_address(line: &str) -> Option<SocketAddr> {
    let (_, addr) = line.split_once("listening on ")?;
    addr.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_says_the_address() {
        let addr = |line| listening_address(line).map(|addr| addr.to_string());
        let expected = Some("127.0.0.1:4711".to_owned());
        assert_eq!(addr("tyo-mq 0.1.0 listening on 127.0.0.1:4711"), expected);
        assert_eq!(addr("  storage  memory"), None);
        assert_eq!(addr("listening on nothing"), None);
    }
}
