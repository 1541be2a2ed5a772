//! Making callers nameless: they get another name in every row, which leads to no one. Names of consumers and of
//! applications do not mix. Counts stay, so sums over all callers are what they were.
//!
//! The work is done by the hour and the day, and others write in between: a file of 15 months has millions of rows.

use super::{SqliteAnalytics, Tiers, names, set_meta};
use crate::cell::{Parts, Row};
use crate::cube::{Cube, Dimension, Position};
use crate::retention::TIERS;
use crate::store::{Renames, StoreError};
use foldhash::HashMap;
use rusqlite::Connection;
use std::ops::Range;

/// The position of a dimension in the keys of a cube.
fn place_of(cube: Cube, dimension: Dimension) -> Option<usize> {
    match cube.position(dimension)? {
        Position::Value(place) => Some(place),
        Position::ClassOf(_) => None,
    }
}

/// Rows of a table, of an hour or of a day.
struct Rows<'t> {
    table: &'t str,
    span: &'t str,
    at: i64,
}

/// New names by the numbers of the old ones.
type NamesByNumber<'n> = HashMap<u64, &'n str>;

/// The new names of the callers that are known.
struct PseudonymTable<'n> {
    applications: NamesByNumber<'n>,
    consumers: NamesByNumber<'n>,
    consumers_of_services: NamesByNumber<'n>,
    services: &'n [String],
    /// Whether a service is one of these, by the number of its name.
    is_of_them: HashMap<u64, bool>,
}

impl<'n> PseudonymTable<'n> {
    /// Numbers are looked up again in each transaction: in between, names that no row has are deleted, and their numbers may
    /// be given to others.
    fn of(connection: &Connection, renamed: &'n Renames) -> Result<Self, StoreError> {
        let numbered = |names: &'n [(String, String)]| -> Result<NamesByNumber<'n>, StoreError> {
            let mut known = NamesByNumber::default();
            for (old, new) in names.iter().filter(|(old, new)| old != new) {
                if let Some(number) = names::find(connection, old)? {
                    known.insert(number, new);
                }
            }
            Ok(known)
        };
        Ok(Self {
            applications: numbered(&renamed.applications)?,
            consumers: numbered(&renamed.consumers)?,
            consumers_of_services: numbered(&renamed.consumers_of_services)?,
            services: &renamed.services,
            is_of_them: HashMap::default(),
        })
    }

    fn is_empty(&self) -> bool {
        self.applications.is_empty() && self.consumers.is_empty() && self.consumers_of_services.is_empty()
    }

    /// The new name of a consumer that has called a service.
    fn consumer(
        &mut self,
        connection: &Connection,
        number: u64,
        service: Option<u64>,
    ) -> Result<Option<&'n str>, StoreError> {
        if let Some(new) = self.consumers.get(&number) {
            return Ok(Some(new));
        }
        let (Some(new), Some(service)) = (self.consumers_of_services.get(&number).copied(), service) else {
            return Ok(None);
        };
        let is_of_them = match self.is_of_them.get(&service) {
            Some(known) => *known,
            None => {
                let name = names::text(connection, service)?;
                let found = self.services.iter().any(|it| name.starts_with(it.as_str()));
                self.is_of_them.insert(service, found);
                found
            }
        };
        Ok(is_of_them.then_some(new))
    }
}

impl SqliteAnalytics {
    /// Gives callers other names. Returns how many rows had one of theirs.
    pub(super) fn rename_callers(&self, renamed: &Renames) -> Result<u64, StoreError> {
        if PseudonymTable::of(&self.writer().connection, renamed)?.is_empty() {
            return Ok(0);
        }
        let hours = self.span(
            |tier| format!("SELECT min(hour), max(hour) FROM tier_{tier}"),
            TIERS,
        )?;
        let mut changed = self.rename_each("hour", hours, renamed)?;
        let days = self.span(|_| "SELECT min(day), max(day) FROM day_row".to_owned(), 1)?;
        changed += self.rename_each("day", days, renamed)?;
        // Now no row has the old names: they are looked for with the next round of clearing up.
        set_meta(&self.writer().connection, super::retain::SWEPT, 0)?;
        Ok(changed)
    }

