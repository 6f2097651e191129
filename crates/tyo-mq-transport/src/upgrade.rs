//! WebSocket handshakes: for a new session, and for one that polls.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tyo_mq_codec::engine::{Carrier, Protocol, RequestError, Session as EngineSession};

use crate::answer::{self, Answer};
use crate::app::{Application, ConnectInfo, PeerAddr};
use crate::connection::Connection;
use crate::driver::{Driver, refuse};
use crate::engine::{SessionCell, Shared};
use crate::inbound::Inbound;
use crate::io::Io;

/// Bytes of a decoded `Sec-WebSocket-Key`.
const KEY_BYTES: usize = 16;

/// Clients of revision 3 may begin to listen only after they have seen the answer to their handshake: what comes in the
/// same piece of the stream is lost on them.
const OPEN_PAUSE: Duration = Duration::from_millis(10);

/// What a request tells the application. Takes the headers out of it.
pub(crate) fn connect_info(parts: &mut Parts, protocol: Protocol, carrier: Carrier) -> ConnectInfo {
    ConnectInfo {
        headers: std::mem::take(&mut parts.headers),
        uri: std::mem::take(&mut parts.uri),
        remote_addr: parts.extensions.get::<PeerAddr>().map(|peer| peer.0),
        protocol,
        carrier,
    }
}

/// Opens a session on a WebSocket.
pub(crate) fn open<A: Application>(
    engine: &Arc<Shared<A>>,
    parts: &mut Parts,
    upgrade: OnUpgrade,
    protocol: Protocol,
) -> Answer {
    let key = match accept_key(parts) {
        Ok(key) => key,
        Err(refusal) => return refusal.answer(),
    };
    if !engine.admits() {
        return answer::closing(answer::refused_as(
            StatusCode::SERVICE_UNAVAILABLE,
            RequestError::Forbidden,
        ));
    }
    let info = connect_info(parts, protocol, Carrier::WebSocket);
    tokio::spawn(run_new(Arc::clone(engine), upgrade, info));
    switching(key)
}

/// Starts to move a polling session over to a WebSocket.
pub(crate) fn join<A: Application>(
    cell: Arc<SessionCell<A>>,
    parts: &Parts,
    upgrade: OnUpgrade,
) -> Answer {
    match accept_key(parts) {
        Ok(key) => {
            tokio::spawn(run_join(cell, upgrade));
            switching(key)
        }
        Err(refusal) => refusal.answer(),
    }
}

/// Waits for the upgrade and hands over to a task of its own: what the handshake needed is freed.
async fn run_new<A: Application>(engine: Arc<Shared<A>>, upgrade: OnUpgrade, info: ConnectInfo) {
    // The client left before the answer: nothing was opened.
    let Ok(upgraded) = upgrade.await else {
        return;
    };
    if info.protocol == Protocol::V3 {
        tokio::time::sleep(OPEN_PAUSE).await;
    }
    let (io, early) = Io::new(upgraded);
    if let Some(driver) = start(&engine, io, &early, info) {
        tokio::spawn(driver.run());
    }
}

fn start<A: Application>(
    engine: &Arc<Shared<A>>,
    io: Io,
    early: &Bytes,
    info: ConnectInfo,
) -> Option<Driver<A>> {
    let sid = engine.new_sid()?;
    let open = engine.open_packet(&sid, false);
    let session = EngineSession::new(
        info.protocol,
        Carrier::WebSocket,
        engine.timing(),
        engine.now(),
    );
    let conn = Arc::new(Connection::new(
        sid,
        session,
        false,
        io.link(),
        &engine.config,
    ));
    conn.send_packet(&open);
    let app = engine.app.open(Arc::clone(&conn), info);
    conn.flush();
    let cell = SessionCell::register(engine, conn, app);
    Some(Driver::new(
        cell,
        io,
        Inbound::new(engine.config.max_payload, early),
        true,
    ))
}

async fn run_join<A: Application>(cell: Arc<SessionCell<A>>, upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else {
        return;
    };
    let (mut io, early) = Io::new(upgraded);
    // A second upgrade must not touch the first one.
    if cell.conn.begin_upgrade(cell.engine.now()).is_err() {
        return refuse(&mut io).await;
    }
    let inbound = Inbound::new(cell.engine.config.max_payload, &early);
    tokio::spawn(Driver::new(cell, io, inbound, false).run());
}

/// Why a request cannot become a WebSocket.
enum Refusal {
    Version,
    Request,
}

impl Refusal {
    fn answer(self) -> Answer {
        match self {
            Self::Request => answer::refused_upgrade(RequestError::BadRequest),
            Self::Version => {
                let mut answer = answer::closing(answer::empty(StatusCode::UPGRADE_REQUIRED));
                answer
                    .headers_mut()
                    .insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
                answer
            }
        }
    }
}

/// The key that accepts the request.
fn accept_key(parts: &Parts) -> Result<HeaderValue, Refusal> {
    if parts.method != Method::GET || parts.version != Version::HTTP_11 {
        return Err(Refusal::Request);
    }
    if single(&parts.headers, &SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err(Refusal::Version);
    }
    let key = single(&parts.headers, &SEC_WEBSOCKET_KEY).ok_or(Refusal::Request)?;
    if BASE64_STANDARD.decode(key).map_or(0, |bytes| bytes.len()) != KEY_BYTES {
        return Err(Refusal::Request);
    }
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(|_| Refusal::Request)
}

/// The 101.
fn switching(accepted: HeaderValue) -> Answer {
    let mut answer = answer::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    answer
}

/// The value of a header that may come once.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        None
    } else {
        value.to_str().ok()
    }
}
