//! Requests as they come, against a broker in memory.

use std::sync::Arc;

use http_body_util::BodyExt;
use serde_json::Value;
use tyo_mq_core::memory_store::MemoryStore;
use tyo_mq_core::message::MessageId;
use tyo_mq_core::runtime::RuntimeConfig;
use tyo_mq_core::store::{DeadLetter, QueueKey, Store, StoreOp, StoredMessage};

use super::*;

async fn api(enabled: bool) -> Api {
    let store = Arc::new(MemoryStore::default());
    for id in ["m1", "m2", "m3"] {
        let queue = QueueKey {
            realm: "r/1".into(),
            key: "p-e".into(),
            consumer: "c".into(),
        };
        let message = tyo_mq_core::Message {
            event: "E".into(),
            producer: "P".into(),
            body: Bytes::from_static(b"{\"event\":\"E\",\"message\":1e400"),
            attachments: Box::default(),
        };
        let stored = StoredMessage {
            id: MessageId::from(id),
            queue: Arc::new(queue),
            message: Arc::new(message),
            created_at_ms: 0,
            expires_at_ms: None,
            attempts: 3,
            position: Default::default(),
        };
        let letter = DeadLetter {
            stored,
            reason: "ack timeout".to_owned(),
            dead_lettered_at_ms: 1,
        };
        store
            .execute(vec![StoreOp::DeadLetter(Box::new(letter))])
            .await[0]
            .as_ref()
            .unwrap();
    }
    let broker = Broker::start(RuntimeConfig::default(), store)
        .await
        .unwrap();
    Api::new(
        broker,
        ApiConfig {
            enabled,
            version: "1.2.3",
            admin: Arc::new(|bearer, _| match bearer {
                None | Some("good") => Ok(()),
                Some(_) => Err(401),
            }),
            stats: Arc::new(|| "{}".to_owned()),
        },
    )
}

async fn check(api: &Api, method: &str, target: &str, status: u16) -> String {
    let request = Request::builder()
        .method(method)
        .uri(target)
        .body(())
        .unwrap();
    let answer = api.clone().call(request).await.unwrap();
    assert_eq!(answer.status().as_u16(), status, "{method} {target}");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn what_is_not_served_is_forbidden() {
    let (on, off) = (api(true).await, api(false).await);
    assert_eq!(check(&off, "GET", "/health", 403).await, "");
    check(&off, "GET", "/api/realms/r/dlq", 403).await;
    for target in [
        "/",
        "/health/",
        "/api",
        "/api/realms//dlq",
        "/api/realms/a/b/dlq",
        "/%ff",
        "/../health",
    ] {
        check(&on, "GET", target, 403).await;
    }
    check(&on, "HEAD", "/health", 403).await;
    check(&on, "POST", "/api/realms/r/dlq", 403).await;
}

#[tokio::test]
async fn health_tells_the_version() {
    let body: Value =
        serde_json::from_str(&check(&api(true).await, "GET", "/healthz?x", 200).await).unwrap();
    assert_eq!(
        (&body["status"], &body["version"]),
        (&Value::from("ok"), &Value::from("1.2.3"))
    );
}

#[tokio::test]
async fn dead_letters_come_in_pages_byte_for_byte() {
    let api = api(true).await;
    let empty: Value =
        serde_json::from_str(&check(&api, "GET", "/api/realms/none/dlq", 200).await).unwrap();
    assert_eq!(empty, serde_json::json!({ "realm": "none", "entries": [] }));
    // An encoded slash does not make one segment of two.
    check(&api, "GET", "/api/realms/r%2F1/dlq", 403).await;
    check(&api, "GET", "/api/realms/none/dlq?limit=x", 400).await;
    let page = api
        .shared
        .broker
        .dead_letters(Some("r/1"), None, 2)
        .await
        .unwrap();
    let text = dlq::page_text("r/1", &page);
    assert!(text.contains(
        "\"message\":{\"event\":\"E\",\"message\":1e400},\"expires_at\":null,\"attempts\":3"
    ));
    assert!(text.contains("\"created_at\":\"1970-01-01T00:00:00.000Z\""));
    let rest = api
        .shared
        .broker
        .dead_letters(Some("r/1"), page.next, 2)
        .await
        .unwrap();
    assert_eq!(
        (page.letters.len(), rest.letters.len(), rest.next),
        (2, 1, None)
    );
}
