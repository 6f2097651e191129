//! The memory store passes the suite; another one stands in for it and gives back.
#![allow(clippy::unwrap_used, reason = "a test ends where it goes wrong")]

mod fallback;

use tyo_mq_core::memory_store::MemoryStore;
use tyo_mq_storage::conformance;

#[tokio::test]
async fn the_memory_store_conforms() {
    conformance::run(false, async |_| MemoryStore::default()).await;
}
