//! A file that the reference broker wrote, and the reference's statements on ours.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use tyo_mq_core::store::{Position, QueueKey, Store, StoreOp, StoreReply};

use crate::{enqueue, file, messages, open, queue};

/// The reference's schema and rows as it writes them. With the project's reference data beside the workspace its own file
/// is taken instead.
fn reference_file(dir: &TempDir) -> PathBuf {
    let path = file(dir);
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/refdata/queue.sqlite");
    if given.exists() {
        std::fs::copy(given, &path).unwrap();
    } else {
        build(&path);
    }
    path
}

fn build(path: &Path) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(SCHEMA).unwrap();
    let mut number = 0;
    let mut insert = |key: &str, realm: &str, consumer: &str, payload: &str, expires: &str| {
        number += 1;
        let sql = format!(
            "INSERT INTO messages (id, realm, event, consumer, payload, producer, created_at, expires_at)
            VALUES (?1, ?2, ?3, ?4, ?5, 'Shop', '2026-11-29T18:26:28.445Z', {expires})"
        );
        let id = format!("msg-{:03}", number * 37 % 101);
        conn.execute(&sql, [&id, realm, key, consumer, payload])
            .unwrap();
    };
    let envelope =
        |message: &str| format!(r#"{{"event":"Order-Placed","message":{message},"from":"Shop"}}"#);
    let long = format!("\"{}\"", "x".repeat(300_000));
    let payloads = [
        r#"{"n":1}"#,
        "\"text ü 😀 \u{2028}\"",
        "null",
        "0.1",
        "0",
        "1e+21",
        "9007199254740992",
        r#"[1,[2,{"a":null}]]"#,
        "\"\"",
        "{}",
        "true",
        r#"{"10":3,"b":1,"a":2}"#,
        r#"{"type":"Buffer","data":[0,1,2,255]}"#,
        "\"with ttl\"",
        "\"forever\"",
        "\"sealed\"",
        &long,
    ];
    for payload in payloads {
        let expires = if payload.contains("forever") {
            "NULL"
        } else {
            "2111336788446.5"
        };
        insert(
            "shop-order-placed",
            "default",
            "mailer",
            &envelope(payload),
            expires,
        );
    }
    insert(
        "tyo-mq-all-org/+/cmd",
        "default",
        "mailer",
        &envelope("1"),
        "NULL",
    );
    for i in 0..20 {
        insert(
            "tyo-mq-all-job",
            "acme",
            "w-1",
            &format!(r#"{{"event":"job","message":{{"i":{i}}},"from":"P"}}"#),
            "2111336788446",
        );
    }
    conn.execute_batch(
        r#"INSERT INTO dlq VALUES ('msg-dead', 'default', 'shop-dead', 'mailer', '{"event":"dead","message":{"poison":true},"from":"Shop"}',
        'Shop', '2026-11-29T18:26:27.168Z', 2111336787168, 'ack timeout after 2 attempt(s)', '2026-11-29T18:26:27.448Z')"#,
    )
    .unwrap();
}

const SCHEMA: &str = "
CREATE TABLE messages (id TEXT PRIMARY KEY, realm TEXT NOT NULL, event TEXT NOT NULL, consumer TEXT NOT NULL,
    payload TEXT NOT NULL, producer TEXT, created_at TEXT NOT NULL, expires_at INTEGER);
CREATE INDEX idx_messages_delivery ON messages (realm, event, consumer, expires_at);
CREATE TABLE dlq (id TEXT PRIMARY KEY, realm TEXT NOT NULL, event TEXT NOT NULL, consumer TEXT NOT NULL,
    payload TEXT NOT NULL, producer TEXT, created_at TEXT NOT NULL, expires_at INTEGER, reason TEXT,
    dead_lettered_at TEXT NOT NULL);
CREATE INDEX idx_dlq_realm ON dlq (realm, dead_lettered_at);
";

/// What the reference selects, in its order.
fn rows(path: &Path) -> Vec<(String, String)> {
    let conn = Connection::open(path).unwrap();
    let mut statement = conn
        .prepare("SELECT id, payload FROM messages ORDER BY rowid")
        .unwrap();
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    rows.map(|row| row.unwrap()).collect()
}

fn key(realm: &str, key: &str, consumer: &str) -> QueueKey {
    QueueKey {
        realm: realm.into(),
        key: key.into(),
        consumer: consumer.into(),
    }
}

