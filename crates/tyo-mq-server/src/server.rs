//! One server: store, broker, gateway and transport joined by settings, from start to shutdown.

use std::future::Future;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};
use tyo_mq_core::engine::{Config, IdleEviction, Limits};
use tyo_mq_core::runtime::{Broker, RuntimeConfig};
use tyo_mq_core::store::StoreError;
use tyo_mq_http::{Api, ApiConfig};
use tyo_mq_transport::{Cors, Engine, EngineConfig, SlowConsumer};

use crate::gateway::{Gateway, GatewayConfig};
use crate::settings::{self, Settings};

/// A server that listens; [`run`](Self::run) serves.
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    broker: Broker,
    engine: Engine<Gateway>,
    api: Api,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// Which.
        addr: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The store cannot be opened.
    #[error("cannot open the message store: {0}")]
    Store(#[from] StoreError),
    /// A setting asks for what this version does not have.
    #[error("{key}: {message}")]
    Unsupported {
        /// The key.
        key: &'static str,
        /// What it asks for.
        message: String,
    },
}

impl Server {
    /// Opens the store and starts to listen. It must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the store or the address cannot be had.
    pub async fn start(settings: &Settings) -> Result<Self, StartError> {
        let addr = SocketAddr::new(settings.host, settings.port);
        let listener = listen(addr).map_err(|source| StartError::Listen { addr, source })?;
        let store = crate::storage::open(settings).await?;
        let broker = Broker::start(runtime_config(settings), store).await?;
        let config = engine_config(settings);
        let gateway = GatewayConfig {
            connect_timeout: settings.connect_timeout.duration(),
            max_message_bytes: settings.max_http_buffer_size.0,
            high_water_bytes: config.outbound_high_water_bytes,
        };
        let engine = Engine::new(config, Gateway::new(broker.clone(), gateway));
        let api = ApiConfig {
            enabled: settings.http_api.enabled,
            version: env!("CARGO_PKG_VERSION"),
        };
        let api = Api::new(broker.clone(), api);
        let addr = listener
            .local_addr()
            .map_err(|source| StartError::Listen { addr, source })?;
        Ok(Self {
            listener,
            addr,
            broker,
            engine,
            api,
        })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The broker behind it.
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Serves until `shutdown` completes; then says goodbye to everyone and writes what is to be kept.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self {
            listener,
            broker,
            engine,
            api,
            ..
        } = self;
        let service = engine.service(api);
        let goodbye = async {
            shutdown.await;
            engine.shutdown().await;
        };
        tyo_mq_transport::serve(listener, service, goodbye).await;
        broker.shutdown().await;
    }
}

/// Listens on both families when the address says all interfaces, where the system has both.
fn listen(addr: SocketAddr) -> std::io::Result<TcpListener> {
    let both = addr.ip().is_unspecified() && addr.is_ipv6();
    match bind(addr) {
        // A system without IPv6.
        Err(error) if both && error.kind() != std::io::ErrorKind::AddrInUse => {
            bind(SocketAddr::from(([0, 0, 0, 0], addr.port())))
        }
        bound => bound,
    }
}

fn bind(addr: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if addr.is_ipv6() {
        TcpSocket::new_v6()
    } else {
        TcpSocket::new_v4()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

fn runtime_config(settings: &Settings) -> RuntimeConfig {
    let idle = settings.idle_eviction;
    let max_queued_per_realm = settings
        .limits
        .max_queued_per_realm
        .filter(|most| settings.limits.enabled && *most > 0);
    let engine = Config {
        seed: random_seed(),
        ack_timeout_ms: settings
            .ack_timeout
            .ms()
            .filter(|ms| *ms > 0)
            .unwrap_or(DEFAULT_ACK_TIMEOUT_MS),
        prefetch: settings.prefetch,
        default_ttl_ms: settings.storage_options.default_ttl.ms(),
        idle_eviction: idle.enabled.then_some(IdleEviction {
            ttl_ms: idle.ttl_ms.0,
            interval_ms: idle.interval_ms.0,
        }),
        durable_subscription_ttl_ms: settings.durable_subscription_ttl.ms().filter(|ms| *ms > 0),
        expired_to_dlq: settings.expired_to_dlq,
        limits: Limits {
            max_queued_per_realm,
            ..Limits::default()
        },
    };
    let shards = match settings.workers {
        0 => RuntimeConfig::default().shards,
        workers => workers,
    };
    RuntimeConfig {
        engine,
        shards,
        ..RuntimeConfig::default()
    }
}

/// Time for an acknowledgement when a setting says none.
const DEFAULT_ACK_TIMEOUT_MS: u64 = 30_000;

/// A seed that no other start has, so that message ids do not repeat.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}

fn engine_config(settings: &Settings) -> EngineConfig {
    EngineConfig {
        ping_interval: settings.ping_interval.duration(),
        ping_timeout: settings.ping_timeout.duration(),
        upgrade_timeout: settings.upgrade_timeout.duration(),
        max_payload: settings.max_http_buffer_size.0,
        allow_v3: settings.allow_eio3,
        cors: Cors {
            origins: settings.cors.origin.origins(),
            credentials: settings.cors.credentials,
        },
        outbound_max_bytes: settings.outbound_max_bytes.0,
        outbound_high_water_bytes: settings.outbound_max_bytes.0.min(HIGH_WATER_BYTES),
        slow_consumer: match settings.slow_consumer {
            settings::SlowConsumer::Drop => SlowConsumer::Drop,
            settings::SlowConsumer::Disconnect => SlowConsumer::Disconnect,
        },
        max_connections: settings.max_connections.0,
        ..EngineConfig::default()
    }
}

/// Outbound bytes above which replays pause.
const HIGH_WATER_BYTES: usize = 1024 * 1024;
