//! Names and their numbers in the file, and keys, which are made of these numbers.

use crate::store::StoreError;
use crate::varint::{self, Reader};
use foldhash::HashMap;
use rusqlite::Connection;

/// Names that are kept in memory.
const MAX_KNOWN: usize = 100_000;

/// Numbers of names that were asked for.
#[derive(Default)]
pub struct NameCache(HashMap<String, u64>);

impl NameCache {
    /// The number of a name, which is stored if it is new.
    pub fn number(&mut self, connection: &Connection, name: &str) -> Result<u64, StoreError> {
        if let Some(number) = self.0.get(name) {
            return Ok(*number);
        }
        let number = match find(connection, name)? {
            Some(number) => number,
            None => {
                let mut insert = connection.prepare_cached("INSERT INTO name (text) VALUES (?1)")?;
                insert.insert([name])? as u64
            }
        };
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        self.0.insert(name.to_owned(), number);
        Ok(number)
    }
}

/// The number of a name; `None`: it is not stored.
pub fn find(connection: &Connection, name: &str) -> Result<Option<u64>, StoreError> {
    let mut select = connection.prepare_cached("SELECT id FROM name WHERE text = ?1")?;
    let mut rows = select.query([name])?;
    match rows.next()? {
        Some(row) => Ok(Some(row.get::<_, i64>(0)? as u64)),
        None => Ok(None),
    }
}

/// The name of a number.
pub fn text(connection: &Connection, number: u64) -> Result<String, StoreError> {
    let mut select = connection.prepare_cached("SELECT text FROM name WHERE id = ?1")?;
    let mut rows = select.query([number as i64])?;
    match rows.next()? {
        Some(row) => Ok(row.get(0)?),
        None => Ok(String::new()),
    }
}

/// A key as it is stored.
pub fn encode(key: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    key.iter().for_each(|name| varint::put(&mut out, *name));
    out
}

/// Reads a stored key into `key`.
pub fn decode(bytes: &[u8], key: &mut Vec<u64>) -> Result<(), StoreError> {
    key.clear();
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        key.push(reader.number()?);
    }
    Ok(())
}
