//! Making callers nameless: their consumers and applications get another name in every row, which leads to no one. Counts
//! stay, so sums over all callers are what they were.
//!
//! The work is done by the hour and the day, and others write in between: a file of 15 months has millions of rows.

use super::{SqliteAnalytics, Tiers, names, set_meta};
use crate::cube::{Cube, Dimension, Position};
use crate::retention::TIERS;
use crate::store::StoreError;
use foldhash::HashMap;
use rusqlite::Connection;

/// Where names of callers stand in the keys of a cube.
fn positions(cube: Cube) -> Vec<usize> {
    let callers = [Dimension::Consumer, Dimension::Application];
    let found = callers.into_iter().filter_map(|it| cube.position(it));
    let values = found.filter_map(|it| match it {
        Position::Value(place) => Some(place),
        Position::ClassOf(_) => None,
    });
    values.collect()
}

/// Rows of a table, of an hour or of a day.
struct Rows<'t> {
    table: &'t str,
    span: &'t str,
    at: i64,
}

impl SqliteAnalytics {
    /// Gives callers other names. Says how many rows had one of theirs.
    pub(super) fn rename_callers(&self, renamed: &[(String, String)]) -> Result<u64, StoreError> {
        let mut numbers: HashMap<u64, u64> = HashMap::default();
        {
            let mut writer = self.writer();
            let transaction = writer.connection.transaction()?;
            for (old, new) in renamed {
                let Some(known) = names::find(&transaction, old)? else {
                    continue;
                };
                let mut fresh = names::Known::default();
                numbers.insert(known, fresh.number(&transaction, new)?);
            }
            // Names that no row has are looked for with the next round of clearing up.
            set_meta(&transaction, super::retain::SWEPT, 0)?;
            transaction.commit()?;
            writer.names = names::Known::default();
        }
        if numbers.is_empty() {
            return Ok(0);
        }
        let mut changed = 0;
        let hours = self.span(
            |tier| format!("SELECT min(hour), max(hour) FROM tier_{tier}"),
            TIERS,
        )?;
        for hour in hours {
            let mut writer = self.writer();
            let transaction = writer.connection.transaction()?;
            let table = format!("tier_{}", Tiers::of(&transaction)?.tier(hour as u64));
            let rows = Rows {
                table: &table,
                span: "hour",
                at: hour,
            };
            changed += rename(&transaction, &rows, &numbers)?;
            transaction.commit()?;
            drop(writer);
            std::thread::yield_now();
        }
        let days = self.span(|_| "SELECT min(day), max(day) FROM day_row".to_owned(), 1)?;
        for day in days {
            let mut writer = self.writer();
            let transaction = writer.connection.transaction()?;
            let rows = Rows {
                table: "day_row",
                span: "day",
                at: day,
            };
            changed += rename(&transaction, &rows, &numbers)?;
            transaction.commit()?;
            drop(writer);
            std::thread::yield_now();
        }
        Ok(changed)
    }

    /// From the first to the last hour or day of some tables.
    fn span(&self, sql: impl Fn(usize) -> String, tables: usize) -> Result<std::ops::Range<i64>, StoreError> {
        let writer = self.writer();
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for table in 0..tables {
            let found: (Option<i64>, Option<i64>) = writer
                .connection
                .query_row(&sql(table), [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if let (Some(from), Some(to)) = found {
                (first, last) = (first.min(from), last.max(to));
            }
        }
        Ok(first..last.saturating_add(1))
    }
}

fn rename(
    connection: &Connection,
    Rows { table, span, at }: &Rows<'_>,
    numbers: &HashMap<u64, u64>,
) -> Result<u64, StoreError> {
    let mut found: Vec<(u8, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut key = Vec::new();
    for cube in Cube::ALL {
        let positions = positions(*cube);
        if positions.is_empty() {
            continue;
        }
        let sql = format!("SELECT key FROM {table} WHERE {span} = ?1 AND cube = ?2");
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query((at, cube.number()))?;
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(0)?.as_blob().unwrap_or_default();
            names::decode(bytes, &mut key)?;
            let mut is_changed = false;
            for place in &positions {
                if let Some(number) = key.get_mut(*place)
                    && let Some(new) = numbers.get(number)
                {
                    (*number, is_changed) = (*new, true);
                }
            }
            if is_changed {
                found.push((cube.number(), bytes.to_vec(), names::encode(&key)));
            }
        }
    }
    // The new name is of this caller alone, so no two rows become one.
    let sql = format!("UPDATE OR REPLACE {table} SET key = ?4 WHERE {span} = ?1 AND cube = ?2 AND key = ?3");
    let mut update = connection.prepare_cached(&sql)?;
    for (cube, old, new) in &found {
        update.execute((at, cube, old, new))?;
    }
    Ok(found.len() as u64)
}
