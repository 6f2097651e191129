//! The memory store passes the suite.

use tyo_mq_core::memory_store::MemoryStore;
use tyo_mq_storage::conformance;

#[tokio::test]
async fn the_memory_store_conforms() {
    conformance::run(false, async |_| MemoryStore::default()).await;
}
