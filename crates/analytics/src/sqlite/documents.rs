//! Small documents other than the numbers: alert rules, boards and reports.

use super::SqliteAnalytics;
use crate::store::StoreError;

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

    /// Stores a document, as a new one only or also in place of one with the same kind and id. Without its JSON, it only
    /// says what would happen to it. It is one step: of two who make the same document at once, the second is refused.
    ///
    /// # Errors
    /// The engine failed.
    pub fn place_document(
        &self,
        (kind, id): (&str, &str),
        json: Option<&str>,
        (is_new, most): (bool, usize),
    ) -> Result<InsertResult, StoreError> {
        let mut writer = self.writer();
        let transaction = writer.connection.transaction()?;
        let is_known: bool = transaction.query_row(
            "SELECT EXISTS (SELECT 1 FROM document WHERE kind = ?1 AND id = ?2)",
            (kind, id),
            |row| row.get(0),
        )?;
        let known: i64 =
            transaction.query_row("SELECT count(*) FROM document WHERE kind = ?1", [kind], |row| {
                row.get(0)
            })?;
        match (is_known, is_new) {
            (true, true) => return Ok(InsertResult::Exists),
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

    /// Removes a document. Returns whether there was one.
    ///
    /// # Errors
    /// The engine failed.
    pub fn remove_document(&self, kind: &str, id: &str) -> Result<bool, StoreError> {
        let writer = self.writer();
        let mut remove = writer
            .connection
            .prepare_cached("DELETE FROM document WHERE kind = ?1 AND id = ?2")?;
        Ok(remove.execute((kind, id))? > 0)
    }
}
