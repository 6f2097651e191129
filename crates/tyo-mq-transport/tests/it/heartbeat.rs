//! Who pings, who is closed for silence.

use std::time::Duration;

use tyo_mq_transport::{CloseReason, EngineConfig};

use crate::support::{Server, soon};

fn fast() -> EngineConfig {
    EngineConfig {
        ping_interval: Duration::from_millis(40),
        ping_timeout: Duration::from_millis(400),
        ..EngineConfig::default()
    }
}

#[tokio::test]
async fn v4_server_pings_a_websocket() {
    let mut server = Server::start(fast()).await;
    let mut client = server.ws_open(4).await;
    for _ in 0..3 {
        assert_eq!(client.text().await, "2");
        client.send("3").await;
    }
    assert_eq!(client.text().await, "2");
    // Unanswered: closed without a code.
    assert_eq!(client.close_code().await, None);
    assert_eq!(server.closed().await, CloseReason::PingTimeout);
}

#[tokio::test]
async fn v4_server_pings_a_poll() {
    let mut server = Server::start(fast()).await;
    let target = server.poll_open(4).await;
    for _ in 0..3 {
        assert_eq!(server.get(&target).await.body, "2");
        assert_eq!(server.post(&target, "3").await.body, "ok");
    }
    assert_eq!(server.closed().await, CloseReason::PingTimeout);
    assert_eq!(server.get(&target).await.status, 400);
}

#[tokio::test]
async fn v3_client_pings() {
    let mut server = Server::start(fast()).await;
    let mut client = server.ws_open(3).await;
    assert_eq!(client.text().await, "40");
    for ping in ["2", "2probe", "2"] {
        client.send(ping).await;
        assert_eq!(client.text().await, "3");
    }
    // No ping of the server's own comes before the end.
    assert_eq!(client.close_code().await, None);
    assert_eq!(server.closed().await, CloseReason::PingTimeout);
}

#[tokio::test]
async fn v3_ping_by_post() {
    let server = Server::start(fast()).await;
    let target = server.poll_open(3).await;
    assert_eq!(server.get(&target).await.body, "2:40");
    server.post(&target, "1:2").await;
    assert_eq!(server.get(&target).await.body, "1:3");
}

#[tokio::test]
async fn abandoned_polling_sessions_are_reclaimed() {
    let mut server = Server::start(fast()).await;
    server.poll_open(4).await;
    server.poll_open(3).await;
    assert_eq!(server.closed().await, CloseReason::PingTimeout);
    assert_eq!(server.closed().await, CloseReason::PingTimeout);
    soon(async {
        while server.engine.connection_count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
