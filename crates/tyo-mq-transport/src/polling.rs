//! Polling: a handshake, a GET that waits, a POST that brings packets.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::{sleep, timeout};
use tyo_mq_codec::engine::{
    Carrier, CloseReason, Packet, PacketError, PayloadEncoder, Protocol, RequestError,
    Session as EngineSession, Violation, decode_payload, decode_payload_v3,
    decode_payload_v3_binary,
};

use crate::answer::{self, Answer};
use crate::app::{Application, Message, Session};
use crate::connection::{Connection, Link};
use crate::driver::keep_polling;
use crate::engine::{SessionCell, Shared};
use crate::upgrade::connect_info;

/// Room that is made for a body before any of it came, at the most.
const BODY_ROOM: usize = 16 * 1024;
/// A client that leaves may have sent a poll at the same moment, on another connection: it is owed an answer.
const LATE_POLL: Duration = Duration::from_millis(5);

/// A request without a session id: opens a session.
pub(crate) fn handshake<A: Application>(
    engine: &Arc<Shared<A>>,
    parts: &mut Parts,
    protocol: Protocol,
    base64: bool,
) -> Answer {
    if !engine.admits() {
        return answer::refused_as(StatusCode::SERVICE_UNAVAILABLE, RequestError::Forbidden);
    }
    let Some(sid) = engine.new_sid() else {
        return answer::empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let open = engine.open_packet(
        &sid,
        engine.config.allow_upgrade && engine.config.allow_websocket,
    );
    let session = EngineSession::new(protocol, Carrier::Polling, engine.timing(), engine.now());
    let raw_bytes = protocol == Protocol::V3 && !base64;
    let conn = Arc::new(Connection::new(
        sid,
        session,
        raw_bytes,
        Link::Polling,
        &engine.config,
    ));
    let app = engine.app.open(
        Arc::clone(&conn),
        connect_info(parts, protocol, Carrier::Polling),
    );
    let cell = SessionCell::register(engine, conn, app);
    tokio::spawn(keep_polling(cell));
    let mut body = PayloadEncoder::new(protocol, false);
    body.push_text(&open);
    answer::payload(body)
}

/// A request to a session that polls.
pub(crate) async fn request<A: Application, B>(
    cell: Arc<SessionCell<A>>,
    parts: &Parts,
    body: B,
) -> Answer
where
    B: Body<Data = Bytes> + Unpin,
{
    match parts.method {
        Method::GET => poll(&cell).await,
        Method::POST => post(&cell, &parts.headers, body).await,
        _ => answer::refused(RequestError::BadMethod),
    }
}

/// Closes the session unless the request was seen through: its client left, or must not go on.
struct Unfinished<'a> {
    conn: &'a Connection,
    abandon: fn(&Connection),
}

impl Unfinished<'_> {
    fn done(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        (self.abandon)(self.conn);
    }
}

