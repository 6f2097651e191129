//! What the program says when it listens: where, how messages are kept, who may come, how to try it.

use std::net::SocketAddr;

use tyo_mq_server::{Settings, Storage};

/// Prints the banner. Its first line is the sign that connections are accepted.
pub(crate) fn print(settings: &Settings, addr: SocketAddr) {
    let url = url(addr);
    println!("tyo-mq {} listening on {addr}", env!("CARGO_PKG_VERSION"));
    println!("  storage  {}", storage(settings));
    println!("  auth     off: everybody may publish and subscribe");
    println!("  try it   io(\"{url}\") in any Socket.IO client; see the README");
}

fn storage(settings: &Settings) -> String {
    match settings.storage {
        Storage::Memory => "memory: what waits is gone when the broker stops".to_owned(),
        Storage::Sqlite => format!("sqlite: {}", settings.storage_options.filename.display()),
        Storage::Redis => "redis".to_owned(),
    }
}

/// An address that a client on this machine can use.
fn url(addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() {
        return format!("http://localhost:{}", addr.port());
    }
    format!("http://{addr}")
}
