//! Pages of a queue, expiry, and the end of a realm.

use std::collections::BTreeMap;
use std::sync::Arc;

use fred::types::Value;
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{
    DeadLetter, Position, QueueKey, StoreError, StoreOp, StoreReply, StoreResult,
};
use tyo_mq_storage::{RowReader, decode_json_row};

use crate::RedisStore;
use crate::batch::{Batch, now_ms, position, score};
use crate::error::unexpected;
use crate::keys::{decode_queue, encode, encode_queue};
use crate::script::{EXPIRED, PAGE, PURGE};

/// Members that a script looks at in one go.
const STRETCH: usize = 500;

/// Bytes of messages after which a script stops.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

pub(crate) async fn page(
    store: &RedisStore,
    queue: &Arc<QueueKey>,
    after: Position,
    limit: usize,
    max_bytes: usize,
) -> StoreResult {
    let (mut messages, mut bytes, mut after) = (Vec::new(), 0, after);
    let mut reader = RowReader::default();
    loop {
        let most = (limit - messages.len()).min(STRETCH);
        // Without room for any, one look still says whether there are some.
        let stretch = read_stretch(store, queue, after, most.max(1), max_bytes - bytes).await?;
        for row in stretch.rows {
            if messages.len() == limit || bytes >= max_bytes {
                return Ok(StoreReply::Page {
                    messages,
                    exhausted: false,
                });
            }
            let Some(mut stored) = decode_json_row(&row.text, row.position, &mut reader) else {
                tracing::warn!(
                    id = row.id,
                    "a stored message cannot be read and is left where it is"
                );
                continue;
            };
            stored.id = MessageId::from(row.id.as_str());
            stored.queue = queue.clone();
            stored.attempts = row.attempts.unwrap_or(stored.attempts);
            bytes += stored.message.size();
            messages.push(stored);
        }
        after = stretch.last;
        if stretch.exhausted || messages.len() >= limit || bytes >= max_bytes {
            return Ok(StoreReply::Page {
                messages,
                exhausted: stretch.exhausted,
            });
        }
    }
}

struct Stretch {
    last: Position,
    exhausted: bool,
    rows: Vec<Row>,
}

struct Row {
    id: String,
    position: Position,
    attempts: Option<u32>,
    text: String,
}

async fn read_stretch(
    store: &RedisStore,
    queue: &QueueKey,
    after: Position,
    most: usize,
    max_bytes: usize,
) -> Result<Stretch, StoreError> {
    let args = vec![
        Value::from(store.keys.prefix()),
        Value::from(encode(&queue.realm)),
        Value::from(encode_queue(queue)),
        Value::from(score(after)),
        Value::from(most.to_string()),
        Value::from(max_bytes.min(MAX_ANSWER_BYTES).to_string()),
        Value::from(now_ms().to_string()),
    ];
    let answer = store.connection.run(&PAGE, args, true).await?;
    let mut fields = texts(answer)?.into_iter();
    let mut next = || fields.next().ok_or_else(unexpected);
    let last = position(&next()?).ok_or_else(unexpected)?;
    let exhausted = next()? == "1";
    let mut rows = Vec::new();
    while let Ok(id) = next() {
        rows.push(Row {
            id,
            position: position(&next()?).ok_or_else(unexpected)?,
            attempts: next()?.parse().ok(),
            text: next()?,
        });
    }
    Ok(Stretch {
        last,
        exhausted,
        rows,
    })
}

/// An answer of texts and numbers, as texts; faulty bytes are replaced.
pub(crate) fn texts(answer: Value) -> Result<Vec<String>, StoreError> {
    let items: Vec<Value> = answer.convert().map_err(|_| unexpected())?;
    items.into_iter().map(text).collect()
}

