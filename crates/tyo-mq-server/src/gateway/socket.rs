//! One engine connection: its Socket.IO state, and the broker session of its socket in the main namespace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use std::net::{IpAddr, Ipv4Addr};

use tyo_mq_codec::engine::Protocol;
use tyo_mq_codec::socket::{self, Incoming, JsonCheck, Limits, ROOT, Revision};
use tyo_mq_core::runtime::{Flushes, Session};
use tyo_mq_protocol::{ChunkAssembler, ChunkLimits, Notice};
use tyo_mq_transport::{
    self as transport, CloseReason, ConnectInfo, Connection, Frame, Message, Refused, SendKind,
};

use super::Shared;
use super::encode::notice_frame;
use super::outlet::SocketOutlet;
use crate::access::{Rights, SocketHandle};
use crate::limits::{Admission, OverLimit, SocketLimits, TrustedProxies, client_address};
use crate::metrics::Live;
use crate::now_ms;

/// One client's connection.
pub struct ClientConnection {
    pub(super) gateway: Arc<Shared>,
    pub(super) conn: Arc<Connection>,
    state: socket::Connection,
    main: Option<MainSocket>,
    joined: Arc<AtomicBool>,
    flushes: Flushes,
    /// Who the client is, as far as proxies are believed.
    address: IpAddr,
    /// Counts as a connection.
    _live: Live,
}

/// The socket in the main namespace.
pub(super) struct MainSocket {
    pub(super) handle: Arc<SocketHandle>,
    pub(super) rights: Rights,
    /// Open from the first event that the socket may send.
    pub(super) session: Option<Session>,
    /// The realm that the socket was seen in last.
    pub(super) place: Option<String>,
    pub(super) outlet: Arc<SocketOutlet>,
    pub(super) chunks: ChunkAssembler,
    pub(super) limits: SocketLimits,
    /// Counts for its address.
    _admission: Option<Admission>,
}

impl ClientConnection {
    pub(super) fn open(gateway: Arc<Shared>, conn: Arc<Connection>, info: &ConnectInfo) -> Self {
        let address = address(&gateway, info);
        let revision = match info.protocol {
            Protocol::V3 => Revision::V4,
            Protocol::V4 => Revision::V5,
        };
        let limits = Limits {
            max_packet_bytes: gateway.config.max_message_bytes,
        };
        let state = socket::Connection::new(revision, JsonCheck::Name, limits);
        let joined = gateway.watch.add(&conn);
        let live = gateway.access.metrics.connected();
        let mut client = Self {
            gateway,
            conn,
            state,
            main: None,
            joined,
            flushes: Flushes::new(),
            address,
            _live: live,
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
            Incoming::Disconnect { .. } => self.leave(),
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
        self.gateway.access.metrics.joined();
        self.send(&frame);
        match self.admit(id) {
            Ok(main) => self.main = Some(main),
            Err(over) => self.turn_away(over),
        }
    }

    fn admit(&self, id: &str) -> Result<MainSocket, OverLimit> {
        let Shared { access, config, .. } = &*self.gateway;
        let limits = access.limits();
        let admission =
            limits.map(|limits| access.connections.admit(&limits, self.address, now_ms()));
        let admission = admission.transpose()?;
        let handle = SocketHandle::new(id, self.conn.clone(), self.address, now_ms());
        let outlet = SocketOutlet::new(self.conn.clone(), config.high_water_bytes);
        let chunks = ChunkAssembler::new(ChunkLimits {
            max_bytes: config.max_message_bytes,
            ..ChunkLimits::default()
        });
        Ok(MainSocket {
            handle: access.join(handle),
            rights: Rights::default(),
            session: None,
            place: None,
            outlet: Arc::new(outlet),
            chunks,
            limits: SocketLimits::default(),
            _admission: admission,
        })
    }

    /// One connection too many: the client is told why and closed.
    fn turn_away(&self, over: OverLimit) {
        self.gateway.access.metrics.rate_limited(&over);
        let notice = Notice::RateLimited {
            reason: over.reason,
            retry_after_secs: over.retry_after_secs,
        };
        self.send(&notice_frame(&notice));
        self.send(&Frame::text(|out| socket::write_disconnect(out, ROOT)));
        self.conn.close(CloseReason::ServerClosed);
    }

    fn leave(&mut self) {
        if let Some(main) = self.main.take() {
            self.gateway.access.sockets.remove(&main.handle);
        }
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
            self.leave();
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
        if let Some(session) = self.main.as_ref().and_then(|main| main.session.as_ref()) {
            session.drained();
        }
    }

    fn on_close(&mut self, _: CloseReason) {
        self.leave();
        self.flushes.flush();
    }
}

/// Who the client is: the socket's address, or what trusted proxies say.
fn address(gateway: &Shared, info: &ConnectInfo) -> IpAddr {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let socket = info.remote_addr.map_or(unknown, |addr| addr.ip());
    let proxies = gateway.access.proxies();
    if proxies == TrustedProxies::Nobody {
        return socket.to_canonical();
    }
    let lines = info.headers.get_all("x-forwarded-for");
    let lines: Vec<&str> = lines.iter().filter_map(|line| line.to_str().ok()).collect();
    client_address(socket, &lines, &proxies)
}
