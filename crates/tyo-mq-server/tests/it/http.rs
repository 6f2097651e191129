//! Plain HTTP, one request a connection: as much as tests need, and the broker's answers to what is no Socket.IO.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::server::Running;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case, one header a line.
    pub(crate) headers: String,
    pub(crate) body: String,
}

pub(crate) async fn get(addr: SocketAddr, target: &str) -> Answer {
    request(addr, "GET", target, "", "").await
}

pub(crate) async fn post(addr: SocketAddr, target: &str, body: &str) -> Answer {
    request(addr, "POST", target, "content-type: text/plain\r\n", body).await
}

/// `headers` are whole lines.
pub(crate) async fn request(
    addr: SocketAddr,
    method: &str,
    target: &str,
    headers: &str,
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head[9..12].parse().unwrap(),
        headers: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

#[tokio::test]
async fn what_is_not_ours_is_forbidden_without_a_word() {
    let server = Running::start().await;
    for target in [
        "/",
        "/index.html",
        "/health",
        "/socket.io",
        "/engine.io/?EIO=4&transport=polling",
    ] {
        let answer = get(server.addr, target).await;
        assert_eq!((answer.status, answer.body.as_str()), (403, ""), "{target}");
    }
}

#[tokio::test]
async fn the_api_when_it_is_on() {
    let server = Running::with(json!({"http_api": {"enabled": true}})).await;
    let health = get(server.addr, "/health").await;
    assert_eq!(health.status, 200);
    assert_eq!(
        serde_json::from_str::<Value>(&health.body).unwrap()["status"],
        "ok"
    );
    let letters = get(server.addr, "/api/realms/default/dlq").await;
    let expected = json!({"realm": "default", "entries": []});
    assert_eq!(
        serde_json::from_str::<Value>(&letters.body).unwrap(),
        expected
    );
}

#[tokio::test]
async fn origins_that_may_read() {
    const HANDSHAKE: &str = "/socket.io/?EIO=4&transport=polling";
    let ask = async |settings, origin: &str| {
        let server = Running::with(settings).await;
        request(
            server.addr,
            "GET",
            HANDSHAKE,
            &format!("origin: {origin}\r\n"),
            "",
        )
        .await
    };
    let any = ask(json!({}), "http://a.example").await;
    assert!(any.headers.contains("access-control-allow-origin: *"));
    assert!(
        any.headers
            .contains("access-control-allow-credentials: true")
    );
    let cors = json!({"cors": {"origin": ["http://a.example"], "credentials": false}});
    let known = ask(cors.clone(), "http://a.example").await;
    assert!(
        known
            .headers
            .contains("access-control-allow-origin: http://a.example")
    );
    assert!(!known.headers.contains("access-control-allow-credentials"));
    let other = ask(cors, "http://b.example").await;
    assert!(
        !other
            .headers
            .contains("access-control-allow-origin: http://b.example")
    );
    let nobody = ask(json!({"cors": {"origin": false}}), "http://a.example").await;
    assert!(!nobody.headers.contains("access-control-allow-origin"));
}
