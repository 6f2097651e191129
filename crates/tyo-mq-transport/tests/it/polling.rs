//! Long polling: bodies, overlapping requests, limits, ends.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tyo_mq_transport::{CloseReason, EngineConfig, Protocol, SendKind, SendOutcome};

use crate::support::{Event, Server, quiet, soon, text};

#[tokio::test]
async fn v4_bodies() {
    let mut server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    let answer = server.post(&target, "4a\u{1e}bAQIDBA==\u{1e}4é😀").await;
    assert_eq!(
        (
            answer.status,
            answer.body.as_str(),
            answer.header("content-type")
        ),
        (200, "ok", Some("text/html"))
    );
    assert_eq!(
        server.get(&target).await.body,
        "4a\u{1e}bAQIDBA==\u{1e}4é😀"
    );
    let (conn, _) = server.opened().await;
    assert_eq!(conn.protocol(), Protocol::V4);
    assert!(matches!(server.event().await, Event::Text(text) if text == "a"));
    assert!(matches!(server.event().await, Event::Binary(data) if data == [1, 2, 3, 4]));
    assert!(matches!(server.event().await, Event::Text(text) if text == "é😀"));
    assert!(matches!(server.event().await, Event::BatchEnd));
}

#[tokio::test]
async fn v3_bodies() {
    let server = Server::start(quiet()).await;
    let with_bytes = server.poll_open(3).await;
    assert_eq!(server.get(&with_bytes).await.body, "2:40");
    server.post(&with_bytes, "4:4😀!10:b4AQIDBA==").await;
    let answer = server.get(&with_bytes).await;
    assert_eq!(
        answer.header("content-type"),
        Some("application/octet-stream")
    );
    assert_eq!(
        answer.bytes,
        b"\x00\x06\xff4\xf0\x9f\x98\x80!\x01\x05\xff\x04\x01\x02\x03\x04"
    );
    let raw = "Content-Type: application/octet-stream\r\n";
    assert_eq!(
        server
            .http(
                "POST",
                &with_bytes,
                raw,
                b"\x00\x02\xff4x\x01\x02\xff\x04\x09"
            )
            .await
            .status,
        200
    );
    assert_eq!(
        server.get(&with_bytes).await.bytes,
        b"\x00\x02\xff4x\x01\x02\xff\x04\x09"
    );

    let answer = server
        .get("/socket.io/?EIO=3&transport=polling&b64=1")
        .await;
    let base64 = format!(
        "/socket.io/?EIO=3&transport=polling&sid={}",
        answer.body.split('"').nth(3).unwrap()
    );
    server.post(&base64, "4:4😀!10:b4AQIDBA==").await;
    assert_eq!(server.get(&base64).await.body, "2:404:4😀!10:b4AQIDBA==");
}

#[tokio::test]
async fn a_waiting_poll_is_answered_when_something_comes() {
    let mut server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    let (conn, _) = server.opened().await;
    let mut waiting = start_poll(&server, &target).await;
    assert_eq!(
        conn.send(
            &text("one").with_attachments(vec![Bytes::from_static(b"\x01")]),
            SendKind::Keep
        ),
        SendOutcome::Queued
    );
    assert_eq!(conn.send(&text("two"), SendKind::Keep), SendOutcome::Queued);
    conn.flush();
    assert!(
        read_all(&mut waiting)
            .await
            .ends_with("4one\u{1e}bAQ==\u{1e}4two")
    );
    assert_eq!(conn.queued_bytes(), 0);
}

#[tokio::test]
async fn two_polls_close_the_session() {
    let mut server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    let first = start_poll(&server, &target).await;
    let second = start_poll(&server, &target).await;
    let mut bodies = Vec::new();
    for mut stream in [first, second] {
        let answer = read_all(&mut stream).await;
        bodies.push((
            answer[9..12].to_owned(),
            answer.rsplit("\r\n\r\n").next().unwrap().to_owned(),
        ));
    }
    bodies.sort();
    assert_eq!(bodies[0], ("200".to_owned(), "1".to_owned()));
    assert_eq!(bodies[1].0, "400");
    assert_eq!(server.closed().await, CloseReason::ConcurrentRequest);
    assert_eq!(server.get(&target).await.status, 400);
}

