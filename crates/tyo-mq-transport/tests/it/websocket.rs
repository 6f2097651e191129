//! Messages, limits and ends on a WebSocket.

use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message as Ws;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tyo_mq_codec::websocket::{Opcode, write_masked_frame};
use tyo_mq_transport::{CloseReason, EngineConfig, SendKind, SendOutcome};

use crate::support::{Server, quiet, text};

fn frame(opcode: Opcode, fin: bool, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_masked_frame(&mut out, opcode, fin, payload, [7, 1, 9, 4]);
    out
}

#[tokio::test]
async fn messages_both_ways() {
    let server = Server::start(quiet()).await;
    let mut v4 = server.ws_open(4).await;
    for size in [0, 1, 124, 125, 126, 65_534, 65_536, 1_000_000] {
        let message = format!("4{}", "x".repeat(size));
        v4.send(&message).await;
        assert!(v4.text().await == message, "{size}");
        v4.send_message(Ws::binary(vec![7; size])).await;
        assert!(v4.next().await == Some(Ws::binary(vec![7; size])), "{size}");
    }
    let mut v3 = server.ws_open(3).await;
    assert_eq!(v3.text().await, "40");
    v3.send_message(Ws::binary(vec![4, 1, 2])).await;
    assert_eq!(v3.next().await, Some(Ws::binary(vec![4, 1, 2])));
}

#[tokio::test]
async fn fragments_and_pings() {
    let server = Server::start(quiet()).await;
    let mut client = server.ws_open(4).await;
    let bytes = [
        frame(Opcode::Text, false, b"4frag"),
        frame(Opcode::Ping, true, b"hello"),
        frame(Opcode::Continuation, true, b"ments"),
        frame(Opcode::Text, true, b"4next"),
    ]
    .concat();
    for byte in bytes {
        client.raw().write_all(&[byte]).await.unwrap();
    }
    assert_eq!(client.next().await, Some(Ws::Pong("hello".into())));
    assert_eq!(client.text().await, "4fragments");
    assert_eq!(client.text().await, "4next");
}

#[tokio::test]
async fn many_messages_in_one_write_keep_their_order() {
    let server = Server::start(quiet()).await;
    let mut client = server.ws_open(4).await;
    let bytes: Vec<u8> = (0..5000)
        .flat_map(|n| frame(Opcode::Text, true, format!("4{n}").as_bytes()))
        .collect();
    client.raw().write_all(&bytes).await.unwrap();
    for n in 0..5000 {
        assert_eq!(client.text().await, format!("4{n}"));
    }
}

#[tokio::test]
async fn broken_frames_close_with_a_code() {
    let mut server = Server::start(EngineConfig {
        max_payload: 1000,
        ..quiet()
    })
    .await;
    for (bytes, code, reason) in [
        (
            frame(Opcode::Text, true, b"4\xff"),
            1007,
            CloseReason::ParseError,
        ),
        (
            frame(Opcode::Text, true, &[b'4'; 1001]),
            1009,
            CloseReason::TooLarge,
        ),
        (
            frame(Opcode::Continuation, true, b"4"),
            1002,
            CloseReason::ParseError,
        ),
        (
            frame(Opcode::Ping, true, &[0; 126]),
            1002,
            CloseReason::ParseError,
        ),
        (
            frame(Opcode::Close, true, &[3]),
            1002,
            CloseReason::ParseError,
        ),
        (vec![0x81, 1, b'4'], 1002, CloseReason::ParseError),
        (vec![0xb1, 0x80, 0, 0, 0, 0], 1002, CloseReason::ParseError),
    ] {
        let mut client = server.ws_open(4).await;
        client.raw().write_all(&bytes).await.unwrap();
        assert_eq!(client.close_code().await, Some(code), "{bytes:?}");
        assert_eq!(server.closed().await, reason, "{bytes:?}");
    }
}

#[tokio::test]
async fn a_message_over_the_limit_still_gets_its_close_frame() {
    let server = Server::start(EngineConfig {
        max_payload: 1000,
        ..quiet()
    })
    .await;
    let mut client = server.ws_open(4).await;
    // Far more than the server will look at; it must not answer with a reset.
    let _ = client
        .raw()
        .write_all(&frame(Opcode::Text, true, &vec![b'4'; 3_000_000]))
        .await;
    assert_eq!(client.close_code().await, Some(1009));
}

#[tokio::test]
async fn broken_packets_close_without_a_code() {
    let mut server = Server::start(quiet()).await;
    for packet in ["", "9", "hello", "2", "2probe", "b*", "4refuse"] {
        let mut client = server.ws_open(4).await;
        client.send(packet).await;
        assert_eq!(client.close_code().await, None, "{packet}");
        assert_eq!(server.closed().await, CloseReason::ParseError, "{packet}");
    }
    let mut v3 = server.ws_open(3).await;
    assert_eq!(v3.text().await, "40");
    v3.send_message(Ws::binary(vec![9])).await;
    assert_eq!(v3.close_code().await, None);
}

#[tokio::test]
async fn packets_that_mean_nothing_are_ignored() {
    let server = Server::start(quiet()).await;
    let mut client = server.ws_open(4).await;
    for packet in ["0", "1", "3", "5", "6", "4done"] {
        client.send(packet).await;
    }
    assert_eq!(client.text().await, "4done");
}

#[tokio::test]
async fn ends() {
    let mut server = Server::start(quiet()).await;
    let mut client = server.ws_open(4).await;
    let code = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    client.send_message(Ws::Close(Some(code))).await;
    assert_eq!(client.close_code().await, Some(1000));
    assert_eq!(server.closed().await, CloseReason::ClientClosed);

    let client = server.ws_open(4).await;
    drop(client);
    assert_eq!(server.closed().await, CloseReason::TransportError);

    let mut client = server.ws_open(4).await;
    client.send("4bye").await;
    assert_eq!(client.text().await, "4last words");
    assert_eq!(client.close_code().await, None);
    assert_eq!(server.closed().await, CloseReason::ServerClosed);
}

#[tokio::test]
async fn nothing_is_sent_once_closed() {
    let mut server = Server::start(quiet()).await;
    let client = server.ws_open(4).await;
    let (conn, _) = server.opened().await;
    drop(client);
    server.closed().await;
    assert!(conn.is_closed());
    assert_eq!(conn.send(&text("x"), SendKind::Keep), SendOutcome::Closed);
    conn.flush();
    conn.close(CloseReason::ServerClosed);
    assert_eq!(conn.queued_bytes(), 0);
}

#[tokio::test]
async fn other_threads_write_at_once() {
    let mut server = Server::start(quiet()).await;
    let mut client = server.ws_open(4).await;
    let (conn, _) = server.opened().await;
    tokio::task::spawn_blocking(move || {
        conn.send(&text("from afar"), SendKind::Keep);
        conn.flush();
    })
    .await
    .unwrap();
    assert_eq!(client.text().await, "4from afar");
}
