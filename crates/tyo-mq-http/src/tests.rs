//! Requests as they come, against a broker in memory.

use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tyo_mq_core::memory_store::MemoryStore;
use tyo_mq_core::message::MessageId;
use tyo_mq_core::runtime::RuntimeConfig;
use tyo_mq_core::store::{DeadLetter, QueueKey, Store, StoreOp, StoredMessage};

use super::body::MAX_BODY_BYTES;
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
    Api::new(broker, Stage(enabled), "1.2.3")
}

/// An API that is on or off; the token is `good`, and none will do, too.
struct Stage(bool);

impl Host for Stage {
    fn offer(&self) -> Offer {
        Offer {
            enabled: self.0,
            health: true,
            metrics: true,
            metrics_auth: true,
            stats: true,
        }
    }

    fn client(&self, peer: IpAddr, _: &[&str]) -> IpAddr {
        peer
    }

    fn check_admin(&self, bearer: Option<&str>, _: IpAddr) -> Result<(), Refused> {
        match bearer {
            None | Some("good") => Ok(()),
            Some(_) => Err(Refused::new(401, "no")),
        }
    }

    fn stats(&self) -> String {
        "{}".to_owned()
    }

    fn metrics(&self) -> String {
        String::new()
    }

    fn provisioner(&self, bearer: Option<&str>, _: IpAddr) -> Result<Provision, Refused> {
        match bearer {
            Some("often") => Err(Refused {
                status: 429,
                message: "too often".to_owned(),
                retry_after_secs: Some(7),
            }),
            _ => Ok(Box::new(|body| Ok(format!("{:?}", body.len())))),
        }
    }
}

async fn check(api: &Api, method: &str, target: &str, status: u16) -> String {
    check_body(api, (method, target), "", Full::from(""), status).await
}

async fn check_body<B>(
    api: &Api,
    (method, target): (&str, &str),
    bearer: &str,
    body: B,
    status: u16,
) -> String
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    let mut request = Request::builder().method(method).uri(target);
    if !bearer.is_empty() {
        request = request.header("authorization", bearer);
    }
    let request = request.body(body).unwrap();
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

#[test]
fn routes_are_found_by_method_and_whole_path() {
    let check = |method: Method, path: &str, expected: Route<'_>| {
        assert_eq!(Route::find(&method, path), expected, "{method} {path}");
    };
    check(Method::GET, "/healthz", Route::Health);
    check(Method::HEAD, "/health", Route::Unknown);
    check(Method::GET, "/api/metrics", Route::Metrics);
    check(Method::GET, "/API/METRICS", Route::Unknown);
    check(Method::GET, "/api//metrics", Route::Unknown);
    check(Method::GET, "/api/stats/", Route::Unknown);
    check(
        Method::GET,
        "/api/realms/a b/dlq",
        Route::DeadLetters("a b"),
    );
    check(Method::GET, "/api/realms//dlq", Route::Unknown);
    check(Method::GET, "/api/realms/r/dlq/1/2/3", Route::Unknown);
    check(Method::POST, "/api/realms", Route::Provision);
    check(Method::PUT, "/api/realms", Route::Unknown);
    check(Method::GET, "/pub", Route::Unknown);
    check(Method::GET, "/pub/r/e", Route::Off);
    check(Method::POST, "/sub-ticket/r", Route::Off);
}

#[test]
fn tokens_are_found_in_headers() {
    let check = |header: &str, expected: Option<&str>| {
        let request = Request::builder().header("authorization", header);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(bearer(&parts), expected, "{header}");
    };
    check("Bearer a", Some("a"));
    check("bEARER   a b", Some("a b"));
    check("Bearer", None);
    check("Basic a", None);
}

#[tokio::test]
async fn bodies_are_read_up_to_a_bound() {
    let api = api(true).await;
    let post = async |length: usize, status: u16| {
        let body = Full::from("x".repeat(length));
        check_body(&api, ("POST", "/api/realms"), "", body, status).await
    };
    assert_eq!(post(0, 200).await, "0");
    assert_eq!(post(MAX_BODY_BYTES, 200).await, MAX_BODY_BYTES.to_string());
    post(MAX_BODY_BYTES + 1, 400).await;
    let text = Full::from(vec![0xff]);
    check_body(&api, ("POST", "/api/realms"), "", text, 400).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_waited_for_no_longer() {
    let api = api(true).await;
    check_body(&api, ("POST", "/api/realms"), "", Never, 408).await;
}

#[tokio::test]
async fn a_refusal_says_when_to_come_again() {
    let api = api(true).await;
    let body = Full::from("{}");
    let answer = check_body(&api, ("POST", "/api/realms"), "Bearer often", body, 429).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["retry_after"], 7);
    check(&api, "GET", "/pub/r/e", 404).await;
}

/// A body of which nothing comes.
struct Never;

impl Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}
