//! Opens the message store that the settings ask for.

mod handover;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tyo_mq_core::memory_store::{MemoryLimits, MemoryStore};
use tyo_mq_core::store::{BoxFuture, Store, StoreError};
use tyo_mq_storage::{Backend, Fallback, FallbackStore, Plan, RedisConfig, SqliteConfig};
use tyo_mq_storage_redis::RedisStore;
use tyo_mq_storage_sqlite::SqliteStore;

pub(crate) use handover::{Handover, adopt};

use crate::server::StartError;
use crate::settings::Settings;

type Opened = Result<Arc<dyn Store>, StoreError>;

/// Opens the store.
pub(crate) async fn open(
    settings: &Settings,
    handover: &Handover,
) -> Result<Arc<dyn Store>, StartError> {
    let backend = backend(settings)?;
    let name = name(&backend);
    let stand_in = match &backend {
        Backend::Redis(config) => config.fallback.clone(),
        Backend::Memory | Backend::Sqlite(_) => None,
    };
    let opened = match (backend, stand_in) {
        (Backend::Redis(config), Some(stand_in)) => {
            let config = for_sweeps(settings, config);
            open_with_fallback(config, stand_in, handover.clone()).await
        }
        (backend, _) => open_backend(settings, backend).await,
    };
    opened.map_err(|source| StartError::Store { name, source })
}

/// Opens the store that is wanted, and nothing in its place.
pub(crate) async fn open_wanted(settings: &Settings) -> Opened {
    let unusable = |error: StartError| StoreError::Unavailable(error.to_string());
    open_backend(settings, backend(settings).map_err(unusable)?).await
}

async fn open_backend(settings: &Settings, backend: Backend) -> Opened {
    match backend {
        Backend::Memory => Ok(memory()),
        Backend::Sqlite(config) => open_sqlite(config).await,
        Backend::Redis(config) => open_redis(for_sweeps(settings, config)).await,
    }
}

/// What expired must be there until a sweep has made a dead letter of it.
fn for_sweeps(settings: &Settings, mut config: RedisConfig) -> RedisConfig {
    if settings.expired_to_dlq {
        config.keep_expired = 3 * settings.idle_eviction.interval_ms.duration().max(SWEEP);
    }
    config
}

/// How a store is named to people; an address may hold a password.
fn name(backend: &Backend) -> String {
    match backend {
        Backend::Memory => "memory".to_owned(),
        Backend::Sqlite(config) => config.path.display().to_string(),
        Backend::Redis(_) => "redis".to_owned(),
    }
}

const SWEEP: Duration = Duration::from_secs(60);

/// How often a Redis that was away at the start is looked for.
const RETRY: Duration = Duration::from_secs(2);

fn backend(settings: &Settings) -> Result<Backend, StartError> {
    match settings.storage_config() {
        Ok(config) => Ok(config.backend),
        Err(error) => Err(StartError::Unsupported {
            key: "storage",
            message: error.to_string(),
        }),
    }
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(MemoryLimits::default()))
}

/// Checking an SQLite file takes its time: that happens on a thread for such work.
async fn open_sqlite(config: SqliteConfig) -> Opened {
    Ok(Arc::new(sqlite(config).await?))
}

async fn sqlite(config: SqliteConfig) -> Result<SqliteStore, StoreError> {
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&config)).await;
    opened.unwrap_or_else(|_| {
        Err(StoreError::Unavailable(
            "opening was interrupted".to_owned(),
        ))
    })
}

async fn open_redis(config: RedisConfig) -> Opened {
    Ok(Arc::new(RedisStore::open(&config).await?))
}

async fn open_with_fallback(config: RedisConfig, fallback: Fallback, handover: Handover) -> Opened {
    let stand_in_exists = matches!(&fallback, Fallback::Sqlite(config) if config.path.exists());
    let plan = Plan {
        primary: Box::new(move || {
            Box::pin(open_redis(config.clone())) as BoxFuture<'static, Opened>
        }),
        stand_in: Box::new(move || match fallback.clone() {
            Fallback::Memory => Box::pin(async { Ok(memory()) }),
            Fallback::Sqlite(config) => Box::pin(open_sqlite(config)) as BoxFuture<'static, Opened>,
        }),
        stand_in_exists,
        retry: RETRY,
        on_return: Box::new(move |snapshot| handover.bring(snapshot)),
    };
    Ok(Arc::new(FallbackStore::open(plan).await?))
}

/// Copies the message store of these settings to a file, whether a broker uses it or not.
///
/// # Errors
/// When the settings name no SQLite file, or it cannot be read, or the copy not be written.
pub async fn backup(settings: &Settings, to: &Path) -> Result<(), StartError> {
    let backend = backend(settings)?;
    let name = name(&backend);
    let Backend::Sqlite(config) = backend else {
        return Err(StartError::Unsupported {
            key: "storage",
            message: "only an SQLite store has a file to copy".to_owned(),
        });
    };
    let copied = copy(config, to).await;
    copied.map_err(|source| StartError::Store { name, source })
}

async fn copy(config: SqliteConfig, to: &Path) -> Result<(), StoreError> {
    if !config.path.exists() {
        return Err(StoreError::Unavailable("there is no such file".to_owned()));
    }
    let store = sqlite(config).await?;
    let copied = store.backup(to).await;
    store.close().await;
    copied
}
