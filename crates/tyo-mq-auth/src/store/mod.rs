//! The auth store in an SQLite file: the reference's three tables, and three of ours besides, which it does not look at.
//!
//! Realms and tokens are rows of key and JSON. Calls block: a server makes them on a thread of its own.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use crate::audit::AuditEntry;
use crate::document::{RowChange, StoreRows, Table};
use crate::effect::Effect;
use crate::enrolment::{EnrolmentRequest, MAX_PENDING};
use crate::files;
use crate::nonce::{MAX_NONCES, UsedNonce};
use crate::secret::SecretHash;

/// The most audit entries kept; the oldest are deleted.
pub const MAX_AUDIT_ROWS: i64 = 100_000;

/// Why the store does not do what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthStoreError {
    /// The file cannot be made or protected.
    #[error("auth store file: {0}")]
    File(#[from] std::io::Error),
    /// SQLite failed.
    #[error("auth store: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A backup must not overwrite anything.
    #[error("the backup's file exists")]
    Exists,
    /// SQLite wants paths as text.
    #[error("the backup's path is no text")]
    Path,
}

/// The auth store.
#[derive(Debug)]
pub struct SqliteAuthStore {
    conn: Connection,
}

impl SqliteAuthStore {
    /// Opens the file, or makes it, readable by its owner only.
    ///
    /// # Errors
    /// When it cannot be opened or is no database.
    pub fn open(path: &Path) -> Result<Self, AuthStoreError> {
        files::create_private(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(LOCK_TIMEOUT)?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        // What was promised to a manager stays promised, power or no power. It is written rarely.
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.execute_batch(SCHEMA)?;
        Ok(Self { conn })
    }

    /// Reads all realms and tokens.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn load(&self) -> Result<StoreRows, AuthStoreError> {
        Ok(StoreRows {
            realms: self.pairs("SELECT name, config FROM realms ORDER BY rowid")?,
            tokens: self.pairs("SELECT token, entry FROM tokens ORDER BY rowid")?,
            management_tokens: self
                .pairs("SELECT token, entry FROM management_tokens ORDER BY rowid")?,
        })
    }

    /// Reads the nonces that were used and deletes those that are too old.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn load_nonces(&self, now_ms: u64) -> Result<Vec<UsedNonce>, AuthStoreError> {
        self.conn.execute(
            "DELETE FROM used_nonces WHERE expires_ms < ?1",
            [integer(now_ms)],
        )?;
        let mut statement = self.conn.prepare(
            "SELECT hash, expires_ms FROM used_nonces ORDER BY expires_ms DESC LIMIT ?1",
        )?;
        let rows = statement.query_map([MAX_NONCES as i64], |row| {
            let expires: i64 = row.get(1)?;
            Ok(UsedNonce {
                hash: SecretHash::from_bytes(row.get(0)?),
                expires_ms: expires.try_into().unwrap_or(0),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Reads the requests for admission that wait. What cannot be read is left out.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn load_requests(&self) -> Result<Vec<EnrolmentRequest>, AuthStoreError> {
        let mut statement = self
            .conn
            .prepare("SELECT request FROM authorization_requests ORDER BY rowid LIMIT ?1")?;
        let rows = statement.query_map([MAX_PENDING as i64], |row| row.get::<_, String>(0))?;
        let stored = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(stored
            .iter()
            .filter_map(|json| EnrolmentRequest::from_stored(json))
            .collect())
    }

    /// Writes rows, all or none.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn apply(&mut self, changes: &[RowChange]) -> Result<(), AuthStoreError> {
        let transaction = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for change in changes {
            match change {
                RowChange::Put { table, key, value } => {
                    transaction
                        .prepare_cached(put_sql(*table))?
                        .execute([key, value])?;
                }
                RowChange::Delete { table, key } => {
                    transaction
                        .prepare_cached(delete_sql(*table))?
                        .execute([key])?;
                }
                RowChange::Fields => {}
            }
        }
        Ok(transaction.commit()?)
    }

    /// Keeps a nonce. To be done before what it signed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember_nonce(&self, nonce: UsedNonce) -> Result<(), AuthStoreError> {
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO used_nonces (hash, expires_ms) VALUES (?1, ?2)",
            )?
            .execute(params![nonce.hash.as_bytes(), integer(nonce.expires_ms)])?;
        Ok(())
    }

    /// Carries out what is the store's to do of an effect; of others, nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn carry_out(&mut self, effect: &Effect) -> Result<(), AuthStoreError> {
        match effect {
            Effect::Persist(rows) => self.apply(rows),
            Effect::KeepRequest { id, json } => self.keep_request(id, json.expose()),
            Effect::DropRequest { id } => self.drop_request(id),
            Effect::Audit(entry) => self.append_audit(entry),
            Effect::Changed(_) | Effect::Notify { .. } | Effect::ClearRealm(_) => Ok(()),
        }
    }

