//! The engine says goodbye, the accept loop ends.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tyo_mq_transport::{CloseReason, Forbidden, SendKind, serve};

use crate::support::{Server, quiet, soon, text};

#[tokio::test]
async fn everyone_is_told() {
    let mut server = Server::start(quiet()).await;
    let mut client = server.ws_open(4).await;
    let (conn, _) = server.opened().await;
    let target = server.poll_open(4).await;
    let mut waiting = TcpStream::connect(server.addr).await.unwrap();
    waiting
        .write_all(
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes(),
        )
        .await
        .unwrap();
    conn.send(&text("before the end"), SendKind::Keep);
    let engine = server.engine.clone();
    let stopping = tokio::spawn(async move { engine.shutdown().await });
    assert_eq!(client.text().await, "4before the end");
    assert_eq!(client.close_code().await, Some(1001));
    let mut answer = String::new();
    soon(waiting.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.ends_with("\r\n\r\n1"), "{answer}");
    assert_eq!(server.closed().await, CloseReason::ServerShutdown);
    assert_eq!(server.closed().await, CloseReason::ServerShutdown);
    drop(client);
    soon(stopping).await.unwrap();
    assert_eq!(server.engine.connection_count(), 0);
    assert_eq!(
        server
            .get("/socket.io/?EIO=4&transport=polling")
            .await
            .status,
        503
    );
}

#[tokio::test]
async fn the_accept_loop_lets_requests_finish() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, Forbidden, async {
        let _ = stopped.await;
    }));
    let mut kept = TcpStream::connect(addr).await.unwrap();
    kept.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 12];
    soon(kept.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 403");
    stop.send(()).unwrap();
    // The idle connection is closed, so the loop ends.
    soon(serving).await.unwrap();
    let mut rest = Vec::new();
    let _ = soon(kept.read_to_end(&mut rest)).await;
    assert!(TcpStream::connect(addr).await.is_err());
}
