//! Queries: pages of a queue, dead letters, what is kept at the start. Takes rows of the reference as they come.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tyo_mq_core::MessageId;
use tyo_mq_core::store::{
    DeadLetter, DeadLetterPage, DurableSubscription, Position, QueueKey, Snapshot, StoreReply,
    StoreResult, StoredMessage,
};
use tyo_mq_storage::{MessageRow, RowReader, decode_spec, parse_iso8601};

use crate::error::store_error;

const PAGE: &str = "SELECT rowid, id, payload, producer, created_at, expires_at, produced, attempts, body, attachments
    FROM messages INDEXED BY idx_messages_order
    WHERE realm = ?1 AND event = ?2 AND consumer = ?3 AND rowid > ?4 ORDER BY rowid LIMIT ?5";

macro_rules! letters {
    ($rest:literal) => {
        concat!(
            "SELECT rowid, id, payload, producer, created_at, expires_at, produced, attempts, body, attachments,
            realm, event, consumer, reason, dead_lettered_at FROM dlq ",
            $rest
        )
    };
}

pub(crate) fn page(
    conn: &Connection,
    queue: Arc<QueueKey>,
    after: Position,
    limit: usize,
    max_bytes: usize,
) -> StoreResult {
    read_page(conn, &queue, after, limit, max_bytes).map_err(store_error)
}

fn read_page(
    conn: &Connection,
    queue: &Arc<QueueKey>,
    after: Position,
    limit: usize,
    max_bytes: usize,
) -> rusqlite::Result<StoreReply> {
    let mut statement = conn.prepare_cached(PAGE)?;
    let after = signed(after.0);
    let most = one_more(limit);
    let mut rows = statement.query(params![
        &*queue.realm,
        &*queue.key,
        &*queue.consumer,
        after,
        most
    ])?;
    let mut reader = RowReader::default();
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while messages.len() < limit && bytes < max_bytes {
        let Some(row) = rows.next()? else {
            return Ok(StoreReply::Page {
                messages,
                exhausted: true,
            });
        };
        let stored = stored_message(row, queue, &mut reader)?;
        bytes += stored.message.size();
        messages.push(stored);
    }
    let exhausted = rows.next()?.is_none();
    Ok(StoreReply::Page {
        messages,
        exhausted,
    })
}

pub(crate) fn dead_letters(
    conn: &Connection,
    realm: Option<&str>,
    after: Option<u64>,
    limit: usize,
) -> rusqlite::Result<DeadLetterPage> {
    let after = after.map_or(-1, signed);
    let most = one_more(limit);
    let mut statement;
    let mut rows = match realm {
        Some(realm) => {
            statement = conn.prepare_cached(letters!(
                "WHERE realm = ?1 AND rowid > ?2 ORDER BY rowid LIMIT ?3"
            ))?;
            statement.query(params![realm, after, most])?
        }
        None => {
            statement =
                conn.prepare_cached(letters!("WHERE rowid > ?1 ORDER BY rowid LIMIT ?2"))?;
            statement.query(params![after, most])?
        }
    };
    let mut page = DeadLetterPage::default();
    while page.letters.len() < limit {
        let Some(row) = rows.next()? else {
            return Ok(page);
        };
        page.letters.push(letter(row)?);
    }
    if rows.next()?.is_some() {
        page.next = page.letters.last().map(|last| last.stored.position.0);
    }
    Ok(page)
}

pub(crate) fn dead_letter(
    conn: &Connection,
    realm: Option<&str>,
    id: &str,
) -> rusqlite::Result<Option<DeadLetter>> {
    conn.prepare_cached(letters!("WHERE id = ?1 AND (?2 IS NULL OR realm = ?2)"))?
        .query_row(params![id, realm], letter)
        .optional()
}

pub(crate) fn snapshot(conn: &Connection) -> rusqlite::Result<Snapshot> {
    let mut snapshot = Snapshot::default();
    let mut statement = conn.prepare(
        "SELECT realm, event, consumer, consumer_name, spec, offline_since_ms FROM durable_subscriptions ORDER BY rowid",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(spec) = decode_spec(&text(row, 4)?) else {
            tracing::warn!("a durable subscription cannot be read and is left out");
            continue;
        };
        snapshot.subscriptions.push(DurableSubscription {
            queue: queue_key(row, 0)?,
            consumer_name: text(row, 3)?.into(),
            spec,
            offline_since_ms: moment(row, 5)?,
        });
    }
    let mut statement = conn.prepare(
        "SELECT realm, event, consumer, COUNT(*) FROM messages GROUP BY realm, event, consumer ORDER BY realm, event, consumer",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let count: i64 = row.get(3)?;
        snapshot
            .queues
            .push((queue_key(row, 0)?, count.unsigned_abs()));
    }
    Ok(snapshot)
}

fn letter(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    let queue = Arc::new(queue_key(row, 10)?);
    Ok(DeadLetter {
        stored: stored_message(row, &queue, &mut RowReader::default())?,
        reason: optional_text(row, 13)?.unwrap_or_default().into_owned(),
        dead_lettered_at_ms: parse_iso8601(&text(row, 14)?).unwrap_or_default(),
    })
}

fn stored_message(
    row: &Row<'_>,
    queue: &Arc<QueueKey>,
    reader: &mut RowReader,
) -> rusqlite::Result<StoredMessage> {
    let position: i64 = row.get(0)?;
    let (payload, producer, produced) = (
        text(row, 2)?,
        optional_text(row, 3)?,
        optional_text(row, 6)?,
    );
    let message = reader.read(&MessageRow {
        key: &queue.key,
        payload: &payload,
        producer: producer.as_deref(),
        produced: produced.as_deref(),
        body: blob(row, 8)?,
        attachments: blob(row, 9)?,
    });
    Ok(StoredMessage {
        id: MessageId::from(&*text(row, 1)?),
        queue: queue.clone(),
        message: Arc::new(message),
        created_at_ms: parse_iso8601(&text(row, 4)?).unwrap_or_default(),
        expires_at_ms: moment(row, 5)?,
        attempts: row
            .get::<_, Option<i64>>(7)?
            .map_or(0, |attempts| u32::try_from(attempts).unwrap_or(u32::MAX)),
        position: Position(position.unsigned_abs()),
    })
}

fn queue_key(row: &Row<'_>, first: usize) -> rusqlite::Result<QueueKey> {
    Ok(QueueKey {
        realm: text(row, first)?.into(),
        key: text(row, first + 1)?.into(),
        consumer: text(row, first + 2)?.into(),
    })
}

/// A text, its faulty bytes replaced; empty when the column holds something else.
fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cow<'a, str>> {
    Ok(optional_text(row, column)?.unwrap_or_default())
}

fn optional_text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Option<Cow<'a, str>>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    })
}

fn blob<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Option<&'a [u8]>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    })
}

/// Milliseconds since 1970. The reference writes fractions of them too.
fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(at_ms) => Some(u64::try_from(at_ms).unwrap_or(0)),
        // Out of range saturates.
        ValueRef::Real(at_ms) => Some(at_ms as u64),
        _ => None,
    })
}

/// A number for SQLite, whose integers have a sign.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}
