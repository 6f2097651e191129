//! A server whose application tells the test everything, and small clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Ws;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tyo_mq_transport::{
    Application, CloseReason, ConnectInfo, Connection, Engine, EngineConfig, Forbidden, Frame,
    Message, Protocol, Refused, SendKind, Session, serve,
};

/// No wait of a test is longer than this; reaching it is a failure.
const LIMIT: Duration = Duration::from_secs(20);

/// `future`, or a failed test.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("it happens in time")
}

#[derive(Debug)]
pub(crate) enum Event {
    Opened(Arc<Connection>, Box<ConnectInfo>),
    Text(String),
    Binary(Vec<u8>),
    BatchEnd,
    Drained,
    Closed(CloseReason),
}

/// Echoes messages; `refuse` and `bye` close.
pub(crate) struct App(mpsc::UnboundedSender<Event>);

pub(crate) struct AppSession {
    conn: Arc<Connection>,
    events: mpsc::UnboundedSender<Event>,
}

impl Application for App {
    type Session = AppSession;

    fn open(&self, conn: Arc<Connection>, info: ConnectInfo) -> AppSession {
        if info.protocol == Protocol::V3 {
            conn.send(&text("0"), SendKind::Keep);
        }
        let _ = self
            .0
            .send(Event::Opened(Arc::clone(&conn), Box::new(info)));
        AppSession {
            conn,
            events: self.0.clone(),
        }
    }
}

impl Session for AppSession {
    fn on_message(&mut self, message: Message<'_>) -> Result<(), Refused> {
        match message {
            Message::Text("refuse") => return Err(Refused),
            Message::Text("bye") => {
                self.conn.send(&text("last words"), SendKind::Keep);
                self.conn.close(CloseReason::ServerClosed);
            }
            Message::Text(received) => {
                let _ = self.events.send(Event::Text(received.to_owned()));
                self.conn.send(&text(received), SendKind::Keep);
            }
            Message::Binary(received) => {
                let _ = self.events.send(Event::Binary(received.to_vec()));
                self.conn
                    .send(&Frame::binary(received.to_vec().into()), SendKind::Keep);
            }
        }
        Ok(())
    }

    fn on_batch_end(&mut self) {
        let _ = self.events.send(Event::BatchEnd);
    }

    fn on_drained(&mut self) {
        let _ = self.events.send(Event::Drained);
    }

    fn on_close(&mut self, reason: CloseReason) {
        let _ = self.events.send(Event::Closed(reason));
    }
}

pub(crate) fn text(text: &str) -> Frame {
    Frame::text(|buf| buf.extend_from_slice(text.as_bytes()))
}

pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    pub(crate) engine: Engine<App>,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Server {
    pub(crate) async fn start(config: EngineConfig) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let engine = Engine::new(config, App(sender));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(serve(
            listener,
            engine.service(Forbidden),
            std::future::pending(),
        ));
        Self {
            addr,
            engine,
            events,
        }
    }

    pub(crate) async fn event(&mut self) -> Event {
        soon(self.events.recv())
            .await
            .expect("the application lives")
    }

    /// The connection that opens next.
    pub(crate) async fn opened(&mut self) -> (Arc<Connection>, ConnectInfo) {
        loop {
            if let Event::Opened(conn, info) = self.event().await {
                return (conn, *info);
            }
        }
    }

    /// Why the next connection that closes did.
    pub(crate) async fn closed(&mut self) -> CloseReason {
        loop {
            if let Event::Closed(reason) = self.event().await {
                return reason;
            }
        }
    }

    /// The next message's text.
    pub(crate) async fn text(&mut self) -> String {
        loop {
            if let Event::Text(text) = self.event().await {
                return text;
            }
        }
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.http("GET", target, "", b"").await
    }

    pub(crate) async fn post(&self, target: &str, body: impl AsRef<[u8]>) -> Answer {
        self.http("POST", target, "", body.as_ref()).await
    }

    /// One request on a connection of its own. `headers` are lines that end with CR LF.
    pub(crate) async fn http(
        &self,
        method: &str,
        target: &str,
        headers: &str,
        body: &[u8],
    ) -> Answer {
        let length = if body.is_empty() && method == "GET" {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}{headers}\r\n"
        );
        soon(self.raw(&[head.as_bytes(), body].concat())).await
    }

    /// Bytes as they are, and the first answer to them.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        // A server that refuses early may close before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        Answer::parse(&answer)
    }

    /// Opens a polling session and returns the target of its requests.
    pub(crate) async fn poll_open(&self, eio: u8) -> String {
        let answer = self
            .get(&format!("/socket.io/?EIO={eio}&transport=polling"))
            .await;
        let sid = answer.body.split('"').nth(3).unwrap();
        format!("/socket.io/?EIO={eio}&transport=polling&sid={sid}")
    }

    pub(crate) async fn ws(&self, query: &str) -> Client {
        let url = format!("ws://{}/socket.io/?{query}", self.addr);
        Client(soon(connect_async(url)).await.unwrap().0)
    }

    /// A WebSocket with its open packet read.
    pub(crate) async fn ws_open(&self, eio: u8) -> Client {
        let mut client = self.ws(&format!("EIO={eio}&transport=websocket")).await;
        assert!(client.text().await.starts_with("0{"));
        client
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .map_or(bytes.len(), |at| at + 4);
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        let body = String::from_utf8_lossy(&bytes[end..]).into_owned();
        Self {
            status,
            head,
            body,
            bytes: bytes[end..].to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &'_ str| {
            line.split_once(": ")
                .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                .is_some()
        };
        self.head
            .lines()
            .find(|text| line(text))
            .and_then(|text| text.split_once(": "))
            .map(|(_, value)| value)
    }
}

pub(crate) struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    pub(crate) async fn send(&mut self, text: &str) {
        self.0.send(Ws::text(text)).await.unwrap();
    }

    pub(crate) async fn send_message(&mut self, message: Ws) {
        self.0.send(message).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Option<Ws> {
        soon(self.0.next()).await.and_then(Result::ok)
    }

    pub(crate) async fn text(&mut self) -> String {
        match self.next().await {
            Some(Ws::Text(text)) => text.to_string(),
            other => panic!("a text, not {other:?}"),
        }
    }

    /// The code of the close frame that comes next; `None` for one without.
    pub(crate) async fn close_code(&mut self) -> Option<u16> {
        match self.next().await {
            Some(Ws::Close(frame)) => frame.map(|frame| frame.code.into()),
            other => panic!("a close frame, not {other:?}"),
        }
    }

    /// The bytes below, to break rules with.
    pub(crate) fn raw(&mut self) -> &mut TcpStream {
        match self.0.get_mut() {
            MaybeTlsStream::Plain(stream) => stream,
            _ => panic!("no TLS here"),
        }
    }
}

/// Settings with a heartbeat that stays out of the way.
pub(crate) fn quiet() -> EngineConfig {
    EngineConfig {
        ping_interval: Duration::from_secs(300),
        ping_timeout: Duration::from_secs(300),
        ..EngineConfig::default()
    }
}
