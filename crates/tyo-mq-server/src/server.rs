//! One server: store, broker, gateway and transport joined by settings, from start to shutdown.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tyo_mq_core::engine::{Config, IdleEviction, Limits};
use tyo_mq_core::runtime::{Broker, RuntimeConfig};
use tyo_mq_core::store::StoreError;
use tyo_mq_http::Api;
use tyo_mq_transport::{Cors, Engine, EngineConfig, SlowConsumer};

use crate::access::{Access, ApiHost};
use crate::environment::Environment;
use crate::gateway::{Gateway, GatewayConfig};
use crate::limits::{Limit, LimitConfig};
use crate::settings::{self, Loaded, Settings};

/// A server that listens; [`run`](Self::run) serves.
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    broker: Broker,
    engine: Engine<Gateway>,
    api: Api,
    access: Arc<Access>,
    settings_file: Option<PathBuf>,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// Which.
        addr: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The store cannot be opened.
    #[error("cannot open the message store {name}")]
    Store {
        /// Which: the file, or the kind of store.
        name: String,
        /// Why.
        source: StoreError,
    },
    /// What the settings say of access cannot be used, or not be kept.
    #[error("auth: {0}")]
    Auth(String),
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
        Self::start_with(settings, StartOptions::default()).await
    }

    /// As [`start`](Self::start), with a settings file that is watched and written, and an environment.
    ///
    /// # Errors
    /// As [`start`](Self::start), and when the auth store or the file for the admin's token cannot be had.
    pub async fn start_with(
        settings: &Settings,
        options: StartOptions,
    ) -> Result<Self, StartError> {
        let addr = SocketAddr::new(settings.host, settings.port);
        let unlistenable = |source| StartError::Listen { addr, source };
        let listener = listen(addr).map_err(unlistenable)?;
        let handover = crate::storage::Handover::default();
        let store = crate::storage::open(settings, &handover).await?;
        let name = store.name().to_owned();
        let started = Broker::start(runtime_config(settings), store).await;
        let broker = started.map_err(|source| StartError::Store { name, source })?;
        handover.attach(&broker);
        let settings_file = options.settings_file.clone();
        let access = crate::access::open(settings, options, &broker)?;
        let config = engine_config(settings);
        let gateway = GatewayConfig {
            connect_timeout: settings.connect_timeout.duration(),
            max_message_bytes: settings.max_http_buffer_size.0,
            high_water_bytes: config.outbound_high_water_bytes,
        };
        let gateway = Gateway::with_access(broker.clone(), access.clone(), gateway);
        let host = ApiHost(access.clone());
        let api = Api::new(broker.clone(), host, env!("CARGO_PKG_VERSION"));
        Ok(Self {
            addr: listener.local_addr().map_err(unlistenable)?,
            listener,
            engine: Engine::new(config, gateway),
            broker,
            api,
            access,
            settings_file,
        })
    }

    /// Reads the settings file again, if there is one, and applies what can be applied; an error is logged.
    pub fn reloader(&self) -> impl Fn() + Send + 'static {
        let (file, access) = (self.settings_file.clone(), Arc::downgrade(&self.access));
        move || {
            if let (Some(file), Some(access)) = (&file, access.upgrade()) {
                crate::reload::apply(file, &access);
            }
        }
    }

    /// Whether clients must authenticate.
    pub fn authenticates(&self) -> bool {
        self.access.is_enabled()
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
            access,
            settings_file,
            ..
        } = self;
        let watch = settings_file.map(|file| {
            let watch = crate::reload::watch(file, Arc::downgrade(&access));
            tokio::spawn(watch)
        });
        let service = engine.service(api);
        let goodbye = async {
            shutdown.await;
            engine.shutdown().await;
        };
        tyo_mq_transport::serve(listener, service, goodbye).await;
        if let Some(watch) = watch {
            watch.abort();
        }
        broker.shutdown().await;
    }
}

/// What a server is told besides its settings.
#[derive(Debug, Default)]
pub struct StartOptions {
    /// The file that the settings came from: it is watched, and changes are written to it.
    pub settings_file: Option<PathBuf>,
    /// The text of that file.
    pub settings_text: String,
    /// Where the admin's token is, or goes.
    pub environment: Environment,
}

impl StartOptions {
    /// For settings that were loaded from a file.
    #[must_use]
    pub fn with_file(path: PathBuf, loaded: &Loaded) -> Self {
        Self {
            settings_file: Some(path),
            settings_text: loaded.text.clone(),
            environment: Environment::default(),
        }
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
    let limits = LimitConfig::from_settings(&settings.limits);
    let max_queued_per_realm = limits
        .global(Limit::MAX_QUEUED_PER_REALM)
        .map(|most| most as u64);
    let engine = Config {
        seed: random_seed(),
        ack_timeout_ms: settings
            .ack_timeout
            .ms()
            .filter(|ms| *ms > 0)
            .unwrap_or(DEFAULT_ACK_TIMEOUT_MS),
        prefetch: settings.prefetch,
        default_ttl_ms: settings
            .storage_config()
            .map_or(Some(DEFAULT_TTL_MS), |it| it.default_ttl_ms),
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

/// Life of a message when the options say none; they were checked before.
const DEFAULT_TTL_MS: u64 = 86_400_000;

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
