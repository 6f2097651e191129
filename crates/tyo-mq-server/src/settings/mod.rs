//! Settings: the reference's JSON file, its defaults and its environment. Values only; nothing is opened here.

mod cors;
mod explain;
mod keys;
mod load;
#[cfg(test)]
mod tests;
mod values;

use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use cors::{CorsSettings, OriginSetting};
pub use tyo_mq_storage::{Backend, ConfigError, StorageConfig};

pub use explain::{Explained, Source, explain};
pub use keys::suggestion;
pub use load::{Loaded, SettingsError, Warning, load, parse};

use values::{Millis, PositiveCount, Seconds};

/// Everything that a settings file may say and this version obeys. Absent keys have their default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Address to listen on; all interfaces, both families, by default.
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one.
    pub port: u16,
    /// Milliseconds between pings.
    #[serde(rename = "pingInterval", alias = "ping_interval")]
    pub ping_interval: Millis,
    /// Milliseconds that a ping may stay unanswered.
    #[serde(rename = "pingTimeout", alias = "ping_timeout")]
    pub ping_timeout: Millis,
    /// Milliseconds that an upgrade may take.
    #[serde(rename = "upgradeTimeout", alias = "upgrade_timeout")]
    pub upgrade_timeout: Millis,
    /// Milliseconds in which a connection must join a namespace.
    #[serde(rename = "connectTimeout", alias = "connect_timeout")]
    pub connect_timeout: Millis,
    /// Largest message in bytes.
    #[serde(rename = "maxHttpBufferSize", alias = "max_http_buffer_size")]
    pub max_http_buffer_size: PositiveCount,
    /// Whether Engine.IO 3 is spoken besides 4.
    #[serde(rename = "allowEIO3", alias = "allow_eio3")]
    pub allow_eio3: bool,
    /// Which web pages may use the broker.
    pub cors: CorsSettings,
    /// Most connections at once.
    pub max_connections: PositiveCount,
    /// Most bytes that wait for one client.
    pub outbound_max_bytes: PositiveCount,
    /// What happens to a client that is slower.
    pub slow_consumer: SlowConsumer,
    /// Threads that serve; 0 is one for each core.
    pub workers: usize,
    /// Where durable messages are kept: `memory`, `sqlite` or `redis`.
    #[serde(alias = "store")]
    pub storage: Value,
    /// How they are kept; see the settings reference.
    #[serde(alias = "storageOptions")]
    pub storage_options: Value,
    /// Time for an acknowledgement if a subscription names none: seconds, or text such as `500ms`.
    #[serde(alias = "ackTimeout")]
    pub ack_timeout: Seconds,
    /// Unacknowledged messages of a subscription that names no number; 0 is any number.
    pub prefetch: u32,
    /// When registrations of clients that are away are forgotten.
    #[serde(alias = "idleEviction")]
    pub idle_eviction: IdleEviction,
    /// Seconds that a durable subscription outlives its consumer's last connection; 0 is for ever.
    pub durable_subscription_ttl: Seconds,
    /// Expired messages become dead letters.
    pub expired_to_dlq: bool,
    /// The HTTP API.
    #[serde(alias = "httpApi")]
    pub http_api: HttpApi,
    /// Rates and quotas, by name; see the settings reference.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub limits: Value,
    /// Access control: realms, tokens and the rest; see the settings reference.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub auth: Value,
    /// Keeps realms and tokens in SQLite instead of this file.
    #[serde(alias = "authStore", skip_serializing_if = "AuthStore::is_off")]
    pub auth_store: AuthStore,
}

impl Settings {
    /// Turns authentication on unless the settings say whether it is.
    pub fn enable_auth_by_default(&mut self) {
        if !self.auth.is_object() {
            self.auth = json!({});
        }
        if let Some(auth) = self.auth.as_object_mut() {
            auth.entry("enabled").or_insert(json!(true));
        }
    }

