//! The HTTP API on the broker's port, as a tower service. Knows the broker's library calls and no socket.
//!
//! `GET /health` says that the broker lives; `GET /api/realms/{realm}/dlq` lists dead letters. Everything else is
//! answered 403 without a body, as are these while the API is off.
#![forbid(unsafe_code)]

mod dlq;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use percent_encoding::percent_decode_str;
use tower_service::Service;
use tyo_mq_core::runtime::Broker;

/// What the API offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiConfig {
    /// Whether anything is served.
    pub enabled: bool,
    /// Version told by `/health`.
    pub version: &'static str,
}

/// The API of one broker. Clones are cheap.
#[derive(Clone)]
pub struct Api {
    shared: Arc<Shared>,
}

struct Shared {
    broker: Broker,
    config: ApiConfig,
    started: Instant,
}

type Answer = Response<Full<Bytes>>;

impl Api {
    /// The API of a broker.
    pub fn new(broker: Broker, config: ApiConfig) -> Self {
        Self {
            shared: Arc::new(Shared {
                broker,
                config,
                started: Instant::now(),
            }),
        }
    }
}

impl<B> Service<Request<B>> for Api {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = self.shared.clone();
        let (parts, _) = request.into_parts();
        Box::pin(async move {
            let path = percent_decode_str(parts.uri.path()).decode_utf8();
            let (true, Method::GET, Ok(path)) = (shared.config.enabled, parts.method, path) else {
                return Ok(forbidden());
            };
            let segments: Vec<&str> = path.split('/').skip(1).collect();
            Ok(match segments[..] {
                ["health" | "healthz"] => shared.health(),
                ["api", "realms", realm, "dlq"] if !realm.is_empty() => {
                    dlq::list(&shared.broker, realm, parts.uri.query().unwrap_or_default()).await
                }
                _ => forbidden(),
            })
        })
    }
}

impl Shared {
    fn health(&self) -> Answer {
        let body = serde_json::json!({
            "status": "ok",
            "version": self.config.version,
            "uptime_seconds": self.started.elapsed().as_secs(),
            "node_id": null,
        });
        json(StatusCode::OK, body.to_string())
    }
}

fn forbidden() -> Answer {
    let mut answer = Response::default();
    *answer.status_mut() = StatusCode::FORBIDDEN;
    answer
}

fn json(status: StatusCode, body: String) -> Answer {
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    answer
}

fn error(status: StatusCode, message: &str) -> Answer {
    let body = serde_json::json!({ "ok": false, "code": status.as_u16(), "message": message });
    json(status, body.to_string())
}
