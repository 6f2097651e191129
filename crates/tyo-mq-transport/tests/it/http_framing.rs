//! Requests that two readers could understand differently.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Server, quiet, soon};

const SMUGGLED: &str =
    "GET /socket.io/?EIO=4&transport=polling&smuggled=1 HTTP/1.1\r\nHost: x\r\n\r\n";

/// All that comes back for `bytes` until the server closes.
async fn exchange(server: &Server, bytes: &str) -> String {
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let _ = stream.write_all(bytes.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn check(server: &Server, headers: &str, body: &str) {
    let request = format!(
        "POST /socket.io/?EIO=4&transport=polling&sid=nope HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}{SMUGGLED}"
    );
    let answers = exchange(server, &request).await;
    assert!(answers.starts_with("HTTP/1.1 400"), "{headers}: {answers}");
    assert_eq!(
        answers.matches("HTTP/1.1").count(),
        1,
        "{headers}: {answers}"
    );
    assert!(!answers.contains("pingInterval"), "{headers}: {answers}");
}

#[tokio::test]
async fn lengths() {
    let server = Server::start(quiet()).await;
    check(&server, "Content-Length: 0\r\nContent-Length: 72\r\n", "").await;
    for length in [
        "+0",
        "-1",
        "0x0",
        "0 0",
        "0,0x10",
        "1e1",
        "",
        "99999999999999999999999",
        "0;",
    ] {
        check(&server, &format!("Content-Length: {length}\r\n"), "").await;
    }
}

#[tokio::test]
async fn transfer_codings() {
    let server = Server::start(quiet()).await;
    let chunk = "0\r\n\r\n";
    for coding in [
        "xchunked",
        "chunked, identity",
        "identity",
        "gzip",
        "gzip, chunked",
        "chunked, chunked",
        "",
    ] {
        check(&server, &format!("Transfer-Encoding: {coding}\r\n"), chunk).await;
    }
    check(
        &server,
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        chunk,
    )
    .await;
    check(&server, "Transfer-Encoding : chunked\r\n", chunk).await;
    // A length beside chunks: only the chunks count, and the connection ends.
    check(
        &server,
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        chunk,
    )
    .await;
    check(
        &server,
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        chunk,
    )
    .await;
}

#[tokio::test]
async fn hosts() {
    let server = Server::start(quiet()).await;
    for headers in ["", "Host: a\r\nHost: b\r\n"] {
        let answer = exchange(&server, &format!("GET / HTTP/1.1\r\n{headers}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{headers}: {answer}");
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let server = Server::start(quiet()).await;
    let many = "X-Filler: x\r\n".repeat(2000);
    let answer = exchange(&server, &format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let long = format!("X-Filler: {}\r\n", "x".repeat(20_000));
    let answer = exchange(&server, &format!("GET / HTTP/1.1\r\nHost: x\r\n{long}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let kept = format!("Origin: {}\r\n", "x".repeat(6000));
    assert_eq!(
        server
            .http("GET", "/socket.io/?EIO=4&transport=polling", &kept, b"")
            .await
            .status,
        200
    );
}
