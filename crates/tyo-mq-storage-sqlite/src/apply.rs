//! What each operation changes, inside a transaction that the writer began.

use rusqlite::{CachedStatement, Connection, ErrorCode, params};
use tyo_mq_core::store::{
    DeadLetter, DurableSubscription, Position, QueueKey, StoreOp, StoreReply, StoredMessage,
};
use tyo_mq_storage::{EncodedMessage, encode_spec, write_iso8601};

use crate::read::signed;

/// An operation with its message encoded, so that the writer need not.
#[derive(Debug)]
pub(crate) struct WriteOp {
    pub(crate) op: StoreOp,
    content: Option<EncodedMessage>,
}

/// Row numbers: they only grow, also when the last rows go, since they are positions.
#[derive(Debug, Default)]
pub(crate) struct RowNumbers {
    message: i64,
    letter: i64,
}

/// The most expired messages that one operation takes; the next sweep takes the rest.
pub(crate) const MAX_PURGED: i64 = 100_000;

impl WriteOp {
    pub(crate) fn new(op: StoreOp) -> Self {
        let content = match &op {
            StoreOp::Enqueue(stored) => Some(EncodedMessage::new(&stored.message)),
            StoreOp::DeadLetter(letter) => Some(EncodedMessage::new(&letter.stored.message)),
            _ => None,
        };
        Self { op, content }
    }

    /// Bytes of the message that it carries.
    pub(crate) fn size(&self) -> usize {
        self.content
            .as_ref()
            .map_or(0, |it| it.payload.len() + it.attachments.len())
    }
}

impl RowNumbers {
    /// Moves on behind rows that something else may have written.
    pub(crate) fn catch_up(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let last = |sql| {
            conn.prepare_cached(sql)?
                .query_row([], |row| row.get::<_, Option<i64>>(0))
        };
        let message = last("SELECT MAX(rowid) FROM messages")?.unwrap_or(0);
        let letter = last("SELECT MAX(rowid) FROM dlq")?.unwrap_or(0);
        self.message = self.message.max(message);
        self.letter = self.letter.max(letter);
        Ok(())
    }

    fn next_message(&mut self) -> i64 {
        self.message = self.message.saturating_add(1);
        self.message
    }

    /// Gives the number before the first of `count` new ones.
    fn reserve_letters(&mut self, count: i64) -> i64 {
        let before = self.letter;
        self.letter = before.saturating_add(count);
        before
    }

    /// The position of a message that is gone again before it was written.
    pub(crate) fn skip_message(&mut self) -> StoreReply {
        StoreReply::Enqueued(position(self.next_message()))
    }
}

/// What nearly all operations need, found once for a transaction.
pub(crate) struct Statements<'c> {
    conn: &'c Connection,
    insert: CachedStatement<'c>,
    delete: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    pub(crate) fn new(conn: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            insert: conn.prepare_cached(INSERT_MESSAGE)?,
            delete: conn.prepare_cached("DELETE FROM messages WHERE id = ?1")?,
        })
    }

    /// Inserts a message, in place of one with its id.
    fn put_message(
        &mut self,
        number: i64,
        stored: &StoredMessage,
        content: &EncodedMessage,
    ) -> rusqlite::Result<()> {
        let inserted = insert_message(&mut self.insert, number, stored, content);
        if !inserted.as_ref().is_err_and(is_known) {
            return inserted;
        }
        self.delete.execute([stored.id.as_str()])?;
        insert_message(&mut self.insert, number, stored, content)
    }
}

/// Carries out one operation.
pub(crate) fn apply(
    statements: &mut Statements<'_>,
    numbers: &mut RowNumbers,
    write: &WriteOp,
) -> rusqlite::Result<StoreReply> {
    let conn = statements.conn;
    match (&write.op, &write.content) {
        (StoreOp::Enqueue(stored), Some(content)) => {
            let number = numbers.next_message();
            statements.put_message(number, stored, content)?;
            Ok(StoreReply::Enqueued(position(number)))
        }
        (StoreOp::Remove { id, .. }, _) => {
            statements.delete.execute([id.as_str()])?;
            Ok(StoreReply::Done)
        }
        (StoreOp::DeadLetter(letter), Some(content)) => {
            statements.delete.execute([letter.stored.id.as_str()])?;
            let number = numbers.reserve_letters(1).saturating_add(1);
            insert_letter(conn, number, letter, content)?;
            Ok(StoreReply::Done)
        }
        (
            StoreOp::PurgeExpired {
                realm,
                now_ms,
                to_dead_letters,
            },
            _,
        ) => purge_expired(conn, numbers, realm, *now_ms, *to_dead_letters),
        (
            StoreOp::Requeue {
                realm,
                id,
                expires_at_ms,
                now_ms,
            },
            _,
        ) => requeue(conn, numbers, realm, id.as_str(), *expires_at_ms, *now_ms),
        (op, _) => apply_plain(conn, op).map(|()| StoreReply::Done),
    }
}

