//! What is kept at the start: queues taken into our books, durable subscriptions, counts.

use std::collections::BTreeMap;

use fred::types::Value;
use tyo_mq_core::store::{DurableSubscription, Snapshot, StoreError};
use tyo_mq_storage::decode_spec;

use crate::RedisStore;
use crate::batch::now_ms;
use crate::error::unexpected;
use crate::keys::{decode, decode_queue, encode};
use crate::script::{ADOPT, COUNTS};

/// Members that a script looks at in one go.
const STRETCH: u64 = 1000;

pub(crate) async fn snapshot(store: &RedisStore) -> Result<Snapshot, StoreError> {
    let mut snapshot = Snapshot::default();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for key in store
        .connection
        .scan(&store.keys.pattern("index", "*"))
        .await?
    {
        let Some((realm, queue)) = store
            .keys
            .rest("index", &key)
            .and_then(|it| it.split_once(':'))
        else {
            continue;
        };
        let Some(name) = decode(realm).and_then(|realm| decode_queue(&realm, queue)) else {
            tracing::warn!(
                key,
                "a queue has a name that cannot be read and is left out"
            );
            continue;
        };
        let count = adopt(store, realm, queue).await?;
        *counts.entry(realm.to_owned()).or_default() += count;
        snapshot.queues.push((name, count));
    }
    snapshot.queues.sort_unstable();
    write_counts(store, counts).await?;
    snapshot.subscriptions = subscriptions(store).await?;
    Ok(snapshot)
}

/// Takes a queue into our books and gives its length.
async fn adopt(store: &RedisStore, realm: &str, queue: &str) -> Result<u64, StoreError> {
    let mut after = "0".to_owned();
    let mut total = 0;
    loop {
        let args = vec![
            Value::from(store.keys.prefix()),
            Value::from(realm),
            Value::from(queue),
            Value::from(after.as_str()),
            Value::from(STRETCH.to_string()),
            Value::from(now_ms().to_string()),
            Value::from(store.keep_expired_ms.to_string()),
        ];
        let answer = store.connection.run(&ADOPT, args, true).await?;
        let (found, last): (u64, String) = answer.convert().map_err(|_| unexpected())?;
        total += found;
        if found < STRETCH {
            return Ok(total);
        }
        after = last;
    }
}

async fn write_counts(store: &RedisStore, counts: BTreeMap<String, u64>) -> Result<(), StoreError> {
    let pairs = counts
        .into_iter()
        .flat_map(|(realm, count)| [realm, count.to_string()]);
    let prefix = Value::from(store.keys.prefix());
    let args = std::iter::once(prefix).chain(pairs.map(Value::from));
    let answer = store.connection.run(&COUNTS, args.collect(), true).await;
    answer.map(|_| ())
}

pub(crate) async fn count(store: &RedisStore, realm: &str) -> Result<u64, StoreError> {
    let args = vec![Value::from(store.keys.counts()), Value::from(encode(realm))];
    let answer = store.connection.read("HGET", args).await?;
    let count: Option<i64> = answer.convert().map_err(|_| unexpected())?;
    Ok(count
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or(0))
}

async fn subscriptions(store: &RedisStore) -> Result<Vec<DurableSubscription>, StoreError> {
    let mut found = Vec::new();
    for key in store
        .connection
        .scan(&store.keys.pattern("subscriptions", "*"))
        .await?
    {
        let Some(realm) = store.keys.rest("subscriptions", &key).and_then(decode) else {
            continue;
        };
        let answer = store
            .connection
            .read("HGETALL", vec![Value::from(key)])
            .await?;
        let fields: BTreeMap<String, String> = answer.convert().map_err(|_| unexpected())?;
        for (field, value) in fields {
            match subscription(&realm, &field, &value) {
                Some(subscription) => found.push(subscription),
                None => tracing::warn!(
                    realm,
                    "a durable subscription cannot be read and is left out"
                ),
            }
        }
    }
    Ok(found)
}

fn subscription(realm: &str, field: &str, value: &str) -> Option<DurableSubscription> {
    let (queue, name) = field.rsplit_once(':')?;
    let (since, spec) = value.split_once(' ')?;
    Some(DurableSubscription {
        queue: decode_queue(realm, queue)?,
        consumer_name: decode(name)?.into(),
        spec: decode_spec(spec)?,
        offline_since_ms: since.parse().ok(),
    })
}
