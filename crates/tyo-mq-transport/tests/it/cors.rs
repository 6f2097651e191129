//! Cross-origin headers on every kind of answer.

use tyo_mq_transport::{Cors, EngineConfig, Origins};

use crate::support::{Answer, Server, quiet};

const POLL: &str = "/socket.io/?EIO=4&transport=polling";

async fn answers(server: &Server, origin: &str) -> Vec<Answer> {
    let headers = format!("Origin: {origin}\r\n");
    let mut answers = vec![
        server.http("GET", POLL, &headers, b"").await,
        server.http("OPTIONS", POLL, &headers, b"").await,
        server
            .http(
                "GET",
                "/socket.io/?EIO=4&transport=polling&sid=nope",
                &headers,
                b"",
            )
            .await,
        server.http("GET", "/socket.io/", &headers, b"").await,
    ];
    let target = server.poll_open(4).await;
    answers.push(server.http("POST", &target, &headers, b"4x").await);
    answers.push(server.http("GET", &target, &headers, b"").await);
    answers
}

#[tokio::test]
async fn any_origin_by_default() {
    let server = Server::start(quiet()).await;
    for answer in answers(&server, "https://page.example").await {
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("*"),
            "{}",
            answer.head
        );
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            Some("true"),
            "{}",
            answer.head
        );
    }
}

#[tokio::test]
async fn a_list_reflects_only_its_own() {
    let origins = Origins::List(vec!["https://page.example".to_owned()]);
    let cors = Cors {
        origins,
        credentials: true,
    };
    let server = Server::start(EngineConfig { cors, ..quiet() }).await;
    for answer in answers(&server, "https://page.example").await {
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("https://page.example"),
            "{}",
            answer.head
        );
        assert!(
            answer.head.to_ascii_lowercase().contains("vary: origin"),
            "{}",
            answer.head
        );
    }
    for answer in answers(&server, "https://evil.example").await {
        assert_eq!(
            answer.header("access-control-allow-origin"),
            None,
            "{}",
            answer.head
        );
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            None,
            "{}",
            answer.head
        );
        assert!(
            answer.head.to_ascii_lowercase().contains("vary: origin"),
            "{}",
            answer.head
        );
    }
}

#[tokio::test]
async fn preflight_makes_no_session() {
    let server = Server::start(quiet()).await;
    let headers = "Origin: https://page.example\r\nAccess-Control-Request-Method: POST\r\n\
                   Access-Control-Request-Headers: content-type\r\n";
    let answer = server.http("OPTIONS", POLL, headers, b"").await;
    assert_eq!(answer.status, 204);
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET,POST")
    );
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("content-type")
    );
    assert_eq!(
        answer.header("vary"),
        Some("Access-Control-Request-Headers")
    );
    assert_eq!(server.engine.connection_count(), 0);
}
