//! The tower service: routes the engine's path, gives the rest to a fallback.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Body;
use hyper::upgrade::OnUpgrade;
use tower_service::Service;
use tyo_mq_codec::engine::{Carrier, RequestError};

use crate::answer::{self, Answer};
use crate::app::Application;
use crate::engine::{SessionCell, Shared};
use crate::request::{Framing, Query, asks_for_websocket, framing};
use crate::{polling, upgrade};

/// A tower service over an engine, made by [`crate::Engine::service`].
pub struct EngineService<A: Application, F> {
    engine: Arc<Shared<A>>,
    fallback: F,
}

impl<A: Application, F> EngineService<A, F> {
    pub(crate) fn new(engine: Arc<Shared<A>>, fallback: F) -> Self {
        Self { engine, fallback }
    }
}

impl<A: Application, F: Clone> Clone for EngineService<A, F> {
    fn clone(&self) -> Self {
        Self {
            engine: Arc::clone(&self.engine),
            fallback: self.fallback.clone(),
        }
    }
}

impl<A: Application, F> std::fmt::Debug for EngineService<A, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineService")
            .field("path", &self.engine.config.path)
            .finish_non_exhaustive()
    }
}

/// A boxed future, as service futures go.
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<A, F, B, R> Service<Request<B>> for EngineService<A, F>
where
    A: Application,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    F: Service<Request<B>, Response = Response<R>>,
    F::Future: Send + 'static,
    F::Error: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<Either<Full<Bytes>, R>>;
    type Error = F::Error;
    type Future = BoxFuture<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.fallback.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let framing = framing(&parts);
        if framing == Framing::Ambiguous {
            let answer = answer::closing(answer::empty(StatusCode::BAD_REQUEST));
            return Box::pin(ready(Ok(answer.map(Either::Left))));
        }
        if parts.uri.path() != self.engine.config.path {
            let response = self.fallback.call(Request::from_parts(parts, body));
            return Box::pin(async move {
                let response = response.await?.map(Either::Right);
                Ok(close_if_chunked(framing, response))
            });
        }
        let engine = Arc::clone(&self.engine);
        Box::pin(async move {
            Ok(close_if_chunked(
                framing,
                respond(engine, parts, body).await.map(Either::Left),
            ))
        })
    }
}

fn close_if_chunked<T>(framing: Framing, mut response: Response<T>) -> Response<T> {
    if framing == Framing::Chunked {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An engine request, answered with the cross-origin headers.
async fn respond<A: Application, B>(engine: Arc<Shared<A>>, mut parts: Parts, body: B) -> Answer
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut cors = http::HeaderMap::new();
    answer::add_cors(&engine.config.cors, &parts.headers, &mut cors);
    let mut answer = if parts.method == Method::OPTIONS {
        answer::preflight(&engine.config.cors, &parts.headers)
    } else {
        match route(&engine, &mut parts) {
            Ok(Route::Answered(answer)) => answer,
            Ok(Route::Session(cell)) => polling::request(cell, &parts, body).await,
            Err(error) => answer::refused(error),
        }
    };
    for (name, value) in &cors {
        answer.headers_mut().append(name, value.clone());
    }
    answer
}

enum Route<A: Application> {
    Answered(Answer),
    /// A poll or a post to this session.
    Session(Arc<SessionCell<A>>),
}

/// Checks in the order that clients know: transport, session, method, version.
fn route<A: Application>(
    engine: &Arc<Shared<A>>,
    parts: &mut Parts,
) -> Result<Route<A>, RequestError> {
    let uri = parts.uri.clone();
    let query = Query::parse(uri.query().unwrap_or_default());
    let upgrade = asks_for_websocket(&parts.headers)
        .then(|| parts.extensions.remove::<OnUpgrade>())
        .flatten();
    let (carrier, allowed) = match query.transport.as_deref() {
        Some("polling") => (Carrier::Polling, engine.config.allow_polling),
        Some("websocket") => (Carrier::WebSocket, engine.config.allow_websocket),
        _ => return Err(RequestError::UnknownTransport),
    };
    match (carrier, upgrade, query.sid.as_deref()) {
        (_, _, None) if !allowed => Err(RequestError::UnknownTransport),
        (Carrier::WebSocket, Some(upgrade), Some(sid)) => {
            Ok(Route::Answered(join(engine, sid, parts, upgrade)))
        }
        (Carrier::WebSocket, Some(upgrade), None) => {
            Ok(Route::Answered(match query.protocol(&engine.config) {
                Ok(protocol) => upgrade::open(engine, parts, upgrade, protocol),
                Err(error) => answer::refused_upgrade(error),
            }))
        }
        (Carrier::Polling, None, Some(sid)) if !query.jsonp => engine
            .find(sid)
            .map(Route::Session)
            .ok_or(RequestError::UnknownSession),
        (Carrier::Polling, None, None) if !query.jsonp => {
            if parts.method != Method::GET {
                return Err(RequestError::BadMethod);
            }
            let protocol = query.protocol(&engine.config)?;
            Ok(Route::Answered(polling::handshake(
                engine,
                parts,
                protocol,
                query.base64,
            )))
        }
        // A WebSocket without an upgrade, a poll with one, or a script to be answered.
        (_, _, Some(sid)) if engine.find(sid).is_none() => Err(RequestError::UnknownSession),
        _ => Err(RequestError::BadRequest),
    }
}

fn join<A: Application>(
    engine: &Arc<Shared<A>>,
    sid: &str,
    parts: &Parts,
    upgrade: OnUpgrade,
) -> Answer {
    match engine.find(sid).filter(|cell| !cell.conn.is_closed()) {
        None => answer::refused_upgrade(RequestError::UnknownSession),
        Some(_) if !engine.config.allow_upgrade => {
            answer::refused_upgrade(RequestError::BadRequest)
        }
        Some(cell) => upgrade::join(cell, parts, upgrade),
    }
}

/// Answers everything with 403 and no body: the fallback of a server that has nothing else to offer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forbidden;

impl<B> Service<Request<B>> for Forbidden {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(answer::empty(StatusCode::FORBIDDEN)))
    }
}
