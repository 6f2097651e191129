//! The SQLite store on real files: the suite, files of the reference, faults, groups of commits.
#![allow(clippy::unwrap_used, reason = "a test ends where it goes wrong")]

mod faults;
mod files;
mod groups;
mod reference;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tyo_mq_core::store::{Position, QueueKey, Store, StoreOp, StoreReply, StoredMessage};
use tyo_mq_core::{Message, MessageId};
use tyo_mq_storage::conformance::{self, Opening};
use tyo_mq_storage::{Durability, SqliteConfig};
use tyo_mq_storage_sqlite::SqliteStore;

#[tokio::test]
async fn the_store_conforms() {
    conforms(Durability::Normal).await;
}

#[tokio::test]
async fn the_store_conforms_with_full_durability() {
    conforms(Durability::Full).await;
}

async fn conforms(durability: Durability) {
    let place: Mutex<Option<TempDir>> = Mutex::new(None);
    let open = |opening| {
        let mut place = place.lock().unwrap();
        if opening == Opening::Fresh {
            *place = Some(tempfile::tempdir().unwrap());
        }
        let path = file(place.as_ref().unwrap());
        let config = SqliteConfig {
            durability,
            ..SqliteConfig::new(path)
        };
        std::future::ready(SqliteStore::open(&config).unwrap())
    };
    conformance::run(true, open).await;
}

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("queue.sqlite")
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(&SqliteConfig::new(path)).unwrap()
}

fn queue(key: &str) -> Arc<QueueKey> {
    Arc::new(QueueKey {
        realm: "default".into(),
        key: key.into(),
        consumer: "c".into(),
    })
}

fn stored(queue: &Arc<QueueKey>, id: &str, body: &str) -> StoredMessage {
    StoredMessage {
        id: MessageId::from(id),
        queue: queue.clone(),
        message: Arc::new(Message {
            event: "e".into(),
            producer: "p".into(),
            body: body.to_owned().into(),
            attachments: Box::default(),
        }),
        created_at_ms: 1_795_975_569_147,
        expires_at_ms: None,
        attempts: 0,
        position: Position(0),
    }
}

fn enqueue(queue: &Arc<QueueKey>, id: &str) -> StoreOp {
    StoreOp::Enqueue(stored(queue, id, &format!("{{\"message\":\"{id}\"")))
}

async fn messages(store: &SqliteStore, queue: &Arc<QueueKey>) -> Vec<StoredMessage> {
    let fetch = StoreOp::Fetch {
        queue: queue.clone(),
        after: Position(0),
        limit: 1_000_000,
        max_bytes: usize::MAX,
    };
    match store.execute(vec![fetch]).await.remove(0) {
        Ok(StoreReply::Page { messages, .. }) => messages,
        other => panic!("a fetch was answered {other:?}"),
    }
}