fn text(item: Value) -> Result<String, StoreError> {
    match item.as_bytes() {
        Some(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        None => item.into_string().ok_or_else(unexpected),
    }
}

pub(crate) async fn purge_expired(
    store: &RedisStore,
    realm: &str,
    now_ms: u64,
    to_dead_letters: bool,
) -> Result<Vec<(QueueKey, u64)>, StoreError> {
    let mut counts = BTreeMap::new();
    loop {
        let found = if to_dead_letters {
            bury_expired(store, realm, now_ms, &mut counts).await?
        } else {
            take_expired(store, realm, now_ms, &mut counts).await?
        };
        if found < STRETCH {
            return Ok(counts.into_iter().collect());
        }
    }
}

async fn expired(
    store: &RedisStore,
    realm: &str,
    now_ms: u64,
    what: &str,
) -> Result<(usize, Vec<String>), StoreError> {
    let args = vec![
        Value::from(store.keys.prefix()),
        Value::from(encode(realm)),
        Value::from(now_ms.to_string()),
        Value::from(STRETCH.to_string()),
        Value::from(what),
    ];
    let mut fields = texts(store.connection.run(&EXPIRED, args, true).await?)?;
    let rest = fields.split_off(1.min(fields.len()));
    let found = fields
        .first()
        .and_then(|it| it.parse().ok())
        .ok_or_else(unexpected)?;
    Ok((found, rest))
}

async fn take_expired(
    store: &RedisStore,
    realm: &str,
    now_ms: u64,
    counts: &mut BTreeMap<QueueKey, u64>,
) -> Result<usize, StoreError> {
    let (found, rest) = expired(store, realm, now_ms, "take").await?;
    for pair in rest.chunks_exact(2) {
        if let Some(queue) = decode_queue(realm, &pair[0]) {
            *counts.entry(queue).or_default() += 1;
        }
    }
    Ok(found)
}

async fn bury_expired(
    store: &RedisStore,
    realm: &str,
    now_ms: u64,
    counts: &mut BTreeMap<QueueKey, u64>,
) -> Result<usize, StoreError> {
    let (found, rest) = expired(store, realm, now_ms, "list").await?;
    let mut reader = RowReader::default();
    for triple in rest.chunks_exact(3) {
        let [queue, id, text] = triple else { continue };
        let Some(queue) = decode_queue(realm, queue).map(Arc::new) else {
            return Err(unexpected());
        };
        *counts.entry((*queue).clone()).or_default() += 1;
        let id = MessageId::from(id.as_str());
        let op = match decode_json_row(text, Position(0), &mut reader) {
            Some(mut stored) => {
                stored.id = id;
                stored.queue = queue;
                let reason = "expired".to_owned();
                StoreOp::DeadLetter(Box::new(DeadLetter {
                    stored,
                    reason,
                    dead_lettered_at_ms: now_ms,
                }))
            }
            // Redis has let it go already.
            None => StoreOp::Remove { queue, id },
        };
        let mut batch = Batch::new(&store.keys, store.keep_expired_ms);
        batch.push(op);
        let mut results = Vec::new();
        batch.run(&store.connection, &mut results).await;
        results.pop().unwrap_or_else(|| Err(unexpected()))?;
    }
    Ok(found)
}

pub(crate) async fn purge_realm(store: &RedisStore, realm: &str) -> Result<(), StoreError> {
    let encoded = encode(realm);
    for key in store
        .connection
        .scan(&store.keys.pattern("index", &format!("{encoded}:*")))
        .await?
    {
        let queue = store
            .keys
            .rest("index", &key)
            .and_then(|rest| rest.split_once(':'));
        if let Some((_, queue)) = queue {
            purge(store, &encoded, "queue", queue).await?;
        }
    }
    purge(store, &encoded, "letters", "").await?;
    let mut gone = store
        .connection
        .scan(&store.keys.pattern("attempts", &format!("{encoded}:*")))
        .await?;
    gone.push(store.keys.key("expiry", &encoded));
    gone.push(store.keys.key("subscriptions", &encoded));
    store
        .connection
        .read("DEL", gone.into_iter().map(Value::from).collect())
        .await?;
    let count = vec![Value::from(store.keys.counts()), Value::from(encoded)];
    store.connection.read("HDEL", count).await.map(|_| ())
}

async fn purge(store: &RedisStore, realm: &str, kind: &str, queue: &str) -> Result<(), StoreError> {
    loop {
        let args = [store.keys.prefix(), realm, kind, queue, "1000"]
            .map(Value::from)
            .to_vec();
        let found: u64 = store
            .connection
            .run(&PURGE, args, true)
            .await?
            .convert()
            .map_err(|_| unexpected())?;
        if found < 1000 {
            return Ok(());
        }
    }
}
