//! Small documents other than the numbers: alert rules, boards and reports.

use super::SqliteAnalytics;
use crate::store::StoreError;
use rusqlite::{Connection, OptionalExtension};

/// A document: its id and its JSON.
pub type Document = (String, String);

/// The outcome for a document that is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertResult {
    /// There was none of its kind and id.
    Made,
    /// It takes the place of another one.
    Replaced,
    /// There is one already, and it was to be a new one. Nothing is stored.
    Exists,
    /// There are as many as there may be. Nothing is stored.
    Full,
    /// What is there is not what was to be replaced. Nothing is stored.
    Changed,
}

/// The outcome for a document that is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveResult {
    /// It is gone.
    Removed,
    /// There was none.
    Missing,
    /// What is there is not what was to be removed. It stays.
    Changed,
}

impl SqliteAnalytics {
    /// All documents of a kind, by id.
    ///
    /// # Errors
    /// The engine failed.
    pub fn documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        let reader = self.reader();
        let mut select =
            reader.prepare_cached("SELECT id, json FROM document WHERE kind = ?1 ORDER BY id")?;
        let rows = select.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Stores a document, as a new one only or also in place of one with the same kind and id. Without its JSON, it
    /// only says what would happen to it. `may_replace` decides by what is there. It is one step: of two who make the
    /// same document at once, the second is refused.
    ///
    /// # Errors
    /// The engine failed.
    pub fn place_document(
        &self,
        (kind, id): (&str, &str),
        json: Option<&str>,
        (is_new, most): (bool, usize),
        may_replace: impl FnOnce(Option<&str>) -> bool,
    ) -> Result<InsertResult, StoreError> {
        let mut writer = self.writer();
        let transaction = writer.connection.transaction()?;
        let there = content(&transaction, kind, id)?;
        let is_known = there.is_some();
        let known: i64 =
            transaction.query_row("SELECT count(*) FROM document WHERE kind = ?1", [kind], |row| {
                row.get(0)
            })?;
        match (is_known, is_new) {
            (true, true) => return Ok(InsertResult::Exists),
            _ if !may_replace(there.as_deref()) => return Ok(InsertResult::Changed),
            (false, _) if known as usize >= most => return Ok(InsertResult::Full),
            _ => {}
        }
        if let Some(json) = json {
            let put = "INSERT OR REPLACE INTO document (kind, id, json) VALUES (?1, ?2, ?3)";
            transaction.execute(put, (kind, id, json))?;
        }
        transaction.commit()?;
        Ok(if is_known {
            InsertResult::Replaced
        } else {
            InsertResult::Made
        })
    }

    /// Removes a document, if `may_remove` says so of what is there, in one step. `is_dry`: only says what would become of it.
    ///
    /// # Errors
    /// The engine failed.
    pub fn remove_document(
        &self,
        (kind, id): (&str, &str),
        is_dry: bool,
        may_remove: impl FnOnce(&str) -> bool,
    ) -> Result<RemoveResult, StoreError> {
        let mut writer = self.writer();
        let transaction = writer.connection.transaction()?;
        match content(&transaction, kind, id)? {
            None => return Ok(RemoveResult::Missing),
            Some(there) if !may_remove(&there) => return Ok(RemoveResult::Changed),
            Some(_) if is_dry => return Ok(RemoveResult::Removed),
            Some(_) => {}
        }
        transaction.execute("DELETE FROM document WHERE kind = ?1 AND id = ?2", (kind, id))?;
        transaction.commit()?;
        Ok(RemoveResult::Removed)
    }
}

/// The JSON of a document; `None`: there is none.
fn content(connection: &Connection, kind: &str, id: &str) -> Result<Option<String>, StoreError> {
    let mut select = connection.prepare_cached("SELECT json FROM document WHERE kind = ?1 AND id = ?2")?;
    Ok(select.query_row((kind, id), |row| row.get(0)).optional()?)
}
