//! One connection: the handshakes of WebSocket, Engine.IO and Socket.IO, then packets in and out. It holds no state of the client's.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tyo_mq_codec::engine::{self, Protocol};
use tyo_mq_codec::socket::{
    Assembled, Assembler, Packet, PacketKind, decode, write_connect_request, write_disconnect,
};

use crate::{Address, ConnectError, Connector, Options, Stream, TlsError};

/// A connection that has joined its namespace.
pub(crate) struct Socket {
    stream: WebSocketStream<Stream>,
    namespace: String,
    assembler: Assembler,
    /// How long the broker may say nothing at all.
    silence: Duration,
    last_heard: Instant,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// An event: its JSON array.
    Event {
        args: String,
        attachments: Vec<Bytes>,
    },
    /// An answer: its JSON array.
    Answer {
        id: u64,
        args: String,
        attachments: Vec<Bytes>,
    },
    /// The namespace was refused.
    Refused(String),
    /// The namespace was joined.
    Joined,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    #[error("the broker closed the connection")]
    Closed,
    #[error("the broker ended the session")]
    Ended,
    #[error("the connection broke")]
    Broken,
    #[error("the broker fell silent")]
    Silent,
    #[error("the broker broke the protocol")]
    Protocol,
    #[error("the broker takes no more")]
    Stuck,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenPacket {
    ping_interval: u64,
    ping_timeout: u64,
}

impl Socket {
    /// Connects and joins the namespace.
    pub(crate) async fn open(
        connector: &Connector,
        options: &Options,
    ) -> Result<Self, ConnectError> {
        let shaken = Self::handshake(connector, options);
        let opened = timeout(options.connect_timeout, shaken).await;
        opened.unwrap_or(Err(ConnectError::Timeout(options.connect_timeout)))
    }

    async fn handshake(connector: &Connector, options: &Options) -> Result<Self, ConnectError> {
        let wire = connector.open().await?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(options.max_message_bytes))
            .max_frame_size(Some(options.max_message_bytes));
        let address = connector.address();
        let url = address.websocket_url();
        let (stream, _) = tokio_tungstenite::client_async_with_config(url, wire, Some(config))
            .await
            .map_err(|error| refused(address, error))?;
        let mut socket = Self {
            stream,
            namespace: options.namespace.clone(),
            assembler: Assembler::new(options.max_message_bytes),
            silence: options.connect_timeout,
            last_heard: Instant::now(),
        };
        socket.read_open_packet().await?;
        let mut join = Vec::new();
        write_connect_request(&mut join, &options.namespace, None);
        let lost = |_| ConnectError::Handshake("the connection ended");
        socket.send(&join, &[]).await.map_err(lost)?;
        loop {
            let frame = socket.next_frame().await;
            match socket.take(frame).await.map_err(lost)? {
                Some(Incoming::Joined) => return Ok(socket),
                Some(Incoming::Refused(message)) => return Err(ConnectError::Refused(message)),
                _ => {}
            }
        }
    }

    async fn read_open_packet(&mut self) -> Result<(), ConnectError> {
        let frame = self.next_frame().await;
        let Some(Ok(Message::Text(text))) = frame else {
            return Err(ConnectError::Handshake("no open packet came"));
        };
        let open = match engine::decode_text(Protocol::V4, text.as_str()) {
            Ok(engine::Packet::Open(json)) => serde_json::from_str::<OpenPacket>(json).ok(),
            _ => None,
        };
        let open = open.ok_or(ConnectError::Handshake("the open packet cannot be read"))?;
        let silence_ms = open.ping_interval.saturating_add(open.ping_timeout);
        self.silence = Duration::from_millis(silence_ms.min(MAX_SILENCE_MS));
        Ok(())
    }

    /// The next frame. Nothing is lost when the future is dropped.
    pub(crate) async fn next_frame(&mut self) -> Option<Result<Message, tungstenite::Error>> {
        self.stream.next().await
    }

