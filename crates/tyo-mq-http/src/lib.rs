//! The HTTP API on the broker's port, as a tower service. Knows the broker's library calls and no socket.
//!
//! Health, metrics, counts, dead letters, and the creation of realms by those who hold a management token. Everything
//! else is answered 403 without a body, as are these while they are off.
#![forbid(unsafe_code)]

mod answer;
mod body;
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
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body::Body;
use percent_encoding::percent_decode_str;
use tower_service::Service;
use tyo_mq_core::runtime::Broker;
use tyo_mq_transport::PeerAddr;

use answer::{Answer, forbidden, json, metrics, refused};

pub use answer::Refused;
pub use dlq::dead_letters;

/// What stands behind the API besides the broker: settings, access, counts.
pub trait Host: Send + Sync + 'static {
    /// What is served at this moment.
    fn offer(&self) -> Offer;

    /// Who a client is: the peer of its connection, or whom the peer's `X-Forwarded-For` lines name if it is believed.
    fn client(&self, peer: IpAddr, forwarded: &[&str]) -> IpAddr;

    /// Whether a bearer token is an administrator's.
    ///
    /// # Errors
    /// The refusal to answer with.
    fn check_admin(&self, bearer: Option<&str>, client: IpAddr) -> Result<(), Refused>;

    /// Counts of realms and connections, as JSON.
    fn stats(&self) -> String;

    /// Everything counted, in the text format of Prometheus.
    fn metrics(&self) -> String;

    /// Whether a bearer token may create realms now; what is returned creates one.
    ///
    /// # Errors
    /// 404 if nobody may, 401 if this token may not, 429 with a time if it was too often.
    fn provisioner(&self, bearer: Option<&str>, client: IpAddr) -> Result<Provision, Refused>;
}

/// Creates a realm, given the request's body; the body of the answer.
pub type Provision = Box<dyn FnOnce(&str) -> Result<String, Refused> + Send>;

/// What the API serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Anything at all.
    pub enabled: bool,
    /// `/health`, `/healthz`.
    pub health: bool,
    /// `/api/metrics`.
    pub metrics: bool,
    /// Metrics are for administrators only.
    pub metrics_auth: bool,
    /// `/api/stats` and dead letters.
    pub stats: bool,
}

/// The API of one broker. Clones are cheap.
#[derive(Clone)]
pub struct Api {
    shared: Arc<Shared>,
}

struct Shared {
    broker: Broker,
    host: Box<dyn Host>,
    version: &'static str,
    started: Instant,
}

impl Api {
    /// The API of a broker. `version` is what `/health` tells.
    pub fn new(broker: Broker, host: impl Host, version: &'static str) -> Self {
        let shared = Shared {
            broker,
            host: Box::new(host),
            version,
            started: Instant::now(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl<B> Service<Request<B>> for Api
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = self.shared.clone();
        let (parts, body) = request.into_parts();
        Box::pin(async move {
            let answered = shared.answer(&parts, body).await;
            Ok(answered.unwrap_or_else(|refusal| refused(&refusal)))
        })
    }
}

/// A route, as far as the path and the method tell.
#[derive(Debug, PartialEq, Eq)]
enum Route<'a> {
    Health,
    Metrics,
    Stats,
    DeadLetters(&'a str),
    Provision,
    /// Publishing and listening over HTTP, which is off.
    Off,
    Unknown,
}

impl<'a> Route<'a> {
    fn find(method: &Method, path: &'a str) -> Self {
        let segments: Vec<&str> = path.split('/').skip(1).take(MAX_SEGMENTS).collect();
        match (method, &segments[..]) {
            (_, ["pub" | "sub" | "sub-ticket", _, ..]) => Self::Off,
            (&Method::GET, ["health" | "healthz"]) => Self::Health,
            (&Method::GET, ["api", "metrics"]) => Self::Metrics,
            (&Method::GET, ["api", "stats"]) => Self::Stats,
            (&Method::GET, ["api", "realms", realm, "dlq"]) if !realm.is_empty() => {
                Self::DeadLetters(realm)
            }
            (&Method::POST, ["api", "realms"]) => Self::Provision,
            _ => Self::Unknown,
        }
    }

    fn is_served(&self, offer: Offer) -> bool {
        let on = match self {
            Self::Health => offer.health,
            Self::Metrics => offer.metrics,
            Self::Stats | Self::DeadLetters(_) => offer.stats,
            Self::Provision => true,
            // Tells that it is off whether the API is on or not.
            Self::Off => return true,
            Self::Unknown => false,
        };
        on && offer.enabled
    }
}

/// No route has as many.
const MAX_SEGMENTS: usize = 6;

impl Shared {
    async fn answer<B>(&self, parts: &Parts, body: B) -> Result<Answer, Refused>
    where
        B: Body<Data = Bytes> + Send + Unpin,
    {
        let Ok(path) = percent_decode_str(parts.uri.path()).decode_utf8() else {
            return Ok(forbidden());
        };
        let route = Route::find(&parts.method, &path);
        let offer = self.host.offer();
        if !route.is_served(offer) {
            return Ok(forbidden());
        }
        match route {
            Route::Health => Ok(self.health()),
            Route::Metrics => {
                if offer.metrics_auth {
                    self.check_admin(parts)?;
                }
                Ok(metrics(self.host.metrics()))
            }
            Route::Stats => {
                self.check_admin(parts)?;
                Ok(json(StatusCode::OK, self.host.stats()))
            }
            Route::DeadLetters(realm) => {
                self.check_admin(parts)?;
                let query = parts.uri.query().unwrap_or_default();
                dlq::list(&self.broker, realm, query).await
            }
            Route::Provision => {
                let provision = self.host.provisioner(bearer(parts), self.client(parts))?;
                let body = body::read(body).await?;
                provision(&body).map(|answer| json(StatusCode::OK, answer))
            }
            Route::Off => Err(Refused::new(404, "publishing over HTTP is off")),
            Route::Unknown => Ok(forbidden()),
        }
    }

    fn check_admin(&self, parts: &Parts) -> Result<(), Refused> {
        self.host.check_admin(bearer(parts), self.client(parts))
    }

    fn client(&self, parts: &Parts) -> IpAddr {
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let peer = parts.extensions.get::<PeerAddr>();
        let peer = peer.map_or(unknown, |peer| peer.0.ip());
        let lines = parts.headers.get_all("x-forwarded-for").iter();
        let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        self.host.client(peer, &lines)
    }

    fn health(&self) -> Answer {
        let body = serde_json::json!({
            "status": "ok",
            "version": self.version,
            "uptime_seconds": self.started.elapsed().as_secs(),
            "node_id": null,
        });
        json(StatusCode::OK, body.to_string())
    }
}

/// The token of the `Authorization` header, if it has one of this kind.
fn bearer(parts: &Parts) -> Option<&str> {
    let header = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim_start_matches(' ');
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}
