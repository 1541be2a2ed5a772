//! Small documents beside the numbers: alert rules.

use super::SqliteAnalytics;
use crate::store::StoreError;

/// A document: its id and its JSON.
pub type Document = (String, String);

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

    /// Stores a document, in place of one of the same kind and id.
    ///
    /// # Errors
    /// The engine failed.
    pub fn put_document(&self, kind: &str, id: &str, json: &str) -> Result<(), StoreError> {
        let writer = self.writer();
        let mut put = writer
            .connection
            .prepare_cached("INSERT OR REPLACE INTO document (kind, id, json) VALUES (?1, ?2, ?3)")?;
        put.execute((kind, id, json))?;
        Ok(())
    }

    /// Removes a document. Says whether there was one.
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
