//! How a transaction gets into the tables: documents, and the record of what was changed.

use super::tables::{fault, from_number, to_millis, to_number};
use crate::document::{Change, Document, Key, Revision, Transaction};
use crate::store::{Changes, StoreError};
use rusqlite::{OptionalExtension, Row, params};
use std::time::SystemTime;

/// Writes its changes and their record.
pub fn write(
    begun: &rusqlite::Transaction<'_>,
    transaction: Transaction,
    revision: Revision,
) -> Result<Changes, StoreError> {
    begun
        .prepare_cached("INSERT INTO commits (revision, time, author, note) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut statement| {
            let time = to_millis(transaction.time);
            statement.execute(params![
                to_number(revision),
                time,
                transaction.author,
                transaction.note
            ])
        })
        .map_err(fault)?;
    let mut changes = transaction.changes;
    changes.sort_by(|one, other| one.key().cmp(other.key()));
    let mut documents = Vec::with_capacity(changes.len());
    for change in changes {
        documents.extend(write_one(begun, change, revision)?);
    }
    Ok(Changes { revision, documents })
}

/// Writes a change and its record. `None`: there was nothing to remove.
fn write_one(
    begun: &rusqlite::Transaction<'_>,
    change: Change,
    revision: Revision,
) -> Result<Option<(Key, Option<Document>)>, StoreError> {
    let key = change.key().clone();
    let old = begun
        .prepare_cached("SELECT value, created FROM documents WHERE key = ?1")
        .and_then(|mut statement| {
            let row = |row: &Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?));
            statement.query_row([key.as_str()], row).optional()
        })
        .map_err(fault)?;
    let new = match change {
        Change::Put {
            value, time_to_live, ..
        } => {
            let created = old
                .as_ref()
                .map_or(revision, |(_, created)| from_number(*created));
            let ends = time_to_live.map(|time| to_millis(SystemTime::now() + time));
            let row = params![
                key.as_str(),
                &value[..],
                to_number(created),
                to_number(revision),
                ends
            ];
            begun
                .prepare_cached(
                    "INSERT INTO documents (key, value, created, modified, ends) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (key) DO UPDATE SET value = ?2, modified = ?4, ends = ?5",
                )
                .and_then(|mut statement| statement.execute(row))
                .map_err(fault)?;
            Some(Document {
                key: key.clone(),
                value,
                created,
                modified: revision,
            })
        }
        Change::Delete { .. } if old.is_none() => return Ok(None),
        Change::Delete { .. } => {
            begun
                .prepare_cached("DELETE FROM documents WHERE key = ?1")
                .and_then(|mut statement| statement.execute([key.as_str()]))
                .map_err(fault)?;
            None
        }
    };
    let record = params![
        to_number(revision),
        key.as_str(),
        new.as_ref().map(|new| to_number(new.created)),
        old.map(|(value, _)| value),
        new.as_ref().map(|new| &new.value[..]),
    ];
    begun
        .prepare_cached(
            "INSERT INTO changes (revision, key, created, before, after) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .and_then(|mut statement| statement.execute(record))
        .map_err(fault)?;
    Ok(Some((key, new)))
}
