//! The file of a SQLite store: its tables, their version, and how revisions and times stand in them.

use super::write::write;
use super::{Durability, Options};
use crate::document::{Change, Document, HistoryEntry, Key, Revision, Transaction};
use crate::store::{Changes, CommitError, StoreError, WatchError};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, TransactionBehavior, ffi, params};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The version of the tables, for later ones that find them.
const VERSION: i64 = 1;
/// `weir`, by which `file` and others may know the file.
const APPLICATION: i64 = 0x7765_6972;
/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(10);
/// Between two tries where SQLite does not wait by itself.
const AGAIN: Duration = Duration::from_millis(5);
const TABLES: &str = "
    CREATE TABLE documents (
        key TEXT PRIMARY KEY,
        value BLOB NOT NULL,
        created INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        ends INTEGER
    ) STRICT;
    CREATE INDEX documents_that_end ON documents (ends) WHERE ends IS NOT NULL;
    CREATE TABLE commits (
        revision INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        author TEXT NOT NULL,
        note TEXT NOT NULL
    ) STRICT;
    CREATE TABLE changes (
        revision INTEGER NOT NULL,
        key TEXT NOT NULL,
        created INTEGER,
        before BLOB,
        after BLOB
    ) STRICT;
    CREATE UNIQUE INDEX changes_in_order ON changes (revision, key);
    CREATE TABLE compacted (revision INTEGER NOT NULL) STRICT;
    INSERT INTO compacted VALUES (0);
";
/// The newest revision. A compaction may have taken the last of the commits.
const NEWEST: &str = "SELECT coalesce((SELECT max(revision) FROM commits), (SELECT revision FROM compacted))";

/// The connection.
#[derive(Debug)]
pub struct Tables(Connection);

/// Times in the file are milliseconds since 1970.
pub fn to_millis(time: SystemTime) -> i64 {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    i64::try_from(millis).unwrap_or(i64::MAX)
}

fn from_millis(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.unsigned_abs())
}

pub fn from_number(number: i64) -> Revision {
    Revision(number.unsigned_abs())
}

