//! The Socket.IO gateway: engine connections in, broker sessions out. Knows both vocabularies and no settings file.

mod commands;
mod encode;
mod gate;
mod outlet;
mod socket;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};
use tyo_mq_core::runtime::Broker;
use tyo_mq_transport::{Application, ConnectInfo, Connection};

use crate::access::Access;
use socket::ClientConnection;

pub(crate) use encode::{ack_frame, event_frame};
use watch::ConnectWatch;

/// How the gateway treats clients.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// A connection that joins no namespace within this time is closed.
    pub connect_timeout: Duration,
    /// Largest message, in bytes, also of one that comes in chunks.
    pub max_message_bytes: usize,
    /// Outbound queue above which a replay pauses.
    pub high_water_bytes: usize,
}

/// Serves Socket.IO clients from a broker.
pub struct Gateway {
    shared: Arc<Shared>,
}

/// What all connections use.
pub(crate) struct Shared {
    broker: Broker,
    access: Arc<Access>,
    config: GatewayConfig,
    random: SystemRandom,
    started: Instant,
    watch: Arc<ConnectWatch>,
}

impl Gateway {
    /// A gateway to a broker that serves everybody. It must be made inside a tokio runtime.
    pub fn new(broker: Broker, config: GatewayConfig) -> Self {
        let access = Access::for_everybody(&broker);
        Self::with_access(broker, access, config)
    }

    /// A gateway with a door.
    pub(crate) fn with_access(broker: Broker, access: Arc<Access>, config: GatewayConfig) -> Self {
        let watch = ConnectWatch::start(config.connect_timeout);
        let shared = Shared {
            broker,
            access,
            config,
            random: SystemRandom::new(),
            started: Instant::now(),
            watch,
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl Application for Gateway {
    type Session = ClientConnection;

    fn open(&self, conn: Arc<Connection>, info: ConnectInfo) -> ClientConnection {
        ClientConnection::open(self.shared.clone(), conn, &info)
    }
}

impl Shared {
    /// A public socket id: 20 characters that nobody can guess.
    fn socket_id(&self) -> String {
        let mut bytes = [0u8; SOCKET_ID_BYTES];
        self.random
            .fill(&mut bytes)
            .expect("the system has a source of randomness");
        bytes
            .iter()
            .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
            .collect()
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Length of a socket id.
const SOCKET_ID_BYTES: usize = 20;

/// 64 characters, so that each random byte gives one without bias.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
