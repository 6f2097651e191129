//! Health and metrics, over HTTP.

use std::net::SocketAddr;

use tokio::sync::oneshot;
use tyo_mq_server::{Server, parse_settings};

use crate::program::{Program, text};

/// A server for the time of a test; it ends when the sender is dropped.
pub(crate) fn serve(settings: &str) -> (SocketAddr, oneshot::Sender<()>) {
    let loaded = parse_settings(settings).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = Server::start(&loaded.settings).await.unwrap();
            tell.send(server.local_addr()).unwrap();
            let goodbye = async {
                // Dropped, that is.
                let _ = stopped.await;
            };
            server.run(goodbye).await;
        });
    });
    (told.recv().unwrap(), stop)
}

fn run(addr: SocketAddr, command: &str) -> Program {
    let home = std::env::temp_dir();
    Program::new(&home, &[command]).env("TYO_MQ_URL", &format!("http://{addr}"))
}

#[test]
fn health() {
    let settings = r#"{"host":"127.0.0.1","port":0,"http_api":{"enabled":true}}"#;
    let (addr, _server) = serve(settings);
    let health = run(addr, "health").json();
    assert_eq!(text(&health, &["status"]), "ok");
    assert!(run(addr, "health").succeeds().contains("uptime"));
}

#[test]
fn what_is_off_is_said_to_be() {
    let (addr, _server) = serve(r#"{"host":"127.0.0.1","port":0}"#);
    run(addr, "health").fails(8);
    run(addr, "metrics").fails(8);
}

#[test]
fn nobody_is_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    run(addr, "health").fails(3);
}
