//! Opening the file: checks, the reference's tables, and what we add to them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use tracing::{info, warn};
use tyo_mq_core::store::StoreError;
use tyo_mq_storage::{Durability, SqliteConfig};

use crate::error::store_error;

/// The schema that this program writes, kept as `user_version`. The reference leaves it at 0.
pub(crate) const VERSION: i64 = 1;

/// How long the check at the start may take; of a larger file the rest goes unchecked.
const CHECK_BUDGET: Duration = Duration::from_secs(1);

/// Steps of SQLite's machine between two looks at the clock.
const CHECK_STEPS: i32 = 10_000;

/// Statements kept prepared by each connection.
const STATEMENTS: usize = 32;

/// Opens the connection that writes and makes the file ready.
pub(crate) fn open_writer(config: &SqliteConfig) -> Result<Connection, StoreError> {
    make_private(&config.path);
    let mut conn = connect(
        &config.path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    )
    .map_err(store_error)?;
    conn.busy_timeout(config.lock_timeout)
        .map_err(store_error)?;
    refuse_newer(&conn)?;
    check(&conn)?;
    prepare(&mut conn, config).map_err(store_error)?;
    Ok(conn)
}

/// Opens a connection that reads.
pub(crate) fn open_reader(config: &SqliteConfig) -> rusqlite::Result<Connection> {
    let conn = connect(&config.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.busy_timeout(config.lock_timeout)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// Makes an empty file that its owner alone can read, unless there is one: messages may be confidential, and SQLite would
/// let everybody read. It gives its log the same rights. What cannot be made here SQLite reports.
fn make_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

fn refuse_newer(conn: &Connection) -> Result<(), StoreError> {
    let version: i64 = conn
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(store_error)?;
    if version > VERSION {
        let told = format!("the file has schema {version}, this program knows {VERSION}");
        return Err(StoreError::NewerVersion(told));
    }
    Ok(())
}

/// Looks for damage as far as the time allows.
fn check(conn: &Connection) -> Result<(), StoreError> {
    let began = Instant::now();
    let over = move || began.elapsed() > CHECK_BUDGET;
    conn.progress_handler(CHECK_STEPS, Some(over))
        .map_err(store_error)?;
    let found = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    conn.progress_handler(0, None::<fn() -> bool>)
        .map_err(store_error)?;
    match found {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => Err(StoreError::Damaged(found)),
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) =>
        {
            info!(budget = ?CHECK_BUDGET, "only part of the database file was checked");
            Ok(())
        }
        Err(error) => Err(store_error(error)),
    }
}

fn prepare(conn: &mut Connection, config: &SqliteConfig) -> rusqlite::Result<()> {
    let mode: String =
        conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        warn!(
            mode,
            "the database file has no write-ahead log: reading and writing wait for each other"
        );
    }
    let synchronous = match config.durability {
        Durability::Normal => "normal",
        Durability::Full => "full",
    };
    conn.pragma_update(None, "synchronous", synchronous)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "cache_size", CACHE_KIB)?;
    if let Some(max_bytes) = config.max_bytes {
        limit_size(conn, max_bytes)?;
    }
    let transaction = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLES)?;
    for table in ["messages", "dlq"] {
        add_columns(&transaction, table)?;
    }
    transaction.execute_batch(INDEXES)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

fn limit_size(conn: &Connection, max_bytes: u64) -> rusqlite::Result<()> {
    let page_size: u32 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = max_bytes / u64::from(page_size.max(1));
    let pages = u32::try_from(pages)
        .unwrap_or(MAX_PAGES)
        .clamp(1, MAX_PAGES);
    conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
}

/// The most pages that SQLite can number.
const MAX_PAGES: u32 = 0xffff_fffe;

/// Page cache of the writer; negative is KiB.
const CACHE_KIB: i64 = -16_384;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS messages (
    id TEXT PRIMARY KEY, realm TEXT NOT NULL, event TEXT NOT NULL, consumer TEXT NOT NULL, payload TEXT NOT NULL,
    producer TEXT, created_at TEXT NOT NULL, expires_at INTEGER);
CREATE TABLE IF NOT EXISTS dlq (
    id TEXT PRIMARY KEY, realm TEXT NOT NULL, event TEXT NOT NULL, consumer TEXT NOT NULL, payload TEXT NOT NULL,
    producer TEXT, created_at TEXT NOT NULL, expires_at INTEGER, reason TEXT, dead_lettered_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS durable_subscriptions (
    realm TEXT NOT NULL, event TEXT NOT NULL, consumer TEXT NOT NULL, consumer_name TEXT NOT NULL, spec TEXT NOT NULL,
    offline_since_ms INTEGER, PRIMARY KEY (realm, event, consumer, consumer_name));
";

/// The reference's own index does not give rows in order. It makes it again when it opens the file.
const INDEXES: &str = "
DROP INDEX IF EXISTS idx_messages_delivery;
CREATE INDEX IF NOT EXISTS idx_messages_order ON messages (realm, event, consumer);
CREATE INDEX IF NOT EXISTS idx_messages_expiry ON messages (realm, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_dlq_realm ON dlq (realm, dead_lettered_at);
CREATE INDEX IF NOT EXISTS idx_dlq_order ON dlq (realm);
";

/// Nullable columns that the reference does not know: the event as produced, deliveries, and what JSON cannot hold.
const COLUMNS: [(&str, &str); 4] = [
    ("produced", "TEXT"),
    ("attempts", "INTEGER"),
    ("body", "BLOB"),
    ("attachments", "BLOB"),
];

fn add_columns(conn: &Connection, table: &str) -> rusqlite::Result<()> {
    for (column, kind) in COLUMNS {
        if !conn.column_exists(None, table, column)? {
            conn.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} {kind}"))?;
        }
    }
    Ok(())
}

/// Writes a copy beside the target, then puts it in its place.
pub(crate) fn copy_to(conn: &Connection, to: &Path) -> Result<(), StoreError> {
    let part = part_of(to);
    let failed = |error: std::io::Error| StoreError::Unavailable(format!("backup: {error}"));
    if let Err(error) = std::fs::remove_file(&part)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(failed(error));
    }
    let name = part
        .to_str()
        .ok_or_else(|| StoreError::Unavailable("backup: the path is no text".to_owned()))?;
    make_private(&part);
    conn.pragma_update(None, "query_only", false)
        .map_err(store_error)?;
    let copied = conn.execute("VACUUM INTO ?1", [name]);
    conn.pragma_update(None, "query_only", true)
        .map_err(store_error)?;
    copied.map_err(store_error)?;
    std::fs::File::open(&part)
        .and_then(|file| file.sync_all())
        .map_err(failed)?;
    std::fs::rename(&part, to).map_err(failed)
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".part");
    name.into()
}