    /// Renames in all hours or days, each in a transaction of its own.
    fn rename_each(&self, span: &str, all: Range<i64>, renamed: &Renames) -> Result<u64, StoreError> {
        let mut changed = 0;
        for at in all {
            let mut writer = self.writer();
            let transaction = writer.connection.transaction()?;
            let table = match span {
                "day" => "day_row".to_owned(),
                _ => format!("tier_{}", Tiers::of(&transaction)?.tier(at as u64)),
            };
            let table = table.as_str();
            changed += rename(
                &transaction,
                &Rows { table, span, at },
                &mut PseudonymTable::of(&transaction, renamed)?,
            )?;
            transaction.commit()?;
            drop(writer);
            std::thread::yield_now();
        }
        Ok(changed)
    }

    /// From the first to the last hour or day of some tables.
    fn span(&self, sql: impl Fn(usize) -> String, tables: usize) -> Result<Range<i64>, StoreError> {
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
    rows: &Rows<'_>,
    renamed: &mut PseudonymTable<'_>,
) -> Result<u64, StoreError> {
    let Rows { table, span, at } = rows;
    let mut found: Vec<(Cube, Vec<u8>, Vec<u8>)> = Vec::new();
    let (mut key, mut fresh) = (Vec::new(), names::NameCache::default());
    for cube in Cube::ALL {
        let [consumer, application, service] =
            [Dimension::Consumer, Dimension::Application, Dimension::Service].map(|it| place_of(*cube, it));
        if (consumer.is_none() && application.is_none()) || renamed.is_empty() {
            continue;
        }
        let sql = format!("SELECT key FROM {table} WHERE {span} = ?1 AND cube = ?2");
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query((at, cube.number()))?;
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(0)?.as_blob().unwrap_or_default();
            names::decode(bytes, &mut key)?;
            let number = |place: Option<usize>| place.and_then(|it| key.get(it)).copied();
            let (of_service, of_consumer, of_application) =
                (number(service), number(consumer), number(application));
            let of_consumer = match of_consumer {
                Some(number) => renamed.consumer(connection, number, of_service)?,
                None => None,
            };
            let of_application = of_application.and_then(|it| renamed.applications.get(&it).copied());
            let mut is_changed = false;
            for (place, new) in [(consumer, of_consumer), (application, of_application)] {
                if let (Some(place), Some(new)) = (place, new) {
                    (key[place], is_changed) = (fresh.number(connection, new)?, true);
                }
            }
            if is_changed {
                found.push((*cube, bytes.to_vec(), names::encode(&key)));
            }
        }
    }
    for (cube, old, new) in &found {
        move_row(connection, rows, *cube, (old, new))?;
    }
    Ok(found.len() as u64)
}

