//! Opening sessions, and being refused.

use tyo_mq_transport::{Carrier, EngineConfig, Protocol};

use crate::support::{Server, quiet};

const UPGRADE: &str = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[tokio::test]
async fn polling_open_packets() {
    let mut server = Server::start(EngineConfig::default()).await;
    let v4 = server.get("/socket.io/?EIO=4&transport=polling").await;
    assert_eq!(
        (v4.status, v4.header("content-type")),
        (200, Some("text/plain; charset=UTF-8"))
    );
    let (conn, info) = server.opened().await;
    assert_eq!(
        v4.body,
        format!(
            r#"0{{"sid":"{}","upgrades":["websocket"],"pingInterval":5000,"pingTimeout":10000,"maxPayload":52428800}}"#,
            conn.id()
        )
    );
    assert_eq!(
        (info.protocol, info.carrier),
        (Protocol::V4, Carrier::Polling)
    );
    assert!(
        info.remote_addr
            .is_some_and(|peer| peer.ip() == server.addr.ip())
    );
    assert_eq!(info.headers["host"], "x");

    let v3 = server.get("/socket.io/?EIO=3&transport=polling").await;
    assert!(v3.body.starts_with("118:0{\"sid\":\""), "{}", v3.body);
    let (conn, info) = server.opened().await;
    assert_eq!(
        (conn.protocol(), info.protocol),
        (Protocol::V3, Protocol::V3)
    );
}

#[tokio::test]
async fn websocket_open_packets() {
    let mut server = Server::start(EngineConfig::default()).await;
    let mut v4 = server.ws("EIO=4&transport=websocket&a=b").await;
    let (conn, info) = server.opened().await;
    assert_eq!(
        v4.text().await,
        format!(
            r#"0{{"sid":"{}","upgrades":[],"pingInterval":5000,"pingTimeout":10000,"maxPayload":52428800}}"#,
            conn.id()
        )
    );
    assert_eq!(
        (info.carrier, info.uri.query()),
        (Carrier::WebSocket, Some("EIO=4&transport=websocket&a=b"))
    );
    // What the application sends as it opens comes right behind.
    let mut v3 = server.ws_open(3).await;
    assert_eq!(v3.text().await, "40");
    assert_eq!(server.engine.connection_count(), 2);
}

#[tokio::test]
async fn refusals() {
    let server = Server::start(quiet()).await;
    let check = async |method: &str, query: &str, code: u8| {
        let answer = server
            .http(method, &format!("/socket.io/?{query}"), "", b"")
            .await;
        assert_eq!(answer.status, 400, "{method} {query}");
        assert!(
            answer
                .body
                .starts_with(&format!("{{\"code\":{code},\"message\":")),
            "{method} {query}: {}",
            answer.body
        );
        assert_eq!(answer.header("content-type"), Some("application/json"));
    };
    check("GET", "EIO=4", 0).await;
    check("GET", "EIO=4&transport=carrier-pigeon", 0).await;
    check("GET", "EIO=4&transport=__proto__", 0).await;
    check("GET", "EIO=4&transport=polling&sid=nope", 1).await;
    check("POST", "EIO=4&transport=polling&sid=nope", 1).await;
    check("POST", "EIO=4&transport=polling", 2).await;
    check("PUT", "EIO=4&transport=polling", 2).await;
    check("DELETE", "EIO=4&transport=polling", 2).await;
    check("GET", "EIO=4&transport=websocket", 3).await;
    check("GET", "EIO=4&transport=polling&j=0", 3).await;
    assert_eq!(server.engine.connection_count(), 0);
}

#[tokio::test]
async fn versions_that_are_switched_off() {
    let server = Server::start(EngineConfig {
        allow_v3: false,
        ..quiet()
    })
    .await;
    for query in [
        "EIO=3&transport=polling",
        "transport=polling",
        "EIO=abc&transport=polling",
    ] {
        let answer = server.get(&format!("/socket.io/?{query}")).await;
        assert_eq!(
            (answer.status, &answer.body[..10]),
            (400, "{\"code\":5,"),
            "{query}"
        );
    }
    assert_eq!(
        server
            .get("/socket.io/?EIO=4&transport=polling")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn transports_that_are_switched_off() {
    let server = Server::start(EngineConfig {
        allow_polling: false,
        ..quiet()
    })
    .await;
    let answer = server.get("/socket.io/?EIO=4&transport=polling").await;
    assert_eq!((answer.status, &answer.body[..10]), (400, "{\"code\":0,"));
    server.ws_open(4).await;

    let server = Server::start(EngineConfig {
        allow_upgrade: false,
        ..quiet()
    })
    .await;
    let answer = server.get("/socket.io/?EIO=4&transport=polling").await;
    assert!(answer.body.contains("\"upgrades\":[]"), "{}", answer.body);
    let sid = answer.body.split('"').nth(3).unwrap();
    let target = format!("/socket.io/?EIO=4&transport=websocket&sid={sid}");
    let answer = server
        .http(
            "GET",
            &target,
            &format!("Connection: close, Upgrade\r\n{UPGRADE}"),
            b"",
        )
        .await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn websocket_requests_that_are_none() {
    let server = Server::start(quiet()).await;
    let target = "/socket.io/?EIO=4&transport=websocket";
    let check = async |from: &str, to: &str, status: u16| {
        let headers = UPGRADE.replace(from, to);
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\n{headers}\r\n"
        );
        let answer = crate::support::soon(server.raw(head.as_bytes())).await;
        assert_eq!(answer.status, status, "{to}");
        answer
    };
    let answer = check("Version: 13", "Version: 8", 426).await;
    assert_eq!(answer.header("sec-websocket-version"), Some("13"));
    check("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=", 400).await;
    check("Sec-WebSocket-Key", "X-Key", 400).await;
    check("Upgrade: websocket", "Upgrade: h2c", 400).await;
    // A session that does not exist cannot be joined.
    let unknown = format!(
        "GET {target}&sid=nope HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\n{UPGRADE}\r\n"
    );
    let answer = crate::support::soon(server.raw(unknown.as_bytes())).await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (400, "Session ID unknown")
    );
}

#[tokio::test]
async fn other_paths_go_to_the_fallback() {
    let server = Server::start(quiet()).await;
    for path in [
        "/",
        "/socket.io?EIO=4&transport=polling",
        "/other/?EIO=4&transport=polling",
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.body.as_str()), (403, ""), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn sessions_are_limited() {
    let mut server = Server::start(EngineConfig {
        max_connections: 1,
        ..quiet()
    })
    .await;
    let mut first = server.ws_open(4).await;
    assert_eq!(
        server
            .get("/socket.io/?EIO=4&transport=polling")
            .await
            .status,
        503
    );
    first
        .send_message(tokio_tungstenite::tungstenite::Message::Close(None))
        .await;
    server.closed().await;
    assert_eq!(server.engine.connection_count(), 0);
    server.poll_open(4).await;
}
