//! Settings: the reference's JSON file, its defaults and its environment. Values only; nothing is opened here.

mod cors;
mod keys;
mod load;
#[cfg(test)]
mod tests;
mod values;

use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use cors::{CorsSettings, OriginSetting};
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
    /// Where durable messages are kept.
    #[serde(alias = "store")]
    pub storage: Storage,
    /// How they are kept.
    #[serde(alias = "storageOptions")]
    pub storage_options: StorageOptions,
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
    /// Bounds of realms.
    pub limits: LimitSettings,
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
            storage: Storage::Memory,
            storage_options: StorageOptions::default(),
            ack_timeout: Seconds::from_ms(30_000),
            prefetch: 1_000,
            idle_eviction: IdleEviction::default(),
            durable_subscription_ttl: Seconds::from_ms(30 * 86_400_000),
            expired_to_dlq: false,
            http_api: HttpApi::default(),
            limits: LimitSettings::default(),
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

/// Where durable messages are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// In memory: gone with the process.
    Memory,
    /// In an SQLite file.
    Sqlite,
    /// In Redis.
    Redis,
}

/// How durable messages are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageOptions {
    /// Life of a message if nobody names one: seconds, or text such as `12h`; negative is for ever.
    #[serde(alias = "defaultTtl")]
    pub default_ttl: Seconds,
    /// The SQLite file.
    #[serde(alias = "file", alias = "path")]
    pub filename: PathBuf,
    /// When SQLite says that something is kept: `full` after the disk, `normal` after the system has it.
    pub durability: Durability,
    /// Address of the Redis server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What Redis keys begin with.
    pub prefix: String,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            default_ttl: Seconds::from_ms(86_400_000),
            filename: PathBuf::from("tyo-mq.sqlite"),
            durability: Durability::Normal,
            url: None,
            prefix: "tyo-mq:queue".to_owned(),
        }
    }
}

/// When something counts as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When it survives a power failure.
    Full,
    /// When it survives the end of the process.
    Normal,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpApi {
    /// Whether it is served.
    pub enabled: bool,
}

/// Bounds of realms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitSettings {
    /// Whether they are kept.
    pub enabled: bool,
    /// Most stored messages of a realm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queued_per_realm: Option<u64>,
}

/// The default settings as the text of a file.
pub fn print_default() -> String {
    load::document(&Settings::default())
}