    /// Reads a frame and answers a ping.
    pub(crate) async fn take(
        &mut self,
        frame: Option<Result<Message, tungstenite::Error>>,
    ) -> Result<Option<Incoming>, Lost> {
        let Some(frame) = frame else {
            return Err(Lost::Closed);
        };
        self.last_heard = Instant::now();
        match frame {
            Ok(Message::Text(text)) => self.take_text(text.as_str()).await,
            Ok(Message::Binary(bytes)) => self.attach(&bytes),
            Ok(Message::Close(_)) => Err(Lost::Closed),
            // The WebSocket library answers its own pings.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => Ok(None),
            Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed) => {
                Err(Lost::Closed)
            }
            Err(tungstenite::Error::Capacity(_) | tungstenite::Error::Protocol(_)) => {
                Err(Lost::Protocol)
            }
            Err(_) => Err(Lost::Broken),
        }
    }

    async fn take_text(&mut self, text: &str) -> Result<Option<Incoming>, Lost> {
        match engine::decode_text(Protocol::V4, text).map_err(|_| Lost::Protocol)? {
            engine::Packet::Text(packet) => self.take_packet(packet),
            engine::Packet::Ping(_) => {
                self.write(Message::text("3")).await?;
                Ok(None)
            }
            engine::Packet::Binary(bytes) => self.attach(&bytes),
            engine::Packet::Close => Err(Lost::Ended),
            _ => Ok(None),
        }
    }

    fn take_packet(&mut self, text: &str) -> Result<Option<Incoming>, Lost> {
        if self.assembler.is_waiting() {
            return Err(Lost::Protocol);
        }
        let packet = decode(text).map_err(|_| Lost::Protocol)?;
        if packet.kind.is_binary() {
            let assembled = self.assembler.begin(&packet).map_err(|_| Lost::Protocol)?;
            return Ok(assembled.and_then(|whole| self.assembled(whole)));
        }
        if packet.namespace != self.namespace {
            return Ok(None);
        }
        match packet.kind {
            PacketKind::Connect => Ok(Some(Incoming::Joined)),
            PacketKind::Disconnect => Err(Lost::Ended),
            PacketKind::ConnectError => Ok(Some(Incoming::Refused(reason(&packet)))),
            PacketKind::Event => Ok(Some(Incoming::Event {
                args: packet.data.to_owned(),
                attachments: Vec::new(),
            })),
            _ => Ok(packet.id.map(|id| Incoming::Answer {
                id,
                args: packet.data.to_owned(),
                attachments: Vec::new(),
            })),
        }
    }

    fn attach(&mut self, bytes: &[u8]) -> Result<Option<Incoming>, Lost> {
        let assembled = self.assembler.attach(bytes).map_err(|_| Lost::Protocol)?;
        Ok(assembled.and_then(|whole| self.assembled(whole)))
    }

    fn assembled(&self, whole: Assembled) -> Option<Incoming> {
        let Assembled {
            kind,
            namespace,
            id,
            args,
            attachments,
        } = whole;
        if namespace != self.namespace {
            return None;
        }
        match (kind, id) {
            (PacketKind::BinaryEvent, _) => Some(Incoming::Event { args, attachments }),
            (_, Some(id)) => Some(Incoming::Answer {
                id,
                args,
                attachments,
            }),
            (_, None) => None,
        }
    }

    /// Sends a Socket.IO packet and its attachments.
    pub(crate) async fn send(&mut self, packet: &[u8], attachments: &[Bytes]) -> Result<(), Lost> {
        let mut text = String::with_capacity(packet.len() + 1);
        text.push('4');
        text.push_str(std::str::from_utf8(packet).expect("packets are written from text"));
        self.write(Message::text(text)).await?;
        for attachment in attachments {
            self.write(Message::Binary(attachment.clone())).await?;
        }
        Ok(())
    }

    async fn write(&mut self, message: Message) -> Result<(), Lost> {
        let written = timeout(WRITE_TIMEOUT, self.stream.send(message)).await;
        written.map_err(|_| Lost::Stuck)?.map_err(|_| Lost::Broken)
    }

    /// When the silence has been too long.
    pub(crate) fn deadline(&self) -> Instant {
        self.last_heard + self.silence
    }

    /// The connection was not read for a while: silence counts from now.
    pub(crate) fn restart_silence(&mut self) {
        self.last_heard = Instant::now();
    }

    /// Says goodbye and waits for the broker's, so that all that was sent arrives.
    pub(crate) async fn close(mut self) {
        let mut goodbye = Vec::new();
        write_disconnect(&mut goodbye, &self.namespace);
        let closing = async {
            self.send(&goodbye, &[]).await?;
            self.write(Message::Close(None)).await?;
            while let Some(Ok(_)) = self.next_frame().await {}
            Ok::<_, Lost>(())
        };
        // Whatever happens, the socket is closed when it is dropped.
        let _ = timeout(CLOSE_TIMEOUT, closing).await;
    }
}

/// Why there is no WebSocket. Whoever expects TLS answers plain HTTP with an alert, or with nothing, or says so with 400.
fn refused(address: &Address, error: tungstenite::Error) -> ConnectError {
    let is_foreign = match &error {
        tungstenite::Error::Protocol(
            ProtocolError::HttparseError(_) | ProtocolError::HandshakeIncomplete,
        ) => true,
        tungstenite::Error::Http(response) if response.status() == StatusCode::BAD_REQUEST => {
            let body = response.body().as_deref().unwrap_or_default();
            TlsError::is_told_by(&String::from_utf8_lossy(body))
        }
        _ => false,
    };
    if is_foreign && !address.is_secure() {
        let host = address.host().to_owned();
        return TlsError::Expected { host }.into();
    }
    ConnectError::WebSocket(Box::new(error))
}

/// What a CONNECT_ERROR says.
fn reason(packet: &Packet<'_>) -> String {
    #[derive(Deserialize)]
    struct Reason {
        message: String,
    }
    let reason = serde_json::from_str(packet.data);
    reason.map_or_else(|_| packet.data.to_owned(), |Reason { message }| message)
}

/// Time for one frame to be taken by the network.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for a goodbye.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest silence that a broker may ask for.
const MAX_SILENCE_MS: u64 = 600_000;