/// Those that no number of SQLite can hold come after all.
pub fn to_number(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

pub fn fault(error: rusqlite::Error) -> StoreError {
    let text = error.to_string();
    let Some(cause) = error.sqlite_error() else {
        return StoreError::Failed(text);
    };
    match cause.code {
        ErrorCode::DiskFull => StoreError::Full(text),
        // The `-shm` file that processes share could not be made larger.
        _ if cause.extended_code == ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full(text),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Damaged(text),
        ErrorCode::CannotOpen
        | ErrorCode::SystemIoFailure
        | ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::PermissionDenied
        | ErrorCode::ReadOnly => StoreError::Unreachable(text),
        _ => StoreError::Failed(text),
    }
}

fn revision(connection: &Connection, query: &str) -> Result<Revision, StoreError> {
    let mut statement = connection.prepare_cached(query).map_err(fault)?;
    let number = statement.query_row([], |row| row.get(0)).map_err(fault)?;
    Ok(from_number(number))
}

fn newest(connection: &Connection) -> Result<Revision, StoreError> {
    revision(connection, NEWEST)
}

fn key(text: &str) -> Result<Key, StoreError> {
    Key::new(text).map_err(|error| StoreError::Damaged(error.to_string()))
}

impl Tables {
    pub fn open(path: &Path, options: Options) -> Result<Self, StoreError> {
        let mut connection = Connection::open(path).map_err(fault)?;
        connection.busy_timeout(BUSY).map_err(fault)?;
        let pragma = |name: &str, value: &str| connection.pragma_update(None, name, value).map_err(fault);
        // The first one to open a file changes it, for which others do not wait as they do otherwise.
        let begun = Instant::now();
        while let Err(error) = connection.pragma_update(None, "journal_mode", "WAL") {
            if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) || begun.elapsed() > BUSY {
                return Err(fault(error));
            }
            std::thread::sleep(AGAIN);
        }
        pragma(
            "synchronous",
            match options.durability {
                Durability::Process => "NORMAL",
                Durability::Power => "FULL",
            },
        )?;
        // The write-ahead log shrinks again after a large commit.
        pragma("journal_size_limit", "67108864")?;
        if let Some(bytes) = options.max_bytes {
            let page: i64 = connection
                .query_row("PRAGMA page_size", [], |row| row.get(0))
                .map_err(fault)?;
            let pages = bytes / page.unsigned_abs().max(1);
            pragma("max_page_count", &pages.max(1).to_string())?;
        }
        prepare(&mut connection)?;
        Ok(Self(connection))
    }

    /// The file's state; a number that changes with every commit of another connection, and means nothing else.
    pub fn version(&self) -> Result<i64, StoreError> {
        let mut statement = self.0.prepare_cached("PRAGMA data_version").map_err(fault)?;
        statement.query_row([], |row| row.get(0)).map_err(fault)
    }

    pub fn revision(&self) -> Result<Revision, StoreError> {
        newest(&self.0)
    }

    pub fn read(&mut self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        let snapshot = self.0.transaction().map_err(fault)?;
        let newest = newest(&snapshot)?;
        let mut statement = snapshot
            .prepare_cached(
                "SELECT key, value, created, modified FROM documents WHERE key >= ?1 ORDER BY key",
            )
            .map_err(fault)?;
        let mut rows = statement.query([prefix]).map_err(fault)?;
        let mut documents = Vec::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let text = row.get_ref(0).map_err(fault)?.as_str().unwrap_or_default();
            if !text.starts_with(prefix) {
                break;
            }
            documents.push(Document {
                key: key(text)?,
                value: blob(row, 1)?.unwrap_or_default(),
                created: from_number(row.get(2).map_err(fault)?),
                modified: from_number(row.get(3).map_err(fault)?),
            });
        }
        Ok((documents, newest))
    }

    /// Makes the changes, if the newest revision is the expected one.
    pub fn commit(&mut self, transaction: Transaction, expected: Revision) -> Result<Changes, CommitError> {
        let begun = self
            .0
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fault)?;
        let current = newest(&begun)?;
        if expected != current {
            return Err(CommitError::Conflict { current });
        }
        if transaction.changes.is_empty() {
            return Ok(Changes {
                revision: current,
                documents: Vec::new(),
            });
        }
        // What fails before the commit itself is rolled back.
        let changes = write(&begun, transaction, Revision(current.0 + 1))?;
        begun.commit().map_err(|error| match fault(error) {
            // The disk may or may not have it.
            error @ StoreError::Unreachable(_) => CommitError::Unknown(error),
            error => error.into(),
        })?;
        Ok(changes)
    }

    /// The commits after a revision, as far as they are below a prefix: whole commits until there are so many
    /// changes.
    pub fn changes_after(
        &mut self,
        after: Revision,
        prefix: &str,
        at_once: usize,
    ) -> Result<Vec<Changes>, WatchError> {
        let snapshot = self.0.transaction().map_err(fault)?;
        let compacted = revision(&snapshot, "SELECT revision FROM compacted")?;
        if after < compacted || after > newest(&snapshot)? {
            return Err(WatchError::Compacted);
        }
        let mut statement = snapshot
            .prepare_cached(
                "SELECT revision, key, created, after FROM commits LEFT JOIN changes USING (revision)
                 WHERE revision > ?1 ORDER BY revision, key",
            )
            .map_err(fault)?;
        let mut rows = statement.query([to_number(after)]).map_err(fault)?;
        let (mut commits, mut count) = (Vec::<Changes>::new(), 0);
        while let Some(row) = rows.next().map_err(fault)? {
            let revision = from_number(row.get(0).map_err(fault)?);
            if commits.last().is_none_or(|last| last.revision != revision) {
                if count >= at_once {
                    break;
                }
                commits.push(Changes {
                    revision,
                    documents: Vec::new(),
                });
            }
            count += 1;
            let text: Option<String> = row.get(1).map_err(fault)?;
            let (Some(text), Some(commit)) = (text.filter(|it| it.starts_with(prefix)), commits.last_mut())
            else {
                continue;
            };
            let key = key(&text)?;
            let created: Option<i64> = row.get(2).map_err(fault)?;
            let document = blob(row, 3)?.map(|value| Document {
                key: key.clone(),
                value,
                created: created.map_or(revision, from_number),
                modified: revision,
            });
            commit.documents.push((key, document));
        }
        Ok(commits)
    }

    pub fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        let mut statement = self
            .0
            .prepare_cached(
                "SELECT revision, time, author, note, key, before, after
                 FROM changes JOIN commits USING (revision)
                 WHERE revision < ?1 AND substr(key, 1, ?2) = ?3 AND revision >= (
                     SELECT min(revision) FROM (
                         SELECT revision FROM changes WHERE revision < ?1 AND substr(key, 1, ?2) = ?3
                         ORDER BY revision DESC LIMIT ?4))
                 ORDER BY revision DESC, key",
            )
            .map_err(fault)?;
        let before = before.map_or(i64::MAX, to_number);
        let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = statement
            .query(params![before, length, prefix, limit])
            .map_err(fault)?;
        let mut history = Vec::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let text: String = row.get(4).map_err(fault)?;
            history.push(HistoryEntry {
                revision: from_number(row.get(0).map_err(fault)?),
                time: from_millis(row.get(1).map_err(fault)?),
                author: row.get(2).map_err(fault)?,
                note: row.get(3).map_err(fault)?,
                key: key(&text)?,
                before: blob(row, 5)?,
                after: blob(row, 6)?,
            });
        }
        Ok(history)
    }

    /// Forgets the first commits, as far as they are all from before a time and at most so many. Returns the last that
    /// it forgot; `None`: there is nothing to forget.
    pub fn compact(&mut self, before: SystemTime, at_most: i64) -> Result<Option<Revision>, StoreError> {
        let begun = self
            .0
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fault)?;
        let one = |query: &str, arguments: &[i64]| -> Result<Option<i64>, StoreError> {
            let found = begun.query_row(query, rusqlite::params_from_iter(arguments), |row| row.get(0));
            found.optional().map_err(fault)
        };
        let Some(first) = one("SELECT revision FROM commits ORDER BY revision LIMIT 1", &[])? else {
            return Ok(None);
        };
        let left = "SELECT revision FROM commits WHERE time >= ?1 ORDER BY revision LIMIT 1";
        let last = match one(left, &[to_millis(before)])? {
            Some(left) => left - 1,
            None => to_number(newest(&begun)?),
        };
        if last < first {
            return Ok(None);
        }
        let last = last.min(first.saturating_add(at_most));
        let forget = [
            "DELETE FROM changes WHERE revision <= ?1",
            "DELETE FROM commits WHERE revision <= ?1",
            "UPDATE compacted SET revision = max(revision, ?1)",
        ];
        for statement in forget {
            begun.execute(statement, [last]).map_err(fault)?;
        }
        begun.commit().map_err(fault)?;
        Ok(Some(from_number(last)))
    }

    /// When the first document goes that does not stay.
    pub fn next_end(&self) -> Result<Option<SystemTime>, StoreError> {
        let mut statement = self
            .0
            .prepare_cached("SELECT min(ends) FROM documents WHERE ends IS NOT NULL")
            .map_err(fault)?;
        let end: Option<i64> = statement.query_row([], |row| row.get(0)).map_err(fault)?;
        Ok(end.map(from_millis))
    }

    /// Removes what was to stay until now at most.
    pub fn expire(&mut self, now: SystemTime) -> Result<(), StoreError> {
        let current = self.revision()?;
        let gone = self.ended(now).map_err(fault)?;
        let changes: Result<Vec<Change>, StoreError> = gone
            .iter()
            .map(|text| Ok(Change::Delete { key: key(text)? }))
            .collect();
        match self.commit(Transaction::expiry(now, changes?), current) {
            // A document may just have got more time: the next look shows it.
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(CommitError::Unknown(error) | CommitError::Store(error)) => Err(error),
        }
    }

    fn ended(&self, now: SystemTime) -> rusqlite::Result<Vec<String>> {
        let query = "SELECT key FROM documents WHERE ends <= ?1 ORDER BY key";
        let mut statement = self.0.prepare_cached(query)?;
        statement.query_map([to_millis(now)], |row| row.get(0))?.collect()
    }
}

fn blob(row: &Row<'_>, column: usize) -> Result<Option<std::sync::Arc<[u8]>>, StoreError> {
    let value = row.get_ref(column).map_err(fault)?;
    let bytes = value
        .as_blob_or_null()
        .map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok(bytes.map(Into::into))
}

/// Makes the tables in a new file, and refuses a file of another program.
fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    let begun = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fault)?;
    let number = |pragma: &str| -> Result<i64, StoreError> {
        begun
            .query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
            .map_err(fault)
    };
    let is_empty = number("schema_version")? == 0;
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if is_empty => {
            begun.execute_batch(TABLES).map_err(fault)?;
            begun
                .pragma_update(None, "application_id", APPLICATION)
                .map_err(fault)?;
            begun
                .pragma_update(None, "user_version", VERSION)
                .map_err(fault)?;
            begun.commit().map_err(fault)
        }
        (APPLICATION, VERSION) => Ok(()),
        (APPLICATION, newer) => Err(StoreError::Damaged(format!(
            "it has version {newer}, which this version of Weir does not know"
        ))),
        _ => Err(StoreError::Damaged("it is a file of another program".into())),
    }
}