async fn poll<A: Application>(cell: &SessionCell<A>) -> Answer {
    let conn = &cell.conn;
    match conn.begin_poll(cell.engine.now()) {
        Ok(()) => {}
        Err(Violation::Closed) => {
            return conn.take_goodbye().map_or_else(
                || answer::refused(RequestError::UnknownSession),
                answer::payload,
            );
        }
        Err(_) => return answer::refused(RequestError::BadRequest),
    }
    let unfinished = Unfinished {
        conn,
        abandon: Connection::abandon_poll,
    };
    let body = poll_fn(|cx| {
        conn.take_poll_body(cx)
            .map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await;
    unfinished.done();
    answer::payload(body)
}

async fn post<A: Application, B>(cell: &SessionCell<A>, headers: &HeaderMap, body: B) -> Answer
where
    B: Body<Data = Bytes> + Unpin,
{
    let conn = &cell.conn;
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > cell.engine.config.max_payload as u64) {
        return answer::closing(answer::empty(StatusCode::PAYLOAD_TOO_LARGE));
    }
    match conn.begin_post(cell.engine.now()) {
        Ok(()) => {}
        Err(Violation::Closed) => return answer::refused(RequestError::UnknownSession),
        Err(_) => return answer::closing(answer::refused(RequestError::BadRequest)),
    }
    let unfinished = Unfinished {
        conn,
        abandon: |conn| conn.close(CloseReason::TransportError),
    };
    let body = match collect(cell, length, body).await {
        Ok(body) => body,
        Err(StatusCode::PAYLOAD_TOO_LARGE) => {
            unfinished.done();
            conn.end_post();
            return answer::closing(answer::empty(StatusCode::PAYLOAD_TOO_LARGE));
        }
        // Dropping the guard ends the session.
        Err(status) => return answer::closing(answer::empty(status)),
    };
    if matches!(&body[..], b"1" | b"1:1") && !conn.poll_waits() {
        sleep(LATE_POLL).await;
    }
    if conn.is_closed() {
        return answer::closing(answer::refused(RequestError::BadRequest));
    }
    let result = deliver(cell, is_raw_bytes(conn.protocol(), headers), &body);
    unfinished.done();
    conn.end_post();
    conn.flush();
    match result {
        Ok(()) => answer::posted(),
        Err(_) => answer::refused(RequestError::BadRequest),
    }
}

/// The body, up to the limit.
async fn collect<A: Application, B>(
    cell: &SessionCell<A>,
    length: Option<u64>,
    mut body: B,
) -> Result<Vec<u8>, StatusCode>
where
    B: Body<Data = Bytes> + Unpin,
{
    let config = &cell.engine.config;
    let room = length.map_or(0, |length| {
        usize::try_from(length).unwrap_or(BODY_ROOM).min(BODY_ROOM)
    });
    let mut collected = Vec::with_capacity(room);
    loop {
        let frame = timeout(config.body_idle_timeout, body.frame())
            .await
            .map_err(|_| StatusCode::REQUEST_TIMEOUT)?;
        let Some(frame) = frame else {
            return Ok(collected);
        };
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        cell.conn.post_progress(cell.engine.now());
        if let Ok(data) = frame.into_data() {
            if data.remaining() > config.max_payload - collected.len() {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            collected.extend_from_slice(&data);
        }
    }
}

fn is_raw_bytes(protocol: Protocol, headers: &HeaderMap) -> bool {
    protocol == Protocol::V3
        && headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/octet-stream"))
}

/// Hands the packets of a body over, in order.
fn deliver<A: Application>(
    cell: &SessionCell<A>,
    raw_bytes: bool,
    body: &[u8],
) -> Result<(), PacketError> {
    match (cell.conn.protocol(), raw_bytes) {
        (Protocol::V4, _) => deliver_packets(cell, decode_payload(body)),
        (Protocol::V3, true) => deliver_packets(cell, decode_payload_v3_binary(body)),
        (Protocol::V3, false) => deliver_packets(cell, decode_payload_v3(body)),
    }
}

fn deliver_packets<'p, A: Application>(
    cell: &SessionCell<A>,
    packets: impl Iterator<Item = Result<Packet<'p>, PacketError>>,
) -> Result<(), PacketError> {
    let conn = &cell.conn;
    let mut app = cell.lock_app();
    let Some(session) = app.as_mut() else {
        return Ok(());
    };
    let (now, mut result) = (cell.engine.now(), Ok(()));
    for packet in packets {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error) => {
                conn.close(CloseReason::ParseError);
                result = Err(error);
                break;
            }
        };
        let taken = match conn.on_packet(packet, now) {
            Some(Packet::Text(text)) => session.on_message(Message::Text(text)),
            Some(Packet::Binary(bytes)) => session.on_message(Message::Binary(&bytes)),
            _ => Ok(()),
        };
        if taken.is_err() {
            conn.close(CloseReason::ParseError);
            break;
        }
    }
    session.on_batch_end();
    result
}