/// Operations that answer nothing.
fn apply_plain(conn: &Connection, op: &StoreOp) -> rusqlite::Result<()> {
    match op {
        StoreOp::SetAttempts { id, attempts, .. } => {
            conn.prepare_cached("UPDATE messages SET attempts = ?2 WHERE id = ?1")?
                .execute(params![id.as_str(), attempts])?;
            Ok(())
        }
        StoreOp::PutSubscription(subscription) => put_subscription(conn, subscription),
        StoreOp::RemoveSubscription {
            queue,
            consumer_name,
        } => remove_subscription(conn, queue, consumer_name),
        StoreOp::PurgeRealm { realm } => purge_realm(conn, realm),
        StoreOp::RenameRealm { from, to } => rename_realm(conn, from, to),
        // Pages are read elsewhere, and the others come with more.
        StoreOp::Fetch { .. }
        | StoreOp::Remove { .. }
        | StoreOp::Enqueue(_)
        | StoreOp::DeadLetter(_)
        | StoreOp::PurgeExpired { .. }
        | StoreOp::Requeue { .. } => Ok(()),
    }
}

fn remove_subscription(
    conn: &Connection,
    queue: &QueueKey,
    consumer_name: &str,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "DELETE FROM durable_subscriptions WHERE realm = ?1 AND event = ?2 AND consumer = ?3 AND consumer_name = ?4",
    )?
    .execute(params![&*queue.realm, &*queue.key, &*queue.consumer, consumer_name])?;
    Ok(())
}

/// It replaces nothing: SQLite would keep a copy of each page that such a statement changes.
const INSERT_MESSAGE: &str = "INSERT INTO messages
    (rowid, id, realm, event, consumer, payload, producer, created_at, expires_at, produced, attempts, body, attachments)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// There is a row with this id.
fn is_known(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

fn insert_message(
    insert: &mut CachedStatement<'_>,
    number: i64,
    stored: &StoredMessage,
    content: &EncodedMessage,
) -> rusqlite::Result<()> {
    let queue = &*stored.queue;
    insert.execute(params![
        number,
        stored.id.as_str(),
        &*queue.realm,
        &*queue.key,
        &*queue.consumer,
        content.payload,
        &*stored.message.producer,
        iso8601(stored.created_at_ms),
        stored.expires_at_ms.map(signed),
        &*stored.message.event,
        attempts(stored),
        content.body.as_deref(),
        content.attachments,
    ])?;
    Ok(())
}

fn insert_letter(
    conn: &Connection,
    number: i64,
    letter: &DeadLetter,
    content: &EncodedMessage,
) -> rusqlite::Result<()> {
    let stored = &letter.stored;
    let queue = &*stored.queue;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO dlq
        (rowid, id, realm, event, consumer, payload, producer, created_at, expires_at, produced, attempts, body, attachments,
        reason, dead_lettered_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        number,
        stored.id.as_str(),
        &*queue.realm,
        &*queue.key,
        &*queue.consumer,
        content.payload,
        &*stored.message.producer,
        iso8601(stored.created_at_ms),
        stored.expires_at_ms.map(signed),
        &*stored.message.event,
        attempts(stored),
        content.body.as_deref(),
        content.attachments,
        letter.reason,
        iso8601(letter.dead_lettered_at_ms),
    ])?;
    Ok(())
}

fn put_subscription(conn: &Connection, subscription: &DurableSubscription) -> rusqlite::Result<()> {
    let queue = &subscription.queue;
    conn.prepare_cached(
        "INSERT INTO durable_subscriptions (realm, event, consumer, consumer_name, spec, offline_since_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT DO UPDATE SET spec = excluded.spec, offline_since_ms = excluded.offline_since_ms",
    )?
    .execute(params![
        &*queue.realm,
        &*queue.key,
        &*queue.consumer,
        &*subscription.consumer_name,
        encode_spec(&subscription.spec),
        subscription.offline_since_ms.map(signed),
    ])?;
    Ok(())
}

/// The rows that one sweep takes.
macro_rules! expired {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            "(SELECT rowid FROM messages WHERE realm = ?1 AND expires_at <= ?2 ORDER BY expires_at, rowid LIMIT ?3)",
            $after
        )
    };
}

