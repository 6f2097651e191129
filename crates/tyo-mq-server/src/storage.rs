//! Opens the message store that the settings ask for.

use std::path::Path;
use std::sync::Arc;

use tyo_mq_core::memory_store::{MemoryLimits, MemoryStore};
use tyo_mq_core::store::{Store, StoreError};
use tyo_mq_storage::SqliteConfig;
use tyo_mq_storage_sqlite::SqliteStore;

use crate::server::StartError;
use crate::settings::{Durability, Settings, Storage};

/// Opens the store. Checking an SQLite file takes its time: that happens on a thread for such work.
pub(crate) async fn open(settings: &Settings) -> Result<Arc<dyn Store>, StartError> {
    match settings.storage {
        Storage::Memory => Ok(Arc::new(MemoryStore::new(MemoryLimits::default()))),
        Storage::Sqlite => Ok(Arc::new(open_sqlite(settings).await?)),
        Storage::Redis => Err(StartError::Unsupported {
            key: "storage",
            message: "this version keeps messages in memory or in SQLite".to_owned(),
        }),
    }
}

async fn open_sqlite(settings: &Settings) -> Result<SqliteStore, StoreError> {
    let options = &settings.storage_options;
    let config = SqliteConfig {
        durability: match options.durability {
            Durability::Full => tyo_mq_storage::Durability::Full,
            Durability::Normal => tyo_mq_storage::Durability::Normal,
        },
        ..SqliteConfig::new(&options.filename)
    };
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&config)).await;
    opened.unwrap_or_else(|_| {
        Err(StoreError::Unavailable(
            "opening was interrupted".to_owned(),
        ))
    })
}

/// Copies the message store of these settings to a file, whether a broker uses it or not.
///
/// # Errors
/// When the settings name no SQLite file, or it cannot be read, or the copy not be written.
pub async fn backup(settings: &Settings, to: &Path) -> Result<(), StartError> {
    if settings.storage != Storage::Sqlite {
        return Err(StartError::Unsupported {
            key: "storage",
            message: "only an SQLite store has a file to copy".to_owned(),
        });
    }
    if !settings.storage_options.filename.exists() {
        let missing = format!(
            "{} does not exist",
            settings.storage_options.filename.display()
        );
        return Err(StoreError::Unavailable(missing).into());
    }
    let store = open_sqlite(settings).await?;
    let copied = store.backup(to).await;
    store.close().await;
    Ok(copied?)
}
