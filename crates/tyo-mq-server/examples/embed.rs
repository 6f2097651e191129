//! The broker in a web service of one's own: Socket.IO clients on `/socket.io/`, everything else is ours, on one port.
//!
//! `curl localhost:3000/hello/world` publishes an event `hello` that every Socket.IO client may subscribe to.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::net::TcpListener;
use tower_service::Service;
use tyo_mq_core::memory_store::{MemoryLimits, MemoryStore};
use tyo_mq_core::runtime::{Broker, LocalSession, PublishOptions, RuntimeConfig};
use tyo_mq_protocol::{encode_envelope, parse_produce};
use tyo_mq_server::{Gateway, GatewayConfig};
use tyo_mq_transport::{Engine, EngineConfig};

/// Our own routes. A router of any framework that is a tower service does as well.
#[derive(Clone)]
struct Routes {
    session: Arc<LocalSession>,
}

impl<B> Service<Request<B>> for Routes {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let session = self.session.clone();
        let path = request.uri().path().to_owned();
        Box::pin(async move {
            let (status, text) = match path.strip_prefix("/hello/") {
                Some(whom) => greet(&session, whom).await,
                None => (StatusCode::NOT_FOUND, "try /hello/world\n".to_owned()),
            };
            let mut response = Response::new(Full::from(text));
            *response.status_mut() = status;
            Ok(response)
        })
    }
}

/// Publishes as a Socket.IO client would, and says to how many it went.
async fn greet(session: &LocalSession, whom: &str) -> (StatusCode, String) {
    let produce = serde_json::json!({"event": "hello", "message": {"to": whom}, "from": "web"});
    let text = produce.to_string();
    let Ok(produce) = parse_produce(&text) else {
        return (StatusCode::BAD_REQUEST, "no message\n".to_owned());
    };
    let mut body = Vec::new();
    encode_envelope(&produce, &mut body);
    let options = PublishOptions::default();
    match session.publish("web", "hello", body.into(), options).await {
        Ok(published) => (StatusCode::OK, format!("told {}\n", published.routed)),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryStore::new(MemoryLimits::default()));
    let broker = Broker::start(RuntimeConfig::default(), store).await?;
    let config = EngineConfig::default();
    let gateway = GatewayConfig {
        connect_timeout: Duration::from_secs(45),
        max_message_bytes: config.max_payload,
        high_water_bytes: config.outbound_high_water_bytes,
    };
    let engine = Engine::new(config, Gateway::new(broker.clone(), gateway));
    let routes = Routes {
        session: Arc::new(broker.connect("default")),
    };
    let port = std::env::args()
        .nth(1)
        .as_deref()
        .unwrap_or("3000")
        .parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}", listener.local_addr()?);
    let stop = async {
        // Without a signal handler there is nothing to stop for.
        let _ = tokio::signal::ctrl_c().await;
        engine.shutdown().await;
    };
    tyo_mq_transport::serve(listener, engine.service(routes), stop).await;
    broker.shutdown().await;
    Ok(())
}
