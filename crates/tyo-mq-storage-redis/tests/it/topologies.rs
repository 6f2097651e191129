//! Addresses of every kind: passwords, a cluster, a sentinel.

use tyo_mq_core::store::Store;
use tyo_mq_storage::RedisConfig;
use tyo_mq_storage_redis::RedisStore;

use crate::server::{Server, run};
use crate::{conforms, enqueue, ids, queue};

#[tokio::test]
async fn a_password() {
    let server = Server::with(&["--requirepass", "se:cret"]);
    let at = format!("127.0.0.1:{}", server.port);
    let store = RedisStore::open(&RedisConfig::new(format!("redis://:se%3Acret@{at}/0")))
        .await
        .unwrap();
    let queue = queue("k");
    store
        .execute(vec![enqueue(&queue, "a")])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(ids(&store, &queue).await, ["a"]);
    store.close().await;
    let wrong = RedisConfig {
        probe_timeout: std::time::Duration::from_millis(300),
        ..RedisConfig::new(format!("redis://:wr%3Aong@{at}/0"))
    };
    let told = RedisStore::open(&wrong).await.err().unwrap().to_string();
    assert!(!told.contains("ong"), "{told}");
}

#[tokio::test]
async fn a_cluster() {
    let server = Server::with(&[
        "--cluster-enabled",
        "yes",
        "--cluster-announce-ip",
        "127.0.0.1",
    ]);
    let client = server.client().await;
    run(&client, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    loop {
        let info: String = run(&client, &["CLUSTER", "INFO"]).await.convert().unwrap();
        if info.contains("cluster_state:ok") {
            break;
        }
    }
    let url = format!("redis-cluster://127.0.0.1:{}", server.port);
    conforms(&RedisConfig::new(url)).await;
}

#[tokio::test]
async fn a_sentinel() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sentinel.conf");
    std::fs::write(
        &file,
        format!("sentinel monitor main 127.0.0.1 {} 1\n", server.port),
    )
    .unwrap();
    let sentinel = Server::with(&[file.to_str().unwrap(), "--sentinel"]);
    let url = format!(
        "redis-sentinel://127.0.0.1:{}?sentinelServiceName=main",
        sentinel.port
    );
    let store = RedisStore::open(&RedisConfig::new(url)).await.unwrap();
    let queue = queue("k");
    store
        .execute(vec![enqueue(&queue, "a")])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(ids(&store, &queue).await, ["a"]);
    store.close().await;
}