    /// The store that the settings ask for.
    ///
    /// # Errors
    /// When a name is unknown or an option unusable.
    pub fn storage_config(&self) -> Result<StorageConfig, ConfigError> {
        StorageConfig::from_settings(&self.storage, &self.storage_options)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            port: DEFAULT_PORT,
            ping_interval: Millis(5_000),
            ping_timeout: Millis(10_000),
            upgrade_timeout: Millis(10_000),
            connect_timeout: Millis(45_000),
            max_http_buffer_size: PositiveCount(50 * 1024 * 1024),
            allow_eio3: true,
            cors: CorsSettings::default(),
            max_connections: PositiveCount(100_000),
            outbound_max_bytes: PositiveCount(8 * 1024 * 1024),
            slow_consumer: SlowConsumer::Disconnect,
            workers: 0,
            storage: json!("memory"),
            storage_options: json!({ "default_ttl": 86_400 }),
            ack_timeout: Seconds::from_ms(30_000),
            prefetch: 1_000,
            idle_eviction: IdleEviction::default(),
            durable_subscription_ttl: Seconds::from_ms(30 * 86_400_000),
            expired_to_dlq: false,
            http_api: HttpApi::default(),
            limits: Value::Null,
            auth: Value::Null,
            auth_store: AuthStore::Enabled(false),
        }
    }
}

/// The port of tyo-mq brokers.
pub const DEFAULT_PORT: u16 = 17352;

/// What happens to a client that does not read fast enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlowConsumer {
    /// Its oldest plain messages are dropped.
    Drop,
    /// It is disconnected.
    Disconnect,
}

/// When registrations of clients that are away are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleEviction {
    /// Whether they are.
    pub enabled: bool,
    /// Milliseconds away.
    #[serde(alias = "ttlMs")]
    pub ttl_ms: Millis,
    /// Milliseconds between two looks.
    #[serde(alias = "intervalMs")]
    pub interval_ms: Millis,
}

impl Default for IdleEviction {
    fn default() -> Self {
        Self {
            enabled: true,
            ttl_ms: Millis(300_000),
            interval_ms: Millis(60_000),
        }
    }
}

/// The HTTP API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpApi {
    /// Whether it is served.
    pub enabled: bool,
    /// Whether `/health` is.
    pub health: bool,
    /// Whether `/api/metrics` is.
    pub metrics: bool,
    /// Whether metrics are for administrators only.
    pub metrics_auth: bool,
    /// Whether `/api/stats` and dead letters are.
    pub stats: bool,
}

impl Default for HttpApi {
    fn default() -> Self {
        Self {
            enabled: false,
            health: true,
            metrics: true,
            metrics_auth: true,
            stats: true,
        }
    }
}

/// Where realms and tokens are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AuthStore {
    /// In a file of the usual name, or not at all.
    Enabled(bool),
    /// In this file.
    File(PathBuf),
    /// As said.
    Options {
        /// Whether at all.
        #[serde(default = "yes")]
        enabled: bool,
        /// The file.
        #[serde(alias = "file", alias = "path")]
        filename: Option<PathBuf>,
    },
}

impl AuthStore {
    fn is_off(&self) -> bool {
        self.file().is_none()
    }

    /// The file, if there is to be one; by its usual name it stands beside the settings file.
    pub fn file(&self) -> Option<PathBuf> {
        let usual = || PathBuf::from("tyo-mq.auth.sqlite");
        match self {
            Self::Enabled(false) | Self::Options { enabled: false, .. } => None,
            Self::Enabled(true) => Some(usual()),
            Self::File(file) => Some(file.clone()),
            Self::Options { filename, .. } => Some(filename.clone().unwrap_or_else(usual)),
        }
    }
}

fn yes() -> bool {
    true
}

/// The settings of a new file: the defaults, with the door of single realms shut by default.
pub(crate) fn for_new_file() -> Settings {
    let auth = json!({ "strict": true, "realms": { "default": { "required": false } } });
    Settings {
        auth,
        ..Settings::default()
    }
}

/// The default settings as the text of a file.
pub fn print_default() -> String {
    load::document(&for_new_file())
}
