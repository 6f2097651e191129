//! A connection that is no bare TCP stream, as with TLS: only its own task writes.

use futures_util::{SinkExt, StreamExt};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::duplex;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message as Ws;
use tyo_mq_transport::{CloseReason, Forbidden, SendKind};

use crate::support::{Server, quiet, soon, text};

#[tokio::test]
async fn websocket_over_any_stream() {
    let mut server = Server::start(quiet()).await;
    // Small, so that the writer has to wait.
    let (near, far) = duplex(1000);
    let service = TowerToHyperService::new(server.engine.service(Forbidden));
    tokio::spawn(
        http1::Builder::new()
            .serve_connection(TokioIo::new(far), service)
            .with_upgrades(),
    );
    let (mut client, _) = soon(client_async(
        "ws://x/socket.io/?EIO=4&transport=websocket",
        near,
    ))
    .await
    .unwrap();
    let (conn, info) = server.opened().await;
    assert_eq!(info.remote_addr, None);
    let open = soon(client.next()).await.unwrap().unwrap();
    assert!(open.to_text().unwrap().starts_with("0{"));
    for size in [1, 100, 100_000] {
        client
            .send(Ws::text(format!("4{}", "x".repeat(size))))
            .await
            .unwrap();
        assert_eq!(soon(client.next()).await.unwrap().unwrap().len(), size + 1);
    }
    let large = "y".repeat(50_000);
    conn.send(&text(&large), SendKind::Keep);
    conn.flush();
    assert_eq!(soon(client.next()).await.unwrap().unwrap().len(), 50_001);
    client.send(Ws::text("4bye")).await.unwrap();
    assert_eq!(
        soon(client.next()).await.unwrap().unwrap(),
        Ws::text("4last words")
    );
    assert!(matches!(
        soon(client.next()).await,
        Some(Ok(Ws::Close(None)))
    ));
    assert_eq!(server.closed().await, CloseReason::ServerClosed);
}
