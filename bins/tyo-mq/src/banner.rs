//! What the program says when it listens: where, how messages are kept, who may come, how to try it.

use std::io::Write;
use std::net::SocketAddr;

use tyo_mq_server::{Backend, Server, Settings};

/// Prints the banner. Its first line is the sign that connections are accepted.
pub(crate) fn print(settings: &Settings, server: &Server) {
    let addr = server.local_addr();
    let auth = if server.authenticates() {
        "on: clients need a token, a key or an approval"
    } else {
        "off: everybody may publish and subscribe"
    };
    let text = format!(
        "tyo-mq {} listening on {addr}\n  storage  {}\n  auth     {auth}\n  try it   io(\"{}\") in any Socket.IO client; see the README\n",
        env!("CARGO_PKG_VERSION"),
        storage(settings),
        url(addr),
    );
    // Whoever started the broker may have read enough and closed our output: that is no reason to stop.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
}

fn storage(settings: &Settings) -> String {
    match settings.storage_config().map(|config| config.backend) {
        Ok(Backend::Sqlite(config)) => format!("sqlite: {}", config.path.display()),
        Ok(Backend::Redis(_)) => "redis".to_owned(),
        _ => "memory: what waits is gone when the broker stops".to_owned(),
    }
}

/// An address that a client on this machine can use.
fn url(addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() {
        return format!("http://localhost:{}", addr.port());
    }
    format!("http://{addr}")
}
