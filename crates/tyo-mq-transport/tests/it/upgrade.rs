//! From polling to WebSocket in the middle of a stream.

use std::time::Duration;

use tokio_tungstenite::tungstenite::Message as Ws;
use tyo_mq_transport::{EngineConfig, SendKind};

use crate::support::{Client, Server, quiet, text};

/// A WebSocket for the session of a polling target.
async fn join(server: &Server, target: &str) -> Client {
    let query = target
        .trim_start_matches("/socket.io/?")
        .replace("polling", "websocket");
    server.ws(&query).await
}

/// The messages of a polling body: without heartbeats and noops.
fn messages(body: &str) -> Vec<String> {
    body.split('\u{1e}')
        .filter_map(|packet| packet.strip_prefix('4'))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn the_poll_is_let_go_and_the_websocket_takes_over() {
    let mut server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    server.opened().await;
    let mut client = join(&server, &target).await;
    client.send("2probe").await;
    assert_eq!(client.text().await, "3probe");
    // Every poll returns at once now.
    assert_eq!(server.get(&target).await.body, "6");
    assert_eq!(server.get(&target).await.body, "6");
    server.post(&target, "4posted").await;
    assert_eq!(server.get(&target).await.body, "4posted");
    server.post(&target, "4left in the queue").await;
    client.send("5").await;
    client.send("4sent").await;
    assert_eq!(client.text().await, "4left in the queue");
    assert_eq!(client.text().await, "4sent");
    for answer in [server.get(&target).await, server.post(&target, "4x").await] {
        assert_eq!((answer.status, &answer.body[..10]), (400, "{\"code\":3,"));
    }
    client.send("4still here").await;
    assert_eq!(client.text().await, "4still here");
}

#[tokio::test]
async fn nothing_is_lost_or_reordered_while_a_producer_goes_on() {
    const COUNT: usize = 3000;
    let mut server = Server::start(quiet()).await;
    for round in 0..5 {
        let target = server.poll_open(4).await;
        let (conn, _) = server.opened().await;
        let producer = tokio::task::spawn_blocking(move || {
            for number in 0..COUNT {
                conn.send(&text(&number.to_string()), SendKind::Keep);
                if number % 7 == 0 {
                    conn.flush();
                    std::thread::yield_now();
                }
            }
            conn.flush();
        });
        let mut received = messages(&server.get(&target).await.body);
        let mut client = join(&server, &target).await;
        client.send("2probe").await;
        assert_eq!(client.text().await, "3probe");
        // A client finishes its poll before it switches.
        for _ in 0..round {
            received.extend(messages(&server.get(&target).await.body));
        }
        client.send("5").await;
        while received.len() < COUNT {
            let packet = client.text().await;
            received.push(
                packet
                    .strip_prefix('4')
                    .expect("only messages come here")
                    .to_owned(),
            );
        }
        producer.await.unwrap();
        let expected: Vec<_> = (0..COUNT).map(|number| number.to_string()).collect();
        assert!(received == expected, "round {round}");
    }
}

#[tokio::test]
async fn a_websocket_that_does_not_probe_is_closed_and_polling_goes_on() {
    let server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    for first in ["40", "5", "2", "hello"] {
        let mut client = join(&server, &target).await;
        client.send(first).await;
        assert_eq!(client.close_code().await, None, "{first}");
    }
    let mut client = join(&server, &target).await;
    client.send_message(Ws::Ping("x".into())).await;
    assert_eq!(client.next().await, Some(Ws::Pong("x".into())));
    client.send_message(Ws::Close(None)).await;
    assert_eq!(client.close_code().await, None);
    server.post(&target, "4x").await;
    assert_eq!(server.get(&target).await.body, "4x");
}

#[tokio::test]
async fn an_upgrade_that_takes_too_long_is_given_up() {
    let upgrade_timeout = Duration::from_millis(50);
    let server = Server::start(EngineConfig {
        upgrade_timeout,
        ..quiet()
    })
    .await;
    let target = server.poll_open(4).await;
    let mut client = join(&server, &target).await;
    client.send("2probe").await;
    assert_eq!(client.text().await, "3probe");
    assert_eq!(client.close_code().await, None);
    server.post(&target, "4x").await;
    assert_eq!(server.get(&target).await.body, "4x");
    // Another one may try.
    let mut client = join(&server, &target).await;
    client.send("2probe").await;
    assert_eq!(client.text().await, "3probe");
}

#[tokio::test]
async fn a_second_websocket_is_refused() {
    let server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    let mut first = join(&server, &target).await;
    first.send("2probe").await;
    assert_eq!(first.text().await, "3probe");
    let mut meanwhile = join(&server, &target).await;
    assert_eq!(meanwhile.close_code().await, None);
    first.send("5").await;
    first.send("4a").await;
    assert_eq!(first.text().await, "4a");
    let mut later = join(&server, &target).await;
    assert_eq!(later.close_code().await, None);
    first.send("4b").await;
    assert_eq!(first.text().await, "4b");
}

#[tokio::test]
async fn v3_upgrades_too() {
    let server = Server::start(quiet()).await;
    let target = server.poll_open(3).await;
    let mut client = join(&server, &target).await;
    client.send("2probe").await;
    assert_eq!(client.text().await, "3probe");
    assert_eq!(server.get(&target).await.body, "2:40");
    assert_eq!(server.get(&target).await.body, "1:6");
    client.send("5").await;
    client.send("4x").await;
    assert_eq!(client.text().await, "4x");
}
