//! Keys that the reference broker wrote, and ours as it reads them.

use std::path::Path;

use fred::prelude::*;
use tyo_mq_core::store::{QueueKey, Store, StoreOp, StoreReply};
use tyo_mq_storage::RedisConfig;
use tyo_mq_storage_redis::RedisStore;

use crate::server::{Server, run};
use crate::{enqueue, ids, page, queue, stored};

/// Puts the reference's keys onto a server: its own, where the project's reference data stands beside the workspace, else
/// some of the same make.
async fn fill(client: &Client) {
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/refdata/redis.jsonl");
    match std::fs::read_to_string(given) {
        Ok(lines) => {
            for line in lines.lines() {
                restore(client, &serde_json::from_str(line).unwrap()).await;
            }
        }
        Err(_) => build(client).await,
    }
}

async fn restore(client: &Client, entry: &serde_json::Value) {
    let key = entry["key"].as_str().unwrap();
    if entry["type"] == "zset" {
        for member in entry["members"].as_array().unwrap() {
            run(
                client,
                &[
                    "ZADD",
                    key,
                    &member[1].to_string(),
                    member[0].as_str().unwrap(),
                ],
            )
            .await;
        }
        return;
    }
    run(client, &["SET", key, entry["value"].as_str().unwrap()]).await;
    if entry["pexpireat"].as_i64().unwrap() > 0 {
        run(client, &["PEXPIREAT", key, &entry["pexpireat"].to_string()]).await;
    }
}

async fn build(client: &Client) {
    let envelopes = [
        "1e+21",
        r#"{"10":3,"b":1,"a":2}"#,
        r#"{"type":"Buffer","data":[0,1,2,255]}"#,
    ]
    .map(|it| ("default", "shop-order-placed", "mailer", it.to_owned()));
    let mut rows: Vec<_> = (0..14)
        .map(|i| ("default", "shop-order-placed", "mailer", i.to_string()))
        .chain(envelopes)
        .collect();
    rows.push(("default", "tyo-mq-all-org/+/cmd", "mailer", "1".to_owned()));
    rows.extend((0..20).map(|i| ("acme", "tyo-mq-all-job", "w-1", format!("{{\"i\":{i}}}"))));
    for (number, (realm, event, consumer, message)) in rows.iter().enumerate() {
        let id = format!("msg-{:03}", number * 37 % 101);
        let text = format!(
            r#"{{"id":"{id}","realm":"{realm}","event":"{event}","consumer":"{consumer}","message":{{"event":"Order-Placed","message":{message},"from":"Shop"}},"producer":"Shop","created_at":"2026-11-29T18:26:57.314Z","expires_at":2111336817316}}"#
        );
        run(
            client,
            &["SET", &format!("tyo-mq:queue:message:{id}"), &text],
        )
        .await;
        run(
            client,
            &[
                "PEXPIREAT",
                &format!("tyo-mq:queue:message:{id}"),
                "2111336817316",
            ],
        )
        .await;
        let index = match *event {
            "shop-order-placed" => "ZGVmYXVsdA:c2hvcC1vcmRlci1wbGFjZWQ:bWFpbGVy",
            "tyo-mq-all-job" => "YWNtZQ:dHlvLW1xLWFsbC1qb2I:dy0x",
            _ => "ZGVmYXVsdA:dHlvLW1xLWFsbC1vcmcvKy9jbWQ:bWFpbGVy",
        };
        run(
            client,
            &[
                "ZADD",
                &format!("tyo-mq:queue:index:{index}"),
                "1795976817314",
                &id,
            ],
        )
        .await;
    }
    let letter = r#"{"id":"msg-dead","realm":"default","event":"shop-dead","consumer":"mailer","message":{"event":"dead","message":{"poison":true},"from":"Shop"},"producer":"Shop","created_at":"2026-11-29T18:26:56.008Z","expires_at":2111336816010,"reason":"ack timeout after 2 attempt(s)","dead_lettered_at":"2026-11-29T18:26:56.308Z"}"#;
    run(
        client,
        &["SET", "tyo-mq:queue:dlq:message:msg-dead", letter],
    )
    .await;
    run(
        client,
        &[
            "ZADD",
            "tyo-mq:queue:dlq:ZGVmYXVsdA",
            "1795976816310",
            "msg-dead",
        ],
    )
    .await;
}

fn key(realm: &str, key: &str, consumer: &str) -> QueueKey {
    QueueKey {
        realm: realm.into(),
        key: key.into(),
        consumer: consumer.into(),
    }
}

