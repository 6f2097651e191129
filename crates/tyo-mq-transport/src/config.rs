//! Settings and limits of an engine.

use std::time::Duration;

/// Everything an [`crate::Engine`] can be told. The default is the broker's.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The path that is served, exactly.
    pub path: String,
    /// Between pings.
    pub ping_interval: Duration,
    /// How long a ping may stay unanswered.
    pub ping_timeout: Duration,
    /// How long a WebSocket of an upgrade may take to complete it; polling goes on when it does not.
    pub upgrade_timeout: Duration,
    /// Largest message and largest POST body, in bytes. Over it: close code 1009, or status 413.
    pub max_payload: usize,
    /// Whether revision 3 is spoken; otherwise only `EIO=4` is accepted.
    pub allow_v3: bool,
    /// Whether any `EIO` but 4, or none, means revision 3; otherwise only `EIO=3` does.
    pub lenient_version: bool,
    /// Whether sessions may poll.
    pub allow_polling: bool,
    /// Whether sessions may start on a WebSocket.
    pub allow_websocket: bool,
    /// Whether a polling session may go on by WebSocket.
    pub allow_upgrade: bool,
    /// Which browser pages may read the answers.
    pub cors: Cors,
    /// Bound of one connection's outbound queue, in bytes; a single larger message passes when the queue is empty.
    pub outbound_max_bytes: usize,
    /// Above this [`crate::SendOutcome::AboveHighWater`] is told, below half of it `on_drained`.
    pub outbound_high_water_bytes: usize,
    /// What happens at the bound.
    pub slow_consumer: SlowConsumer,
    /// Sessions at once; further handshakes are answered 503.
    pub max_connections: usize,
    /// How long a closing connection may take to read what is left for it.
    pub close_grace: Duration,
    /// How long a POST body may stand still; then 408 and the session is closed.
    pub body_idle_timeout: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            path: "/socket.io/".to_owned(),
            ping_interval: Duration::from_secs(5),
            ping_timeout: Duration::from_secs(10),
            upgrade_timeout: Duration::from_secs(10),
            max_payload: 50 * 1024 * 1024,
            allow_v3: true,
            lenient_version: true,
            allow_polling: true,
            allow_websocket: true,
            allow_upgrade: true,
            cors: Cors::default(),
            outbound_max_bytes: 8 * 1024 * 1024,
            outbound_high_water_bytes: 1024 * 1024,
            slow_consumer: SlowConsumer::Disconnect,
            max_connections: 100_000,
            close_grace: Duration::from_secs(5),
            body_idle_timeout: Duration::from_secs(20),
        }
    }
}

/// What happens to a connection whose outbound queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowConsumer {
    /// The oldest messages that may be dropped are, and counted.
    Drop,
    /// It is closed.
    Disconnect,
}

/// Cross-origin answers, the same on every response of the engine.
#[derive(Debug, Clone)]
pub struct Cors {
    /// Who may read.
    pub origins: Origins,
    /// Whether `Access-Control-Allow-Credentials` is sent.
    pub credentials: bool,
}

impl Default for Cors {
    fn default() -> Self {
        Self {
            origins: Origins::Any,
            credentials: true,
        }
    }
}

/// Origins that may read answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// All: `*`. (Browsers do not let a page send credentials to such a server.)
    Any,
    /// These, compared byte for byte; the one that asked is sent back, with `Vary: Origin`.
    List(Vec<String>),
    /// None: no such headers.
    Nobody,
}