    /// The latest audit entries as lines of JSON, the latest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn audit_trail(&self, limit: u32) -> Result<Vec<String>, AuthStoreError> {
        let mut statement = self
            .conn
            .prepare("SELECT entry FROM audit ORDER BY id DESC LIMIT ?1")?;
        let rows = statement.query_map([limit], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Copies the store to a file that is not there yet.
    ///
    /// # Errors
    /// When the file is there or cannot be written.
    pub fn backup(&self, path: &Path) -> Result<(), AuthStoreError> {
        if path.exists() {
            return Err(AuthStoreError::Exists);
        }
        let text = path.to_str().ok_or(AuthStoreError::Path)?;
        // An empty file is what VACUUM INTO accepts besides none, so that the copy is private from the beginning.
        files::create_private(path)?;
        self.conn.execute("VACUUM INTO ?1", [text])?;
        Ok(())
    }

    fn keep_request(&self, id: &str, json: &str) -> Result<(), AuthStoreError> {
        self.conn
            .prepare_cached(
                "INSERT INTO authorization_requests (id, request) VALUES (?1, ?2) \
                 ON CONFLICT (id) DO UPDATE SET request = excluded.request",
            )?
            .execute([id, json])?;
        Ok(())
    }

    fn drop_request(&self, id: &str) -> Result<(), AuthStoreError> {
        self.conn
            .prepare_cached("DELETE FROM authorization_requests WHERE id = ?1")?
            .execute([id])?;
        Ok(())
    }

    fn append_audit(&self, entry: &AuditEntry) -> Result<(), AuthStoreError> {
        self.conn
            .prepare_cached("INSERT INTO audit (entry) VALUES (?1)")?
            .execute([entry.to_json()])?;
        self.conn
            .prepare_cached("DELETE FROM audit WHERE id <= ?1")?
            .execute([self.conn.last_insert_rowid() - MAX_AUDIT_ROWS])?;
        Ok(())
    }

    fn pairs(&self, sql: &str) -> Result<Vec<(String, String)>, AuthStoreError> {
        let mut statement = self.conn.prepare(sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

const fn put_sql(table: Table) -> &'static str {
    match table {
        Table::Realms => {
            "INSERT INTO realms (name, config) VALUES (?1, ?2) \
             ON CONFLICT (name) DO UPDATE SET config = excluded.config"
        }
        Table::Tokens => {
            "INSERT INTO tokens (token, entry) VALUES (?1, ?2) \
             ON CONFLICT (token) DO UPDATE SET entry = excluded.entry"
        }
        Table::ManagementTokens => {
            "INSERT INTO management_tokens (token, entry) VALUES (?1, ?2) \
             ON CONFLICT (token) DO UPDATE SET entry = excluded.entry"
        }
    }
}

const fn delete_sql(table: Table) -> &'static str {
    match table {
        Table::Realms => "DELETE FROM realms WHERE name = ?1",
        Table::Tokens => "DELETE FROM tokens WHERE token = ?1",
        Table::ManagementTokens => "DELETE FROM management_tokens WHERE token = ?1",
    }
}

/// SQLite's integers are signed; times beyond them are as good as never.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS realms (name TEXT PRIMARY KEY, config TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (token TEXT PRIMARY KEY, entry TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS management_tokens (token TEXT PRIMARY KEY, entry TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS used_nonces (hash BLOB PRIMARY KEY, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS authorization_requests (id TEXT PRIMARY KEY, request TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL);
";
