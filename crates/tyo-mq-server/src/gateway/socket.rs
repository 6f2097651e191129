//! One engine connection: its Socket.IO state, and the broker session of its socket in the main namespace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tyo_mq_codec::engine::Protocol;
use tyo_mq_codec::socket::{self, Incoming, JsonCheck, Limits, ROOT, Revision};
use tyo_mq_core::engine::DEFAULT_REALM;
use tyo_mq_core::runtime::{Flushes, Session};
use tyo_mq_protocol::{ChunkAssembler, ChunkLimits};
use tyo_mq_transport::{
    self as transport, CloseReason, Connection, Frame, Message, Refused, SendKind,
};

use super::Shared;
use super::outlet::SocketOutlet;

/// One client's connection.
pub struct ClientConnection {
    pub(super) gateway: Arc<Shared>,
    pub(super) conn: Arc<Connection>,
    state: socket::Connection,
    main: Option<MainSocket>,
    joined: Arc<AtomicBool>,
    flushes: Flushes,
}

/// The socket in the main namespace.
pub(super) struct MainSocket {
    pub(super) id: Box<str>,
    pub(super) session: Session,
    pub(super) outlet: Arc<SocketOutlet>,
    pub(super) chunks: ChunkAssembler,
}

impl ClientConnection {
    pub(super) fn open(gateway: Arc<Shared>, conn: Arc<Connection>, protocol: Protocol) -> Self {
        let revision = match protocol {
            Protocol::V3 => Revision::V4,
            Protocol::V4 => Revision::V5,
        };
        let limits = Limits {
            max_packet_bytes: gateway.config.max_message_bytes,
        };
        let state = socket::Connection::new(revision, JsonCheck::Name, limits);
        let joined = gateway.watch.add(&conn);
        let mut client = Self {
            gateway,
            conn,
            state,
            main: None,
            joined,
            flushes: Flushes::new(),
        };
        if let Some(namespace) = client.state.implicit_namespace() {
            // Clients of this revision use the engine's id for their socket's.
            let id = client.conn.id().to_owned();
            client.join(namespace, &id);
        }
        client
    }

    fn on_text(&mut self, text: &str) -> Result<(), Refused> {
        let incoming = self.state.receive_text(text).map_err(|_| Refused)?;
        self.on_incoming(incoming)
    }

    fn on_incoming(&mut self, incoming: Incoming<'_>) -> Result<(), Refused> {
        match incoming {
            Incoming::Connect {
                namespace: ROOT, ..
            } => {
                let id = self.gateway.socket_id();
                self.join(ROOT, &id);
            }
            Incoming::Connect { namespace, .. } => {
                let frame = Frame::text(|out| self.state.refuse_unknown(namespace, out));
                self.send(&frame);
            }
            Incoming::Event {
                ack,
                args,
                attachments,
                ..
            } => {
                if let Some(main) = &mut self.main {
                    let event = super::commands::Event {
                        ack,
                        args: &args,
                        attachments,
                    };
                    event.carry_out(&self.gateway, &self.conn, main, &mut self.flushes)?;
                    self.leave_if_ended();
                }
            }
            Incoming::Disconnect { .. } => self.main = None,
            Incoming::Ack { .. } | Incoming::NeedMore | Incoming::Ignored => {}
        }
        Ok(())
    }

    fn join(&mut self, namespace: &str, id: &str) {
        let mut joined = Ok(());
        let frame = Frame::text(|out| joined = self.state.accept(namespace, id, out));
        if joined.is_err() {
            return;
        }
        self.joined.store(true, Ordering::Relaxed);
        let outlet = Arc::new(SocketOutlet::new(
            self.conn.clone(),
            self.gateway.config.high_water_bytes,
        ));
        let session = self.gateway.broker.open(DEFAULT_REALM, id, outlet.clone());
        let chunks = ChunkAssembler::new(ChunkLimits {
            max_bytes: self.gateway.config.max_message_bytes,
            ..ChunkLimits::default()
        });
        self.main = Some(MainSocket {
            id: id.into(),
            session,
            outlet,
            chunks,
        });
        self.send(&frame);
    }

    /// The broker ended the session, or the client asked for it: the socket leaves, the connection stays.
    fn leave_if_ended(&mut self) {
        if self
            .main
            .as_ref()
            .is_some_and(|main| main.outlet.is_ended())
        {
            let frame = Frame::text(|out| _ = self.state.leave(ROOT, out));
            self.send(&frame);
            self.main = None;
        }
    }

    fn send(&self, frame: &Frame) {
        // Too slow or gone: the connection ends by itself.
        let _ = self.conn.send(frame, SendKind::Keep);
    }
}

impl transport::Session for ClientConnection {
    fn on_message(&mut self, message: Message<'_>) -> Result<(), Refused> {
        match message {
            Message::Text(text) => self.on_text(text),
            Message::Binary(bytes) => {
                let incoming = self.state.receive_binary(bytes).map_err(|_| Refused)?;
                self.on_incoming(incoming)
            }
        }
    }

    fn on_batch_end(&mut self) {
        self.flushes.flush();
        if let Some(main) = &mut self.main {
            main.chunks.expire(self.gateway.elapsed_ms());
        }
    }

    fn on_drained(&mut self) {
        if let Some(main) = &self.main {
            main.session.drained();
        }
    }

    fn on_close(&mut self, _: CloseReason) {
        self.main = None;
        self.flushes.flush();
    }
}