#[tokio::test]
async fn its_queues_are_read_in_order() {
    let server = Server::start();
    let client = server.client().await;
    fill(&client).await;
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let (mailer, worker) = (
        key("default", "shop-order-placed", "mailer"),
        key("acme", "tyo-mq-all-job", "w-1"),
    );
    let queues = store.load().await.unwrap().queues;
    assert_eq!(
        queues,
        [
            (worker.clone(), 20),
            (mailer.clone(), 17),
            (key("default", "tyo-mq-all-org/+/cmd", "mailer"), 1)
        ]
    );
    assert_eq!(store.count("default").await, Ok(18));

    let jobs = page(&store, &worker.into(), Default::default(), 100).await;
    let bodies: Vec<String> = jobs
        .iter()
        .map(|it| String::from_utf8_lossy(&it.message.body).into_owned())
        .collect();
    for i in 0..20 {
        assert!(
            bodies
                .iter()
                .any(|it| it.contains(&format!("{{\"i\":{i}}}"))),
            "nothing is lost: {i}"
        );
    }
    let mails = page(&store, &mailer.clone().into(), Default::default(), 100).await;
    assert!(mails.is_sorted_by(|a, b| a.position < b.position));
    assert!(
        mails
            .iter()
            .all(|it| &*it.message.event == "Order-Placed" && &*it.message.producer == "Shop")
    );
    let binary: Vec<_> = mails
        .iter()
        .filter(|it| !it.message.attachments.is_empty())
        .collect();
    assert_eq!(*binary[0].message.attachments, [&[0u8, 1, 2, 255][..]]);
    assert!(mails.iter().any(|it| {
        it.message
            .body
            .ends_with(br#""message":{"10":3,"b":1,"a":2},"from":"Shop""#)
    }));

    let letters = store.dead_letters(None, None, 10).await.unwrap().letters;
    assert_eq!(letters[0].reason, "ack timeout after 2 attempt(s)");
    let ours: std::sync::Arc<_> = mailer.into();
    store
        .execute(vec![enqueue(&ours, "ours")])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(
        ids(&store, &ours).await.last().map(String::as_str),
        Some("ours"),
        "ours comes behind"
    );
    store.close().await;
}

#[tokio::test]
async fn the_reference_reads_our_keys() {
    let server = Server::start();
    let client = server.client().await;
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let queue = queue("shop-order-placed");
    let mut sent = stored(&queue, "m1");
    sent.expires_at_ms = Some(2_111_336_817_316);
    store
        .execute(vec![StoreOp::Enqueue(sent), enqueue(&queue, "m2")])
        .await;
    // ZRANGE of the index, GET of each member, as it does
    let index = "tyo-mq:queue:index:ZGVmYXVsdA:c2hvcC1vcmRlci1wbGFjZWQ:Yw";
    let members: Vec<String> = run(&client, &["ZRANGE", index, "0", "-1"])
        .await
        .convert()
        .unwrap();
    assert_eq!(members, ["m1", "m2"]);
    let text: String = run(&client, &["GET", "tyo-mq:queue:message:m1"])
        .await
        .convert()
        .unwrap();
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (field, value) in [
        ("id", "m1"),
        ("realm", "default"),
        ("event", "shop-order-placed"),
        ("consumer", "c"),
        ("producer", "p"),
        ("created_at", "2026-11-29T18:06:09.147Z"),
    ] {
        assert_eq!(row[field], value, "{field}");
    }
    assert_eq!(row["message"], serde_json::json!({"message": "m1"}));
    assert_eq!(row["expires_at"], 2_111_336_817_316u64);
    let expiry: i64 = run(&client, &["PEXPIRETIME", "tyo-mq:queue:message:m1"])
        .await
        .convert()
        .unwrap();
    assert_eq!(expiry, 2_111_336_817_316);
    let forever: i64 = run(&client, &["PTTL", "tyo-mq:queue:message:m2"])
        .await
        .convert()
        .unwrap();
    assert_eq!(forever, -1);
    // it acknowledges by ZREM and DEL
    run(&client, &["ZREM", index, "m1"]).await;
    run(&client, &["DEL", "tyo-mq:queue:message:m1"]).await;
    assert_eq!(ids(&store, &queue).await, ["m2"]);
    let purge = StoreOp::PurgeExpired {
        realm: "default".into(),
        now_ms: 3_000_000_000_000,
        to_dead_letters: true,
    };
    assert_eq!(
        store.execute(vec![purge]).await,
        [Ok(StoreReply::Purged(Vec::new()))]
    );
    store.close().await;
}

#[tokio::test]
async fn what_redis_let_expire_is_counted_by_the_sweep() {
    let server = Server::start();
    let client = server.client().await;
    let store = RedisStore::open(&RedisConfig::new(server.url()))
        .await
        .unwrap();
    let queue = queue("k");
    let mut early = stored(&queue, "early");
    early.expires_at_ms = Some(1000);
    store
        .execute(vec![
            StoreOp::Enqueue(early),
            enqueue(&queue, "ghost"),
            enqueue(&queue, "stays"),
        ])
        .await;
    run(&client, &["DEL", "tyo-mq:queue:message:ghost"]).await;
    assert_eq!(ids(&store, &queue).await, ["stays"]);
    assert_eq!(store.load().await.unwrap().queues, [((*queue).clone(), 3)]);
    let purge = StoreOp::PurgeExpired {
        realm: "default".into(),
        now_ms: 4_000_000_000_000,
        to_dead_letters: false,
    };
    assert_eq!(
        store.execute(vec![purge]).await,
        [Ok(StoreReply::Purged(vec![((*queue).clone(), 2)]))]
    );
    assert_eq!(store.load().await.unwrap().queues, [((*queue).clone(), 1)]);
    assert_eq!(store.count("default").await, Ok(1));
    store.close().await;
}
