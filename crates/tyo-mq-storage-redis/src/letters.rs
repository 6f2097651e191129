//! Dead letters: of a realm, of all realms, one by one.

use fred::types::Value;
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{DeadLetter, DeadLetterPage, Position, QueueKey, StoreError};
use tyo_mq_storage::decode_json_letter;

use crate::RedisStore;
use crate::batch::{Batch, position, score};
use crate::error::unexpected;
use crate::keys::{decode, encode};
use crate::queue::texts;
use crate::script::LETTERS;

/// Letters that a script looks at in one go.
const STRETCH: usize = 500;

/// Bytes of letters after which a script stops.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

pub(crate) async fn page(
    store: &RedisStore,
    realm: Option<&str>,
    after: Option<u64>,
    limit: usize,
) -> Result<DeadLetterPage, StoreError> {
    let after = Position(after.unwrap_or(0));
    let realms = match realm {
        Some(realm) => vec![encode(realm)],
        None => realms(store).await?,
    };
    let mut letters = Vec::new();
    for realm in realms {
        letters.extend(read(store, &realm, after, limit).await?);
    }
    letters.sort_by_key(|letter| letter.stored.position);
    let mut cut = limit.min(letters.len());
    // Letters of several realms that the reference gave one score stay together: a page cannot begin between them.
    while cut > 0
        && cut < letters.len()
        && letters[cut].stored.position == letters[cut - 1].stored.position
    {
        cut += 1;
    }
    let more = letters.len() > cut;
    letters.truncate(cut);
    let next = letters
        .last()
        .filter(|_| more)
        .map(|last| last.stored.position.0);
    Ok(DeadLetterPage { letters, next })
}

/// Encoded names of the realms that have letters.
async fn realms(store: &RedisStore) -> Result<Vec<String>, StoreError> {
    let keys = store
        .connection
        .scan(&store.keys.pattern("dlq", "*"))
        .await?;
    let names = keys.iter().filter_map(|key| store.keys.rest("dlq", key));
    // The letters themselves have a colon more.
    Ok(names
        .filter(|name| decode(name).is_some())
        .map(str::to_owned)
        .collect())
}

/// One more than `limit`, so that it shows whether there are more.
async fn read(
    store: &RedisStore,
    realm: &str,
    after: Position,
    limit: usize,
) -> Result<Vec<DeadLetter>, StoreError> {
    let (mut letters, mut after) = (Vec::new(), after);
    let name = decode(realm).unwrap_or_default();
    while letters.len() <= limit {
        let most = (limit - letters.len()).saturating_add(1).min(STRETCH);
        let args = vec![
            Value::from(store.keys.prefix()),
            Value::from(realm),
            Value::from(score(after)),
            Value::from(most.to_string()),
            Value::from(MAX_ANSWER_BYTES.to_string()),
        ];
        let mut fields = texts(store.connection.run(&LETTERS, args, true).await?)?.into_iter();
        let exhausted = fields.next().is_none_or(|it| it == "1");
        while let (Some(place), Some(text)) = (fields.next(), fields.next()) {
            after = position(&place).ok_or_else(unexpected)?;
            let letter = decode_json_letter(&text, after);
            // A text of another realm is none of this one's.
            letters.extend(letter.filter(|letter| *letter.stored.queue.realm == *name));
        }
        if exhausted {
            break;
        }
    }
    Ok(letters)
}

pub(crate) async fn show(
    store: &RedisStore,
    realm: Option<&str>,
    id: &MessageId,
) -> Result<Option<DeadLetter>, StoreError> {
    let found = find(store, realm, id).await?;
    Ok(found.map(|(letter, _)| letter))
}

/// The letter and its text.
async fn find(
    store: &RedisStore,
    realm: Option<&str>,
    id: &MessageId,
) -> Result<Option<(DeadLetter, String)>, StoreError> {
    let key = store.keys.letter(id.as_str());
    let answer = store.connection.read("GET", vec![Value::from(key)]).await?;
    let text: Option<String> = answer.convert().map_err(|_| unexpected())?;
    let Some(text) = text else {
        return Ok(None);
    };
    let letter = decode_json_letter(&text, Position(0));
    let wanted = letter.filter(|it| realm.is_none_or(|realm| *it.stored.queue.realm == *realm));
    Ok(wanted.map(|letter| (letter, text)))
}

pub(crate) async fn discard(
    store: &RedisStore,
    realm: Option<&str>,
    id: &MessageId,
) -> Result<bool, StoreError> {
    let Some((letter, _)) = find(store, realm, id).await? else {
        return Ok(false);
    };
    let mut batch = Batch::new(&store.keys, store.keep_expired_ms);
    batch.push_discard(&letter.stored.queue.realm, id.as_str());
    batch.run_one(&store.connection).await
}

pub(crate) async fn requeue(
    store: &RedisStore,
    realm: &str,
    id: &MessageId,
    expires_at_ms: Option<u64>,
    now_ms: u64,
) -> Result<Option<QueueKey>, StoreError> {
    let Some((letter, text)) = find(store, Some(realm), id).await? else {
        return Ok(None);
    };
    let mut stored = letter.stored;
    stored.id = id.clone();
    stored.attempts = 0;
    if stored.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        stored.expires_at_ms = expires_at_ms;
    }
    let mut batch = Batch::new(&store.keys, store.keep_expired_ms);
    batch.push_requeue(&stored, text);
    let done = batch.run_one(&store.connection).await?;
    Ok(done.then(|| (*stored.queue).clone()))
}