#[tokio::test]
async fn two_posts_close_the_session() {
    let mut server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
    );
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.addr).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    assert_eq!(server.closed().await, CloseReason::ConcurrentRequest);
    for mut stream in streams {
        let _ = stream.write_all(b"4x").await;
        let answer = read_all(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    assert_eq!(server.get(&target).await.status, 400);
}

#[tokio::test]
async fn a_poll_whose_client_leaves_closes_the_session() {
    let mut server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    server.opened().await;
    drop(start_poll(&server, &target).await);
    assert_eq!(server.closed().await, CloseReason::TransportError);
    assert_eq!(server.get(&target).await.status, 400);
}

#[tokio::test]
async fn the_client_says_goodbye() {
    let mut server = Server::start(quiet()).await;
    for (eio, goodbye, released) in [(4, "1", "6"), (3, "1:1", "1:6")] {
        let target = server.poll_open(eio).await;
        if eio == 3 {
            server.get(&target).await;
        }
        let mut waiting = start_poll(&server, &target).await;
        assert_eq!(server.post(&target, goodbye).await.body, "ok");
        assert_eq!(server.closed().await, CloseReason::ClientClosed);
        let answer = read_all(&mut waiting).await;
        assert!(
            answer.ends_with(&format!("\r\n\r\n{released}")) || answer.starts_with("HTTP/1.1 400"),
            "{answer}"
        );
        assert_eq!(server.get(&target).await.status, 400);
    }
}

#[tokio::test]
async fn the_server_says_goodbye() {
    let mut server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    server.post(&target, "4bye").await;
    assert_eq!(server.closed().await, CloseReason::ServerClosed);
    // Nobody was polling: the rest waits for one who does.
    assert_eq!(server.get(&target).await.body, "4last words\u{1e}1");
    assert_eq!(server.get(&target).await.status, 400);
}

#[tokio::test]
async fn malformed_bodies_close_the_session() {
    let mut server = Server::start(quiet()).await;
    for (eio, body) in [
        (4, &b"zzz"[..]),
        (4, b""),
        (4, b"4a\x1e"),
        (4, b"4\xff"),
        (4, b"b*"),
        (3, b"5:2"),
        (3, b"abc"),
    ] {
        let target = server.poll_open(eio).await;
        assert_eq!(server.post(&target, body).await.status, 400, "{body:?}");
        assert_eq!(server.closed().await, CloseReason::ParseError, "{body:?}");
        assert_eq!(server.get(&target).await.status, 400);
    }
    let target = server.poll_open(4).await;
    server.post(&target, "4refuse\u{1e}4never").await;
    loop {
        match server.event().await {
            Event::Closed(reason) => break assert_eq!(reason, CloseReason::ParseError),
            Event::Text(text) => panic!("{text} came after a refusal"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn bodies_over_the_limit() {
    let server = Server::start(EngineConfig {
        max_payload: 1000,
        ..quiet()
    })
    .await;
    let target = server.poll_open(4).await;
    assert_eq!(server.post(&target, vec![b'4'; 1001]).await.status, 413);
    // Refused by what was announced, before any of it came.
    let announced =
        format!("POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n");
    assert_eq!(soon(server.raw(announced.as_bytes())).await.status, 413);
    let chunked =
        format!("POST {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunks = format!("258\r\n{0}\r\n258\r\n{0}\r\n0\r\n\r\n", "4".repeat(600));
    assert_eq!(
        soon(server.raw(format!("{chunked}{chunks}").as_bytes()))
            .await
            .status,
        413
    );
    // The session lives on, and its limit itself passes.
    assert_eq!(
        server
            .post(&target, format!("4{}", "x".repeat(999)))
            .await
            .status,
        200
    );
    assert_eq!(server.get(&target).await.body.len(), 1000);
}

#[tokio::test]
async fn a_body_that_stands_still() {
    let idle = Duration::from_millis(50);
    let mut server = Server::start(EngineConfig {
        body_idle_timeout: idle,
        ..quiet()
    })
    .await;
    let target = server.poll_open(4).await;
    let head = format!("POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n4abc");
    assert_eq!(soon(server.raw(head.as_bytes())).await.status, 408);
    assert_eq!(server.closed().await, CloseReason::TransportError);
}

#[tokio::test]
async fn large_queues_take_several_polls() {
    let mut server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    let (conn, _) = server.opened().await;
    let large = "x".repeat(700_000);
    for number in 0..5 {
        conn.send(&text(&format!("{number}{large}")), SendKind::Keep);
    }
    let (mut numbers, mut polls) = (String::new(), 0);
    while conn.queued_bytes() > 0 {
        let body = server.get(&target).await.body;
        numbers.extend(body.split('\u{1e}').map(|packet| &packet[1..2]));
        polls += 1;
    }
    assert_eq!((numbers.as_str(), polls), ("01234", 3));
}

#[tokio::test]
async fn wrong_methods_and_requests() {
    let server = Server::start(quiet()).await;
    let target = server.poll_open(4).await;
    assert_eq!(server.http("PUT", &target, "", b"4x").await.status, 400);
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    assert_eq!(server.http("GET", &target, upgrade, b"").await.status, 400);
    // Asking for a WebSocket without one takes nothing out of the queue.
    server.post(&target, "4kept").await;
    assert_eq!(
        server
            .get(&target.replace("polling", "websocket"))
            .await
            .status,
        400
    );
    assert_eq!(server.get(&target).await.body, "4kept");
}

/// Sends a poll and does not wait for its answer.
async fn start_poll(server: &Server, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}
