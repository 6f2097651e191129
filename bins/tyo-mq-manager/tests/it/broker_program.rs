//! The program that `TYO_MQ_BROKER` names, for the time of a test.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The broker in a process of its own.
pub(crate) struct BrokerProgram {
    child: Child,
    addr: SocketAddr,
    /// Open as long as it runs.
    _stdout: BufReader<ChildStdout>,
}

impl BrokerProgram {
    /// Starts it in a folder with these settings, if the variable is set.
    pub(crate) fn start(folder: &Path, settings: &Path, auth_enabled: bool) -> Option<Self> {
        let program = std::env::var_os("TYO_MQ_BROKER")?;
        let mut child = Command::new(program)
            .args(["--host", "127.0.0.1", "--port", "0", "--settings"])
            .arg(settings)
            .env_clear()
            .env("TYO_MQ_AUTH_ENABLED", auth_enabled.to_string())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut banner = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut banner).unwrap();
        let addr = banner.trim().rsplit(' ').next().unwrap().parse();
        Some(Self {
            child,
            addr: addr.unwrap(),
            _stdout: stdout,
        })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for BrokerProgram {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has seen then.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}
