//! A server on a free port, for the time of a test.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tyo_mq_server::{Server, parse_settings};

pub(crate) struct Running {
    pub(crate) addr: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts with the default settings.
    pub(crate) async fn start() -> Self {
        Self::with(json!({})).await
    }

    /// Starts with settings as a file has them; address and port are ours.
    pub(crate) async fn with(mut settings: Value) -> Self {
        settings["host"] = json!("127.0.0.1");
        settings["port"] = json!(0);
        let loaded = parse_settings(&settings.to_string()).unwrap();
        assert_eq!(loaded.warnings, [], "every key of a test has an effect");
        let server = Server::start(&loaded.settings).await.unwrap();
        let addr = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            // A test that ends without stopping its server ends it, too.
            let _ = stopped.await;
        }));
        Self { addr, stop, task }
    }

    /// Asks the server to stop; the handle says when it has.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        self.stop.send(()).expect("the server runs");
        self.task
    }
}