/// Gives a row another key. If a row has that key already, such as from an earlier attempt, the two become one.
fn move_row(
    connection: &Connection,
    Rows { table, span, at }: &Rows<'_>,
    cube: Cube,
    (old, new): (&[u8], &[u8]),
) -> Result<(), StoreError> {
    let read = |key: &[u8]| -> Result<Option<Row>, StoreError> {
        let sql = format!("SELECT data FROM {table} WHERE {span} = ?1 AND cube = ?2 AND key = ?3");
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query((at, cube.number(), key))?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let data = row.get_ref(0)?.as_blob().unwrap_or_default();
        Ok(Some(Row::decode(cube, data, Parts::ALL)?))
    };
    let place = format!("{span} = ?1 AND cube = ?2 AND key = ?3");
    if let Some(mut sum) = read(new)? {
        if let Some(more) = read(old)? {
            sum.merge(&more);
        }
        let mut update = connection.prepare_cached(&format!("UPDATE {table} SET data = ?4 WHERE {place}"))?;
        update.execute((at, cube.number(), new, sum.encode(cube)))?;
        let mut delete = connection.prepare_cached(&format!("DELETE FROM {table} WHERE {place}"))?;
        delete.execute((at, cube.number(), old))?;
    } else {
        let mut update = connection.prepare_cached(&format!("UPDATE {table} SET key = ?4 WHERE {place}"))?;
        update.execute((at, cube.number(), old, new))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnalyticsStore;
    use crate::batch::{Batch, BatchRow};
    use crate::cell::{Cell, Field};
    use crate::retention::{DAY, HOUR, Retention};
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The first hour, which begins a day.
    const FIRST: u64 = 20_000 * 24;
    const HOURS: u64 = 100;
    const NOW: u64 = (FIRST + HOURS) * HOUR + DAY;

    /// Calls of a consumer in an hour.
    fn calls(store: &SqliteAnalytics, number: u64, hour: u64, (consumer, calls): (&str, u64)) {
        let mut cell = Cell::default();
        cell.sums.add(Field::Calls, calls);
        let batch = Batch {
            gateway: "g".to_owned(),
            run: 1,
            number,
            since: (FIRST * 60) as u32,
            complete: ((FIRST + HOURS) * 60) as u32,
            names: vec![String::new(), consumer.to_owned()],
            rows: vec![BatchRow {
                cube: Cube::Caller,
                minute: (hour * 60 + number % 3) as u32,
                key: [0, 0, 1, 0, 0],
                cell,
            }],
            ..Batch::default()
        };
        store.ingest(&batch, NOW).expect("added");
    }

    /// Calls by the name of the consumer, of all hours or all days.
    fn counted(store: &SqliteAnalytics, table: &str) -> Vec<(String, u64)> {
        let writer = store.writer();
        let sql = format!("SELECT key, data FROM {table} ORDER BY 1");
        let mut select = writer.connection.prepare(&sql).expect("a table");
        let mut rows = select.query([]).expect("rows");
        let (mut key, mut found) = (Vec::new(), BTreeMap::<String, u64>::new());
        while let Some(row) = rows.next().expect("a row") {
            names::decode(row.get_ref(0).expect("a key").as_blob().expect("bytes"), &mut key).expect("a key");
            let name = names::text(&writer.connection, key[2]).expect("read");
            let data = row.get_ref(1).expect("data").as_blob().expect("bytes");
            let row = Row::decode(Cube::Caller, data, Parts::ALL).expect("a row");
            *found.entry(name).or_default() += row.total.sums.get(Field::Calls);
        }
        found.into_iter().collect()
    }

    fn store(folder: &tempfile::TempDir) -> SqliteAnalytics {
        SqliteAnalytics::open(&folder.path().join("analytics.db"), Retention::default()).expect("opened")
    }

    #[test]
    fn what_comes_late_is_added_to_what_was_renamed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let renamed = Renames {
            consumers: vec![("ann".to_owned(), "removed-1".to_owned())],
            // It is no consumer here, whatever its name is.
            applications: vec![("bob".to_owned(), "removed-2".to_owned())],
            ..Renames::default()
        };
        calls(&store, 1, FIRST, ("ann", 5));
        calls(&store, 2, FIRST, ("bob", 3));
        {
            // The hour is in its day.
            let mut writer = store.writer();
            let mut retained = crate::store::RetentionStats::default();
            let now = (FIRST + 2) * HOUR;
            super::super::retain::retain(&mut writer.connection, &Retention::default(), now, &mut retained)
                .expect("done");
        }
        assert!(store.anonymise(&renamed).expect("done") > 0);
        // A late batch has the name again: the hour and the day have both keys.
        calls(&store, 4, FIRST, ("ann", 2));
        for _ in 0..2 {
            store.anonymise(&renamed).expect("done");
            for table in ["tier_0", "day_row"] {
                let found = counted(&store, table);
                let sums: Vec<(&str, u64)> = found.iter().map(|it| (it.0.as_str(), it.1)).collect();
                assert_eq!(sums, [("bob", 3), ("removed-1", 7)], "{table}");
            }
        }
    }

    #[test]
    fn names_are_cleared_up_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        // The name that goes is in the last hour alone.
        for hour in FIRST..FIRST + HOURS {
            let consumer = if hour + 1 == FIRST + HOURS { "ann" } else { "bob" };
            calls(&store, hour, hour, (consumer, 1));
        }
        let renamed = Renames {
            consumers: vec![("ann".to_owned(), "removed-1".to_owned())],
            // It is no consumer here, whatever its name is.
            applications: vec![("bob".to_owned(), "removed-2".to_owned())],
            ..Renames::default()
        };
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    set_meta(&store.writer().connection, super::super::retain::SWEPT, 0).expect("written");
                    store
                        .retain(&Retention::default(), (FIRST + 1) * HOUR)
                        .expect("done");
                }
            });
            let done = store.anonymise(&renamed);
            is_done.store(true, Ordering::Relaxed);
            assert_eq!(done.expect("done"), 1);
        });
        calls(&store, 1, FIRST, ("tim", 1));
        let found = counted(&store, "tier_0");
        let names: Vec<(&str, u64)> = found.iter().map(|it| (it.0.as_str(), it.1)).collect();
        assert_eq!(names, [("bob", HOURS - 1), ("removed-1", 1), ("tim", 1)]);
    }
}
