//! The composition root: settings, the Socket.IO gateway, the server that joins them to the broker, shutdown.
#![forbid(unsafe_code)]

mod gateway;
mod server;
mod settings;
mod storage;

pub use gateway::{Gateway, GatewayConfig};
pub use server::{Server, StartError};
pub use settings::{
    CorsSettings, DEFAULT_PORT, Durability, HttpApi, IdleEviction, LimitSettings, Loaded,
    OriginSetting, Settings, SettingsError, SlowConsumer, Storage, StorageOptions, Warning,
    load as load_settings, parse as parse_settings, print_default as default_settings_document,
};
pub use storage::backup;
