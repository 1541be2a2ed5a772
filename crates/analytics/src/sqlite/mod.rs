//! The store of analytics in an SQLite file of its own. All SQL of this crate is in this module.
//!
//! ```text
//!  name(id, text)                     names, each once; keys are numbers of them
//!  tier_0 … tier_4(hour, cube, key, data)  an hour of a key: sums, sketches, and its minutes packed (crate::cell)
//!  day_row(day, cube, key, data)      the same of a day, without minutes, for long ranges; the present day's grows by the hour
//!  hour_callers, day_callers          estimates of unique callers
//!  batch, gateway, gap                which batches came, how far each gateway is, what is missing
//!  document                           alert rules, boards, reports
//! ```
//!
//! Rows move to the next tier when they have come to an age at which they become smaller. They are appended there, and
//! whole pages become free at their old places: rows that shrink in their place would leave gaps that no one can use.
//!
//! There are two connections: one writes, one reads. With a write-ahead log neither waits for the other.

mod anonymise;
mod documents;
mod ingest;
mod ledger;
mod names;
mod read;
mod retain;

pub use documents::{Document, InsertResult, RemoveResult};

use crate::batch::Batch;
use crate::query::{Query, QueryResponse};
use crate::retention::{Retention, TIERS};
use crate::store::{AnalyticsStore, IngestResult, Renames, RetentionStats, StoreError};
use crate::varint::DecodeError;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The form of the tables. A file of a later form is refused.
const FORM: i64 = 2;
/// How long a connection waits for another process.
const BUSY: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS day_row (
    day INTEGER NOT NULL, cube INTEGER NOT NULL, key BLOB NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (day, cube, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hour_callers (
    hour INTEGER NOT NULL, environment INTEGER NOT NULL, service INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (hour, environment, service)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS day_callers (
    day INTEGER NOT NULL, environment INTEGER NOT NULL, service INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (day, environment, service)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch (
    gateway TEXT NOT NULL, run INTEGER NOT NULL, number INTEGER NOT NULL, hash INTEGER NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (gateway, run, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gateway (
    name TEXT PRIMARY KEY, run INTEGER NOT NULL, complete INTEGER NOT NULL, closed INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gap (
    gateway TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (gateway, first, last, reason)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS document (
    kind TEXT NOT NULL, id TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
";

/// Of a file of the first form, which summed up whole days only. Does nothing to others.
const UPGRADE: &str = "
BEGIN IMMEDIATE;
INSERT OR IGNORE INTO meta SELECT 'rolled_hours', value * 24 FROM meta WHERE key = 'rolled_days';
DELETE FROM meta WHERE key = 'rolled_days';
COMMIT;
";

/// The store.
pub struct SqliteAnalytics {
    writer: Mutex<Writer>,
    reader: Mutex<Connection>,
    retention: Retention,
}

/// The connection that writes, and the names that it knows.
struct Writer {
    connection: Connection,
    names: names::NameCache,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error.to_string())
    }
}

impl From<DecodeError> for StoreError {
    fn from(error: DecodeError) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl SqliteAnalytics {
    /// Opens a file, which is created if it is missing. Only its owner may read it.
    ///
    /// # Errors
    /// It cannot be opened, or is of a later form.
    pub fn open(path: &Path, retention: Retention) -> Result<Self, StoreError> {
        let failed = |error: std::io::Error| StoreError::Engine(format!("{}: {error}", path.display()));
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(failed)?;
        }
        // A file that is there is never opened: to close it would end the locks of this process's connections.
        let mut file = fs::OpenOptions::new();
        match file.create_new(true).write(true).mode(0o600).open(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let writer = Connection::open(path)?;
        writer.busy_timeout(BUSY)?;
        // Before the first table: then deleted rows give their space back.
        writer.execute_batch(
            "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
        )?;
        let form: i64 = writer.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if form > FORM {
            let reason = format!(
                "{} was written by a later version of Weir (format {form})",
                path.display()
            );
            return Err(StoreError::Engine(reason));
        }
        writer.execute_batch(SCHEMA)?;
        for tier in 0..TIERS {
            writer.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS tier_{tier} (
                    hour INTEGER NOT NULL, cube INTEGER NOT NULL, key BLOB NOT NULL, data BLOB NOT NULL,
                    PRIMARY KEY (hour, cube, key)) WITHOUT ROWID;"
            ))?;
        }
        writer.execute_batch(UPGRADE)?;
        writer.pragma_update(None, "user_version", FORM)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(path, flags)?;
        reader.busy_timeout(BUSY)?;
        Ok(Self {
            writer: Mutex::new(Writer {
                connection: writer,
                names: names::NameCache::default(),
            }),
            reader: Mutex::new(reader),
            retention,
        })
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        // A transaction that did not come to its end was rolled back.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long what is kept.
    pub fn retention(&self) -> &Retention {
        &self.retention
    }
}

impl AnalyticsStore for SqliteAnalytics {
    fn ingest(&self, batch: &Batch, now: u64) -> Result<IngestResult, StoreError> {
        let mut writer = self.writer();
        let ingested = ingest::ingest(&mut writer, batch, now);
        if ingested.is_err() {
            // Names of a transaction that was rolled back have no numbers.
            writer.names = names::NameCache::default();
        }
        ingested
    }

    fn query(&self, query: &Query, now: u64) -> Result<QueryResponse, StoreError> {
        read::query(&self.reader(), query, &self.retention, now)
    }

    fn anonymise(&self, renamed: &Renames) -> Result<u64, StoreError> {
        self.rename_callers(renamed)
    }

    fn retain(&self, retention: &Retention, now: u64) -> Result<RetentionStats, StoreError> {
        let mut retained = RetentionStats::default();
        loop {
            let mut writer = self.writer();
            // Names may be gone after it.
            writer.names = names::NameCache::default();
            if retain::retain(&mut writer.connection, retention, now, &mut retained)? {
                return Ok(retained);
            }
            drop(writer);
            std::thread::yield_now();
        }
    }
}

/// A number of the table of numbers.
fn meta(connection: &Connection, key: &str) -> Result<Option<u64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    let mut rows = statement.query([key])?;
    match rows.next()? {
        Some(row) => Ok(Some(row.get::<_, i64>(0)? as u64)),
        None => Ok(None),
    }
}

fn set_meta(connection: &Connection, key: &str, value: u64) -> Result<(), StoreError> {
    let mut statement =
        connection.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?;
    statement.execute((key, value as i64))?;
    Ok(())
}

/// Which tier the rows of an hour lie in: by the first hour that has not moved on from each.
#[derive(Debug, Clone, Copy)]
struct Tiers([u64; TIERS - 1]);

impl Tiers {
    fn of(connection: &Connection) -> Result<Self, StoreError> {
        let mut tiers = Self([0; TIERS - 1]);
        for (tier, first) in tiers.0.iter_mut().enumerate() {
            *first = meta(connection, &retain::moved(tier))?.unwrap_or(0);
        }
        Ok(tiers)
    }

    fn tier(self, hour: u64) -> usize {
        self.0.iter().take_while(|first| hour < **first).count()
    }
}