fn purge_expired(
    conn: &Connection,
    numbers: &mut RowNumbers,
    realm: &str,
    now_ms: u64,
    to_dead_letters: bool,
) -> rusqlite::Result<StoreReply> {
    let bounds = params![realm, signed(now_ms), MAX_PURGED];
    let mut purged = Vec::new();
    let mut statement = conn.prepare_cached(expired!(
        "SELECT event, consumer, COUNT(*) FROM messages WHERE rowid IN ",
        " GROUP BY event, consumer ORDER BY event, consumer"
    ))?;
    let mut rows = statement.query(bounds)?;
    let mut total = 0;
    while let Some(row) = rows.next()? {
        let key = QueueKey {
            realm: realm.into(),
            key: row.get::<_, String>(0)?.into(),
            consumer: row.get::<_, String>(1)?.into(),
        };
        let count: i64 = row.get(2)?;
        total += count;
        purged.push((key, count.unsigned_abs()));
    }
    if total > 0 && to_dead_letters {
        let before = numbers.reserve_letters(total);
        conn.prepare_cached(expired!(
            "INSERT OR REPLACE INTO dlq
            (rowid, id, realm, event, consumer, payload, producer, created_at, expires_at, produced, attempts, body, attachments,
            reason, dead_lettered_at)
            SELECT ?4 + ROW_NUMBER() OVER (ORDER BY event, consumer, rowid),
            id, realm, event, consumer, payload, producer, created_at, expires_at, produced, attempts, body, attachments,
            'expired', ?5 FROM messages WHERE rowid IN ",
            ""
        ))?
        .execute(params![realm, signed(now_ms), MAX_PURGED, before, iso8601(now_ms)])?;
    }
    if total > 0 {
        conn.prepare_cached(expired!("DELETE FROM messages WHERE rowid IN ", ""))?
            .execute(bounds)?;
    }
    Ok(StoreReply::Purged(purged))
}

fn requeue(
    conn: &Connection,
    numbers: &mut RowNumbers,
    realm: &str,
    id: &str,
    expires_at_ms: Option<u64>,
    now_ms: u64,
) -> rusqlite::Result<StoreReply> {
    let mut statement = conn.prepare_cached(
        "INSERT OR REPLACE INTO messages
        (rowid, id, realm, event, consumer, payload, producer, created_at, expires_at, produced, attempts, body, attachments)
        SELECT ?3, id, realm, event, consumer, payload, producer, created_at,
        CASE WHEN expires_at <= ?5 THEN ?4 ELSE expires_at END, produced, NULL, body, attachments
        FROM dlq WHERE id = ?1 AND realm = ?2
        RETURNING event, consumer",
    )?;
    let number = numbers.next_message();
    let mut rows = statement.query(params![
        id,
        realm,
        number,
        expires_at_ms.map(signed),
        signed(now_ms)
    ])?;
    let Some(row) = rows.next()? else {
        return Ok(StoreReply::Requeued(None));
    };
    let key = QueueKey {
        realm: realm.into(),
        key: row.get::<_, String>(0)?.into(),
        consumer: row.get::<_, String>(1)?.into(),
    };
    // The statement is at its end before the next one begins.
    while rows.next()?.is_some() {}
    conn.prepare_cached("DELETE FROM dlq WHERE id = ?1")?
        .execute([id])?;
    Ok(StoreReply::Requeued(Some(key)))
}

fn purge_realm(conn: &Connection, realm: &str) -> rusqlite::Result<()> {
    for table in ["messages", "dlq", "durable_subscriptions"] {
        conn.prepare_cached(&format!("DELETE FROM {table} WHERE realm = ?1"))?
            .execute([realm])?;
    }
    Ok(())
}

fn rename_realm(conn: &Connection, from: &str, to: &str) -> rusqlite::Result<()> {
    for table in ["messages", "dlq", "durable_subscriptions"] {
        conn.prepare_cached(&format!(
            "UPDATE OR REPLACE {table} SET realm = ?2 WHERE realm = ?1"
        ))?
        .execute([from, to])?;
    }
    Ok(())
}

/// Most messages were never delivered; an empty column is cheaper than a zero.
fn attempts(stored: &StoredMessage) -> Option<u32> {
    (stored.attempts > 0).then_some(stored.attempts)
}

fn iso8601(epoch_ms: u64) -> String {
    let mut out = Vec::with_capacity(24);
    write_iso8601(&mut out, epoch_ms);
    String::from_utf8(out).expect("a time is ASCII")
}

fn position(number: i64) -> Position {
    Position(number.unsigned_abs())
}
