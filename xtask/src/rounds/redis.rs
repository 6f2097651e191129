//! A redis-server of our own: every write on disk before its answer, killed and started again on the same files.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::broker::lines_of;

const PROGRAM: &str = "redis-server";

/// How long a start and each answer may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// A server and its folder; it is killed when dropped.
#[derive(Debug)]
pub(super) struct Redis {
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Redis {
    /// Starts one on a free port with its files in `folder`.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut redis = Self {
            folder: folder.to_owned(),
            port,
            child: None,
        };
        redis.start_again()?;
        Ok(redis)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts it on the port and the files it had.
    pub(super) fn start_again(&mut self) -> Result<()> {
        let mut child = Command::new(PROGRAM)
            .current_dir(&self.folder)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--save", "", "--daemonize", "no", "--loglevel", "notice"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("this needs `{PROGRAM}` on the PATH"))?;
        let lines = lines_of(&mut child)?;
        self.child = Some(child);
        let began = Instant::now();
        let mut said = String::new();
        while let Ok(line) = lines.recv_timeout(PATIENCE.saturating_sub(began.elapsed())) {
            if line.contains("Ready to accept connections") {
                return Ok(());
            }
            said = line;
        }
        bail!("{PROGRAM} is not ready: {said}")
    }

    /// SIGKILL, and until it is gone.
    pub(super) fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("redis does not run")?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Asks it to stop, and waits.
    pub(super) fn shut_down(&mut self) -> Result<()> {
        // It closes the connection instead of answering.
        let _ = self.command(&["SHUTDOWN"]);
        let mut child = self.child.take().context("redis does not run")?;
        child.wait()?;
        Ok(())
    }

    /// Runs a command that is answered by OK.
    pub(super) fn command(&self, words: &[&str]) -> Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        if answer.trim() != "+OK" {
            bail!("redis: {}: {}", words.join(" "), answer.trim());
        }
        Ok(())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may be gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
