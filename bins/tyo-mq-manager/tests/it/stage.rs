//! A broker for the time of a test: the stand-in, or the program that `TYO_MQ_BROKER` names.

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;
use tyo_mq_auth::json::{Object, Value};

use crate::broker_program::BrokerProgram;
use crate::stand_in::StandIn;

/// The global admin's token.
pub(crate) const ADMIN_TOKEN: &str = "an-admins-token";

/// The key of the manager of realm `shop`.
pub(crate) const SHOP_KEY: &str = "a-key-of-shops-manager";

/// A broker and a home folder for its user.
pub(crate) struct Stage {
    home: TempDir,
    addr: SocketAddr,
    broker: Broker,
}

enum Broker {
    StandIn { _runs: StandIn },
    Program { _runs: BrokerProgram },
}

impl Stage {
    /// A broker with authentication, a global admin, and a realm `shop` with a manager.
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let settings = Object::new().with("auth", auth());
        let file = home.path().join("settings.json");
        std::fs::write(&file, Value::from(settings).to_json()).unwrap();
        let (addr, broker) = match BrokerProgram::start(home.path(), &file, false) {
            None => {
                let stand_in = StandIn::start(&auth().to_json(), false);
                (stand_in.addr(), Broker::StandIn { _runs: stand_in })
            }
            Some(program) => (program.addr(), Broker::Program { _runs: program }),
        };
        Self { home, addr, broker }
    }

    /// A stand-in that has the commands of the reference and no others.
    pub(crate) fn old() -> Self {
        let stand_in = StandIn::start(&auth().to_json(), true);
        Self {
            home: tempfile::tempdir().unwrap(),
            addr: stand_in.addr(),
            broker: Broker::StandIn { _runs: stand_in },
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Puts a file into the home folder; its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.home().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Whether the broker is the stand-in, which has dead letters without messages.
    pub(crate) fn is_stand_in(&self) -> bool {
        matches!(self.broker, Broker::StandIn { .. })
    }
}

/// The `auth` block of the settings.
fn auth() -> Value {
    let admin = Object::new()
        .with("token", ADMIN_TOKEN)
        .with("realm", "*")
        .with("role", "admin");
    let shop = Object::new()
        .with("required", true)
        .with("manager_key", SHOP_KEY);
    let realms = Object::new()
        .with("default", Object::new().with("required", false))
        .with("shop", shop);
    Object::new()
        .with("enabled", true)
        .with("auto_admin_token", false)
        .with("strict", false)
        .with("tokens", vec![Value::from(admin)])
        .with("realms", realms)
        .into()
}
