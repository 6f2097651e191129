//! The composition root: settings, the Socket.IO gateway, the server that joins them to the broker, shutdown.
#![forbid(unsafe_code)]

mod access;
mod environment;
mod gateway;
mod limits;
mod metrics;
mod reload;
mod server;
mod settings;
mod storage;

pub use environment::{AdminToken, Environment, ensure_admin_token};
pub use gateway::{Gateway, GatewayConfig};
pub use server::{Server, StartError, StartOptions};
pub use settings::{
    AuthStore, Backend, ConfigError, CorsSettings, DEFAULT_PORT, Explained, HttpApi, IdleEviction,
    Loaded, OriginSetting, Settings, SettingsError, SlowConsumer, Source, StorageConfig, Warning,
    explain, load as load_settings, parse as parse_settings,
    print_default as default_settings_document, suggestion as setting_suggestion,
};
pub use storage::backup;

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
