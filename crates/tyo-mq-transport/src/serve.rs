//! An accept loop for any tower service over HTTP/1.1, with upgrades. Knows nothing of Engine.IO.

use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tower_service::Service;

use crate::app::PeerAddr;

/// Limits of the accept loop and of each HTTP connection.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// HTTP connections at once; more wait in the kernel's queue. One that became a WebSocket does not count.
    pub max_connections: usize,
    /// From the first byte of a request, or from the last answer, to the end of its head.
    pub header_read_timeout: Duration,
    /// Header lines of a request; over it 431.
    pub max_headers: usize,
    /// Bytes of a request's head; over it 431.
    pub max_header_bytes: usize,
    /// How long requests under way may take once the server stops.
    pub shutdown_grace: Duration,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            max_connections: 65_536,
            header_read_timeout: Duration::from_secs(15),
            max_headers: 100,
            max_header_bytes: 16 * 1024,
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

/// A connection's read buffer: a head fits, and a body comes in pieces of this.
const MAX_BUFFER: usize = 64 * 1024;
/// Waited when the system has no descriptor or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the connections are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Serving,
    Finishing,
    Ending,
}

type BoxError = Box<dyn Error + Send + Sync>;

/// [`serve_with`] the default limits.
pub async fn serve<S, B>(listener: TcpListener, service: S, shutdown: impl Future<Output = ()>)
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    serve_with(listener, ServeConfig::default(), service, shutdown).await;
}

/// Serves connections until `shutdown` completes; then lets requests under way finish, within the grace.
/// Each request has the peer's address as a [`PeerAddr`].
pub async fn serve_with<S, B>(
    listener: TcpListener,
    config: ServeConfig,
    service: S,
    shutdown: impl Future<Output = ()>,
) where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let slots = Arc::new(Semaphore::new(
        config.max_connections.min(Semaphore::MAX_PERMITS),
    ));
    let (stage, watched) = watch::channel(Stage::Serving);
    let builder = builder(&config);
    let accept = async {
        loop {
            let slot = Arc::clone(&slots)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            let (stream, peer) = accept_one(&listener).await;
            let service = WithPeer {
                service: service.clone(),
                peer: PeerAddr(peer),
            };
            let connection = connection(builder.clone(), stream, service, watched.clone());
            tokio::spawn(async move {
                connection.await;
                drop(slot);
            });
        }
    };
    tokio::select! {
        () = shutdown => {}
        () = accept => {}
    }
    drop((listener, watched));
    let _ = stage.send(Stage::Finishing);
    if timeout(config.shutdown_grace, stage.closed())
        .await
        .is_err()
    {
        let _ = stage.send(Stage::Ending);
        stage.closed().await;
    }
}

fn builder(config: &ServeConfig) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_read_timeout)
        .max_headers(config.max_headers)
        .max_header_size(config.max_header_bytes)
        .max_buf_size(MAX_BUFFER);
    builder
}

/// The next connection. Out of descriptors is no reason to stop, nor to spin.
async fn accept_one(listener: &TcpListener) -> (TcpStream, std::net::SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Only costs latency where it fails.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) if is_the_peers_fault(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_the_peers_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

async fn connection<S, B>(
    builder: Builder,
    stream: TcpStream,
    service: WithPeer<S>,
    mut stage: watch::Receiver<Stage>,
) where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let served = builder
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    let mut served = pin!(served);
    loop {
        tokio::select! {
            result = served.as_mut() => {
                if let Err(error) = result {
                    tracing::trace!(%error, "connection ended");
                }
                return;
            }
            changed = stage.changed() => match (changed, *stage.borrow_and_update()) {
                (Ok(()), Stage::Serving) => {}
                (Ok(()), Stage::Finishing) => served.as_mut().graceful_shutdown(),
                (Ok(()), Stage::Ending) | (Err(_), _) => return,
            },
        }
    }
}

/// Adds the peer's address to each request.
#[derive(Debug, Clone)]
struct WithPeer<S> {
    service: S,
    peer: PeerAddr,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for WithPeer<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.service.call(request)
    }
}
