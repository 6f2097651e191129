//! A broker as it is after its first start with authentication on: settings and the admin's token are made in an empty folder.

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;
use tokio::sync::oneshot;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_server::{Environment, Server, StartOptions, load_settings};

use crate::broker_program::BrokerProgram;

/// The real broker and the folder that it was started in.
pub(crate) struct Fresh {
    home: TempDir,
    addr: SocketAddr,
    _runs: Broker,
}

/// In this process, or in its own.
enum Broker {
    Here { _stop: oneshot::Sender<()> },
    Program { _runs: BrokerProgram },
}

impl Fresh {
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        assert!(!home.path().join(SETTINGS).exists());
        Self::start_in(home)
    }

    /// The same with an auth store and the HTTP API.
    pub(crate) fn with_everything() -> Self {
        let home = tempfile::tempdir().unwrap();
        let settings = Object::new()
            .with("http_api", Object::new().with("enabled", true))
            .with("auth_store", in_folder(home.path(), "auth.sqlite"));
        let text = Value::from(settings).to_json();
        std::fs::write(home.path().join(SETTINGS), text).unwrap();
        Self::start_in(home)
    }

    fn start_in(home: TempDir) -> Self {
        let settings = home.path().join(SETTINGS);
        if let Some(program) = BrokerProgram::start(home.path(), &settings, true) {
            return Self {
                home,
                addr: program.addr(),
                _runs: Broker::Program { _runs: program },
            };
        }
        let folder = home.path().to_owned();
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let server = serve(&folder).await;
                tell.send(server.local_addr()).unwrap();
                let goodbye = async {
                    // A test that ends ends its broker.
                    let _ = stopped.await;
                };
                server.run(goodbye).await;
            });
        });
        Self {
            home,
            addr: told.recv().unwrap(),
            _runs: Broker::Here { _stop: stop },
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

/// What the program `tyo-mq` does with `TYO_MQ_AUTH_ENABLED=true`.
async fn serve(folder: &Path) -> Server {
    let environment = Environment::from_variables([
        ("TYO_MQ_AUTH_ENABLED".to_owned(), "true".to_owned()),
        ("TYO_MQ_ENV_FILE".to_owned(), in_folder(folder, ".env")),
    ]);
    let file = folder.join(SETTINGS);
    let loaded = load_settings(&file).unwrap();
    let mut settings = loaded.settings.clone();
    settings.host = [127, 0, 0, 1].into();
    settings.port = 0;
    settings.enable_auth_by_default();
    let mut options = StartOptions::with_file(file, &loaded);
    options.environment = environment.unwrap();
    Server::start_with(&settings, options).await.unwrap()
}

fn in_folder(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

const SETTINGS: &str = "settings.json";