#[tokio::test]
async fn its_queues_replay_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = reference_file(&dir);
    let before = rows(&path);
    let store = open(&path);
    let (mailer, topic, worker) = (
        key("default", "shop-order-placed", "mailer"),
        key("default", "tyo-mq-all-org/+/cmd", "mailer"),
        key("acme", "tyo-mq-all-job", "w-1"),
    );
    let queues = store.load().await.unwrap().queues;
    assert_eq!(
        queues,
        [(worker.clone(), 20), (mailer.clone(), 17), (topic, 1)]
    );

    let jobs = messages(&store, &worker.into()).await;
    for (i, stored) in jobs.iter().enumerate() {
        let body = String::from_utf8_lossy(&stored.message.body).into_owned();
        assert!(
            body.contains(&format!("\"message\":{{\"i\":{i}}}")),
            "{body}"
        );
        assert_eq!(stored.attempts, 0);
    }
    let mails = messages(&store, &mailer.into()).await;
    let kept: Vec<&(String, String)> = before
        .iter()
        .filter(|(_, it)| it.contains("Order-Placed"))
        .take(17)
        .collect();
    for (stored, (id, payload)) in mails.iter().zip(kept) {
        assert_eq!(stored.id.as_str(), id);
        assert_eq!(&*stored.message.event, "Order-Placed");
        assert_eq!(&*stored.message.producer, "Shop");
        assert!(stored.created_at_ms > 1_795_000_000_000);
        let body = std::str::from_utf8(&stored.message.body).unwrap();
        if payload.contains("\"Buffer\"") {
            assert!(body.contains(r#"{"_placeholder":true,"num":0}"#));
            assert_eq!(*stored.message.attachments, [&[0u8, 1, 2, 255][..]]);
        } else {
            assert_eq!(format!("{body}}}"), *payload, "byte for byte");
        }
    }
    assert!(mails.iter().any(|it| it.message.size() > 300_000));
    assert!(mails.iter().any(|it| it.expires_at_ms.is_none()));

    let letters = store.dead_letters(None, None, 10).await.unwrap().letters;
    assert_eq!(letters[0].reason, "ack timeout after 2 attempt(s)");
    assert_eq!(&*letters[0].stored.message.event, "dead");
    store.close().await;
    assert_eq!(rows(&path), before, "nothing is lost by opening the file");
}

#[tokio::test]
async fn the_reference_goes_on_with_our_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = reference_file(&dir);
    let ours = queue("shop-order-placed");
    let store = open(&path);
    store
        .execute(vec![enqueue(&ours, "ours")])
        .await
        .remove(0)
        .unwrap();
    store.close().await;

    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(
        &SCHEMA
            .replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
            .replace("CREATE INDEX", "CREATE INDEX IF NOT EXISTS"),
    )
    .unwrap();
    let payload: String = conn
        .query_row(
            "SELECT payload FROM messages WHERE id = 'ours'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(payload, r#"{"message":"ours"}"#);
    conn.execute(
        "INSERT INTO messages (id, realm, event, consumer, payload, producer, created_at, expires_at)
        VALUES ('theirs', 'default', 'shop-order-placed', 'c', '{\"event\":\"E\"}', NULL, '2026-11-29T18:26:28.445Z', 2111336788446.25)",
        [],
    )
    .unwrap();
    conn.execute(
        "INSERT OR REPLACE INTO dlq (id, realm, event, consumer, payload, producer, created_at, expires_at, reason, dead_lettered_at)
        SELECT id, realm, event, consumer, payload, producer, created_at, expires_at, NULL, '2026-11-29T18:26:28.445Z' FROM messages WHERE id = 'ours'",
        [],
    )
    .unwrap();
    drop(conn);

    let store = open(&path);
    let found = messages(&store, &ours).await;
    let ids: Vec<&str> = found.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["ours", "theirs"]);
    assert_eq!(&*found[1].message.event, "E");
    assert_eq!(found[1].expires_at_ms, Some(2_111_336_788_446));
    let letter = store
        .dead_letter(None, "ours".into())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(letter.stored.message.body, &br#"{"message":"ours""#[..]);
    let op = StoreOp::Requeue {
        realm: "default".into(),
        id: "ours".into(),
        expires_at_ms: None,
        now_ms: 1,
    };
    assert_eq!(
        store.execute(vec![op]).await,
        [Ok(StoreReply::Requeued(Some((*ours).clone())))]
    );
    store.close().await;
}

#[tokio::test]
async fn rows_from_elsewhere_do_not_collide_with_ours() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    let own = queue("k");
    let store = open(&path);
    store
        .execute(vec![enqueue(&own, "a")])
        .await
        .remove(0)
        .unwrap();
    let conn = Connection::open(&path).unwrap();
    for id in ["x", "y", "z"] {
        conn.execute("INSERT INTO messages (id, realm, event, consumer, payload, created_at) VALUES (?1, 'default', 'k', 'c', '{}', '')", [id]).unwrap();
    }
    let reply = store.execute(vec![enqueue(&own, "b")]).await.remove(0);
    assert_eq!(reply, Ok(StoreReply::Enqueued(Position(5))));
    let ids: Vec<String> = messages(&store, &own)
        .await
        .iter()
        .map(|it| it.id.to_string())
        .collect();
    assert_eq!(ids, ["a", "x", "y", "z", "b"]);
    store.close().await;
}
