//! Redis servers for tests: one of its own for each, on a free port, with its files in a folder that goes with it.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use fred::prelude::*;
use tempfile::TempDir;

/// A running `redis-server`; it ends with the value.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    args: Vec<String>,
    dir: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// With arguments of its command line.
    pub(crate) fn with(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let args: Vec<String> = args
            .iter()
            .map(|arg| (*arg).replace("@DIR@", dir.path().to_str().unwrap()))
            .collect();
        let port = free_port();
        let child = spawn(port, &args, &dir);
        let server = Self {
            child,
            port,
            args,
            dir,
        };
        server.wait_for_port();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port with the same files.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.port, &self.args, &self.dir);
        self.wait_for_port();
    }

    /// It stays connected and does not answer.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .arg(signal)
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// A plain client.
    pub(crate) async fn client(&self) -> Client {
        let client = Builder::from_config(Config::from_url(&self.url()).unwrap())
            .build()
            .unwrap();
        client.init().await.unwrap();
        client
    }

    fn wait_for_port(&self) {
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn spawn(port: u16, args: &[String], dir: &TempDir) -> Child {
    let mut command = Command::new("redis-server");
    if let Some(file) = args.first().filter(|arg| !arg.starts_with("--")) {
        command.arg(file);
    }
    command
        .args(["--port", &port.to_string(), "--save", "", "--dir"])
        .arg(dir.path())
        .args(args.iter().skip_while(|arg| !arg.starts_with("--")))
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed: the tests of this store need it")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Runs a command with text arguments.
pub(crate) async fn run(client: &Client, command: &[&str]) -> Value {
    let name =
        fred::types::CustomCommand::new(command[0], fred::types::ClusterHash::FirstKey, false);
    client
        .custom(
            name,
            command[1..]
                .iter()
                .map(|arg| (*arg).to_owned())
                .collect::<Vec<_>>(),
        )
        .await
        .unwrap()
}
