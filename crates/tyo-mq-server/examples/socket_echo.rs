//! A Socket.IO echo server built from codec and transport alone, for the protocol suites.
//!
//! Namespaces `/` and `/custom`. On connect it emits `auth` with what the client sent along; `message` comes back as
//! `message-back`; `message-with-ack` is acknowledged with its arguments.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tyo_mq_codec::socket::{
    Connection as SocketState, Incoming, JsonCheck, Limits, Revision, write_ack, write_event,
};
use tyo_mq_transport::{
    Application, CloseReason, ConnectInfo, Connection, Engine, EngineConfig, Forbidden, Frame,
    Message, Protocol, Refused, SendKind, Session,
};

struct Echo;

struct Client {
    conn: Arc<Connection>,
    state: SocketState,
    /// Namespaces joined so far: each has an id of its own.
    joined: u32,
}

impl Application for Echo {
    type Session = Client;

    fn open(&self, conn: Arc<Connection>, info: ConnectInfo) -> Client {
        let revision = if info.protocol == Protocol::V3 {
            Revision::V4
        } else {
            Revision::V5
        };
        let state = SocketState::new(
            revision,
            JsonCheck::Full,
            Limits {
                max_packet_bytes: 1_000_000,
            },
        );
        let mut client = Client {
            conn,
            state,
            joined: 0,
        };
        if let Some(namespace) = client.state.implicit_namespace() {
            client.join(namespace, None);
        }
        client
    }
}

impl Client {
    fn send(&self, attachments: Vec<Bytes>, write: impl FnOnce(&mut Vec<u8>)) {
        self.conn.send(
            &Frame::text(write).with_attachments(attachments),
            SendKind::Keep,
        );
    }

    fn join(&mut self, namespace: &str, auth: Option<&str>) {
        self.joined += 1;
        let id = format!("{}-{}", self.conn.id(), self.joined);
        let mut answer = Vec::new();
        if self.state.accept(namespace, &id, &mut answer).is_ok() {
            self.send(Vec::new(), |out| out.extend_from_slice(&answer));
            let auth = auth.unwrap_or("{}");
            self.send(Vec::new(), |out| {
                write_event(out, namespace, None, 0, "auth", &[auth])
            });
        }
    }

    fn on_event(&self, namespace: &str, ack: Option<u64>, args: &str, attachments: Vec<Bytes>) {
        let Ok(args) = serde_json::from_str::<Vec<&RawValue>>(args) else {
            return;
        };
        let Some((name, args)) = args.split_first() else {
            return;
        };
        let args: Vec<&str> = args.iter().map(|arg| arg.get()).collect();
        let count = attachments.len();
        match (name.get(), ack) {
            ("\"message\"", _) => self.send(attachments, |out| {
                write_event(out, namespace, None, count, "message-back", &args);
            }),
            ("\"message-with-ack\"", Some(ack)) => self.send(attachments, |out| {
                let mut answer = Vec::new();
                write_ack(&mut answer, namespace, ack, &args);
                if count > 0 {
                    answer[0] = b'6';
                    answer.splice(1..1, format!("{count}-").into_bytes());
                }
                out.extend_from_slice(&answer);
            }),
            _ => {}
        }
    }

    fn on_incoming(&mut self, incoming: Incoming<'_>) {
        match incoming {
            Incoming::Connect {
                namespace: namespace @ ("/" | "/custom"),
                auth,
                ..
            } => self.join(namespace, auth),
            Incoming::Connect { namespace, .. } => {
                self.send(Vec::new(), |out| self.state.refuse_unknown(namespace, out));
            }
            Incoming::Event {
                namespace,
                ack,
                args,
                attachments,
            } => self.on_event(&namespace, ack, &args, attachments),
            _ => {}
        }
    }
}

impl Session for Client {
    fn on_message(&mut self, message: Message<'_>) -> Result<(), Refused> {
        match message {
            Message::Text(text) => {
                let incoming = self.state.receive_text(text).map_err(|_| Refused)?;
                self.on_incoming(incoming);
            }
            Message::Binary(bytes) => {
                let incoming = self.state.receive_binary(bytes).map_err(|_| Refused)?;
                self.on_incoming(incoming);
            }
        }
        Ok(())
    }

    fn on_batch_end(&mut self) {}

    fn on_drained(&mut self) {}

    fn on_close(&mut self, _: CloseReason) {}
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args()
        .nth(1)
        .and_then(|port| port.parse().ok())
        .unwrap_or(3000);
    let config = EngineConfig {
        ping_interval: Duration::from_millis(300),
        ping_timeout: Duration::from_millis(200),
        max_payload: 1_000_000,
        lenient_version: false,
        ..EngineConfig::default()
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}", listener.local_addr()?);
    let engine = Engine::new(config, Echo);
    tyo_mq_transport::serve(listener, engine.service(Forbidden), std::future::pending()).await;
    Ok(())
}
