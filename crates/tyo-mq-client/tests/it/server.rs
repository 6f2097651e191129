//! A server on a free port, and clients of it, for the time of a test.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tyo_mq_client::{Client, Options};
use tyo_mq_server::{Server, parse_settings};

/// How long anything may take until a test says that it does not come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Running {
    pub(crate) addr: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::on_port(0).await
    }

    pub(crate) async fn on_port(port: u16) -> Self {
        let settings = format!("{{\"host\":\"127.0.0.1\",\"port\":{port}}}");
        let loaded = parse_settings(&settings).unwrap();
        let server = Server::start(&loaded.settings).await.unwrap();
        let addr = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            // A test that ends without stopping its server ends it, too.
            let _ = stopped.await;
        }));
        Self { addr, stop, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) async fn client(&self) -> Client {
        self.client_with(Options::default()).await
    }

    pub(crate) async fn client_with(&self, options: Options) -> Client {
        let options = Options {
            connect_timeout: PATIENCE,
            call_timeout: PATIENCE,
            ..options
        };
        Client::connect(&self.url(), options).await.unwrap()
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).expect("the server runs");
        self.task.await.unwrap();
    }
}
