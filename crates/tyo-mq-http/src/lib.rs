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
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use percent_encoding::percent_decode_str;
use tower_service::Service;
use tyo_mq_core::runtime::Broker;
use tyo_mq_transport::PeerAddr;

pub use dlq::dead_letters;

/// What the API offers, and to whom.
#[derive(Clone)]
pub struct ApiConfig {
    /// Whether anything is served.
    pub enabled: bool,
    /// Version told by `/health`.
    pub version: &'static str,
    /// Whether a bearer token is the admin's, or the status to refuse it with.
    pub admin: AdminCheck,
    /// The answer of `/api/stats`, as JSON.
    pub stats: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Judges the bearer token of a request, if it has one, and who sent it.
pub type AdminCheck = Arc<dyn Fn(Option<&str>, IpAddr) -> Result<(), u16> + Send + Sync>;

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
            let served = shared.config.enabled && parts.method == Method::GET;
            let (true, Ok(path)) = (served, path) else {
                return Ok(forbidden());
            };
            let segments: Vec<&str> = path.split('/').skip(1).collect();
            let admin = || shared.check_admin(&parts);
            Ok(match segments[..] {
                ["health" | "healthz"] => shared.health(),
                ["api", "stats"] => match admin() {
                    Ok(()) => json(StatusCode::OK, (shared.config.stats)()),
                    Err(refused) => refused,
                },
                ["api", "realms", realm, "dlq"] if !realm.is_empty() => match admin() {
                    Ok(()) => {
                        let query = parts.uri.query().unwrap_or_default();
                        dlq::list(&shared.broker, realm, query).await
                    }
                    Err(refused) => refused,
                },
                _ => forbidden(),
            })
        })
    }
}

impl Shared {
    fn check_admin(&self, parts: &Parts) -> Result<(), Answer> {
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let peer = parts
            .extensions
            .get::<PeerAddr>()
            .map_or(unknown, |peer| peer.0.ip());
        let header = parts
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme
                .eq_ignore_ascii_case("bearer")
                .then_some(token.trim_start_matches(' '))
        });
        (self.config.admin)(bearer, peer).map_err(|code| {
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::UNAUTHORIZED);
            error(status, "an admin's bearer token is needed")
        })
    }

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
