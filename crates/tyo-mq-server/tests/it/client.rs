//! A Socket.IO client that shows every frame: nothing is added, dropped or reordered on the way to the test.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// When a test gives up on something that must happen; it never waits for this long when all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came from the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Came {
    Text(String),
    Binary(Vec<u8>),
    /// The connection is closed; the code of the close frame, if there was one with a code.
    Closed(Option<u16>),
}

pub(crate) struct Client {
    stream: WebSocketStream<TcpStream>,
    inbox: VecDeque<Came>,
    /// The socket id in the main namespace; the engine's id before joining it.
    pub(crate) id: String,
    closed: bool,
    fences: u32,
    acks: u64,
}

impl Client {
    /// A revision 4 connection that has joined the main namespace.
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let mut client = Self::engine(addr, 4).await;
        client.join().await;
        client
    }

    /// An engine connection that has joined nothing, after its handshake.
    pub(crate) async fn engine(addr: SocketAddr, revision: u8) -> Self {
        let mut client = Self::open(addr, &format!("EIO={revision}&transport=websocket")).await;
        let handshake = client.text().await;
        let fields: Value = serde_json::from_str(&handshake[1..]).unwrap();
        assert_eq!(&handshake[..1], "0");
        client.id = fields["sid"].as_str().unwrap().to_owned();
        client
    }

    /// A WebSocket, from which nothing was read.
    pub(crate) async fn open(addr: SocketAddr, query: &str) -> Self {
        let url = format!("ws://{addr}/socket.io/?{query}");
        Self::open_with(addr, url.into_client_request().unwrap()).await
    }

    async fn open_with(addr: SocketAddr, request: Request) -> Self {
        let tcp = TcpStream::connect(addr).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let config = WebSocketConfig::default()
            .max_message_size(None)
            .max_frame_size(None);
        let (stream, _) = tokio_tungstenite::client_async_with_config(request, tcp, Some(config))
            .await
            .unwrap();
        Self {
            stream,
            inbox: VecDeque::new(),
            id: String::new(),
            closed: false,
            fences: 0,
            acks: 1_000,
        }
    }

    /// An engine connection through a proxy that says where it comes from, after its handshake.
    pub(crate) async fn behind_proxy(addr: SocketAddr, forwarded_for: &'static str) -> Self {
        let url = format!("ws://{addr}/socket.io/?EIO=4&transport=websocket");
        let mut request = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("x-forwarded-for", HeaderValue::from_static(forwarded_for));
        let mut client = Self::open_with(addr, request).await;
        assert!(client.text().await.starts_with('0'));
        client
    }

    /// Joins the main namespace.
    pub(crate) async fn join(&mut self) {
        self.send("40").await;
        let answer = self.text().await;
        let fields: Value = serde_json::from_str(answer.strip_prefix("40").unwrap()).unwrap();
        self.id = fields["sid"].as_str().unwrap().to_owned();
    }

    /// Sends one engine packet.
    pub(crate) async fn send(&mut self, packet: &str) {
        self.write(Message::text(packet)).await;
    }

    pub(crate) async fn send_binary(&mut self, bytes: &[u8]) {
        self.write(Message::binary(bytes.to_vec())).await;
    }

    /// Sends an event with one argument.
    pub(crate) async fn emit(&mut self, event: &str, payload: &str) {
        self.send(&format!("42[\"{event}\",{payload}]")).await;
    }

    /// Sends an event that wants an ack; the ack's argument.
    pub(crate) async fn call(&mut self, event: &str, payload: &str) -> Value {
        self.acks += 1;
        let ack = self.acks;
        self.send(&format!("42{ack}[\"{event}\",{payload}]")).await;
        let start = format!("43{ack}[");
        loop {
            match self.receive().await {
                Came::Text(text) if text.starts_with(&start) => {
                    return serde_json::from_str(&text[start.len()..text.len() - 1]).unwrap();
                }
                // An answer may come behind what it answers.
                other => self.inbox.push_back(other),
            }
        }
    }

    /// Sends an event and waits for its ack; what came instead if the connection ended.
    pub(crate) async fn call_or_end(&mut self, event: &str) -> Result<(), Vec<Came>> {
        self.send(&format!("42999[\"{event}\",null]")).await;
        let mut instead = Vec::new();
        loop {
            match self.next().await {
                Came::Text(text) if text.starts_with("43999[") => return Ok(()),
                Came::Closed(_) => return Err(instead),
                came => instead.push(came),
            }
        }
    }

    async fn write(&mut self, message: Message) {
        // Whether the server still listens shows in what comes back.
        let _ = self.stream.send(message).await;
    }

    /// The next frame. Heartbeats are answered and not shown.
    pub(crate) async fn next(&mut self) -> Came {
        match self.inbox.pop_front() {
            Some(came) => came,
            None => self.receive().await,
        }
    }

    /// The next frame, which must be text.
    pub(crate) async fn text(&mut self) -> String {
        match self.next().await {
            Came::Text(text) => text,
            other => panic!("text expected, {other:?} came"),
        }
    }

    /// The payload of the next frame, which must be this event, as JSON text.
    pub(crate) async fn event(&mut self, name: &str) -> String {
        let text = self.text().await;
        let start = format!("42[\"{name}\",");
        let Some(payload) = text.strip_prefix(&start) else {
            panic!("{name} expected, came {:.400}", text);
        };
        payload[..payload.len() - 1].to_owned()
    }

    /// Everything that was sent before is done, and what came of it here is in the inbox. False when closed.
    pub(crate) async fn fence(&mut self) -> bool {
        if self.closed {
            return false;
        }
        self.fences += 1;
        let token = self.fences.to_be_bytes();
        self.write(Message::Ping(token.to_vec().into())).await;
        loop {
            let message = self.read().await;
            match message {
                Message::Pong(payload) if payload[..] == token => return true,
                message => {
                    if let Some(came) = self.take(message).await {
                        let closed = matches!(came, Came::Closed(_));
                        self.inbox.push_back(came);
                        if closed {
                            return false;
                        }
                    }
                }
            }
        }
    }

    /// What came so far and was not looked at.
    pub(crate) async fn rest(&mut self) -> Vec<Came> {
        self.fence().await;
        self.inbox.drain(..).collect()
    }

    /// Closes from this side.
    pub(crate) async fn close(&mut self) {
        self.write(Message::Close(None)).await;
        while !self.closed {
            let message = self.read().await;
            if self
                .take(message)
                .await
                .is_some_and(|came| matches!(came, Came::Closed(_)))
            {
                break;
            }
        }
    }

    async fn receive(&mut self) -> Came {
        let frame = async {
            loop {
                assert!(!self.closed, "the connection is closed already");
                let message = self.read().await;
                if let Some(came) = self.take(message).await {
                    return came;
                }
            }
        };
        // Heartbeats are no reason to wait on.
        let frame = timeout(PATIENCE, frame).await;
        frame.expect("something besides heartbeats comes in time")
    }

    async fn take(&mut self, message: Message) -> Option<Came> {
        match message {
            Message::Text(text) if text.as_str() == "2" => {
                self.send("3").await;
                None
            }
            Message::Text(text) => Some(Came::Text(text.as_str().to_owned())),
            Message::Binary(bytes) => Some(Came::Binary(bytes.to_vec())),
            Message::Close(frame) => {
                self.closed = true;
                Some(Came::Closed(frame.map(|frame| frame.code.into())))
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => None,
        }
    }

    async fn read(&mut self) -> Message {
        let next = timeout(PATIENCE, self.stream.next()).await;
        match next.expect("something comes in time") {
            Some(Ok(message)) => message,
            // Cut off without a close frame.
            Some(Err(_)) | None => Message::Close(None),
        }
    }
}
