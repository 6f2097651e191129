//! A server on a free port, for the time of a test.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tyo_mq_server::{Environment, Server, Settings, StartOptions, load_settings, parse_settings};

pub(crate) struct Running {
    pub(crate) addr: SocketAddr,
    /// What SIGHUP does.
    pub(crate) reload: Box<dyn Fn() + Send>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts with the default settings.
    pub(crate) async fn start() -> Self {
        Self::with(json!({})).await
    }

    /// Starts with settings as a file has them; address and port are ours.
    pub(crate) async fn with(settings: Value) -> Self {
        let loaded = parse_settings(&on_free_port(settings).to_string()).unwrap();
        assert_eq!(loaded.warnings, [], "every key of a test has an effect");
        Self::begin(&loaded.settings, StartOptions::default()).await
    }

    /// Starts with a settings file that is there, as the program does, and with these variables.
    pub(crate) async fn with_file(file: &Path, variables: &[(&str, &str)]) -> Self {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::from_variables(variables).unwrap();
        let loaded = load_settings(file).unwrap();
        let mut options = StartOptions::with_file(file.to_owned(), &loaded);
        let mut settings = loaded.settings;
        if environment.enables_auth() {
            settings.enable_auth_by_default();
        }
        options.environment = environment;
        Self::begin(&settings, options).await
    }

    async fn begin(settings: &Settings, options: StartOptions) -> Self {
        let server = Server::start_with(settings, options).await.unwrap();
        let addr = server.local_addr();
        let reload = Box::new(server.reloader());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            // A test that ends without stopping its server ends it, too.
            let _ = stopped.await;
        }));
        Self {
            addr,
            reload,
            stop,
            task,
        }
    }

    /// Asks the server to stop; the handle says when it has.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        self.stop.send(()).expect("the server runs");
        self.task
    }
}

/// Settings with an address and port of ours.
pub(crate) fn on_free_port(mut settings: Value) -> Value {
    settings["host"] = json!("127.0.0.1");
    settings["port"] = json!(0);
    settings
}
