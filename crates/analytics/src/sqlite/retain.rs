//! Clearing up: minutes become five, hours and days; what is too old is deleted; the file gives its space back.
//!
//! Each hour is done in a transaction of its own. What was done is noted, so that it is done once.

use super::ingest::{add_callers, merge_day};
use super::{Tiers, meta, names, set_meta};
use crate::cell::{Parts, Row};
use crate::cube::Cube;
use crate::retention::{DAY, HOUR, MINUTE, Retention, TIERS};
use crate::store::{RetentionStats, StoreError};
use crate::uniques::Uniques;
use crate::varint::Reader;
use foldhash::HashSet;
use rusqlite::{Connection, Transaction};

/// The first hour that is not summed up in the row of its day yet.
pub const ROLLED: &str = "rolled_hours";
/// When names were last looked through.
pub const SWEPT: &str = "swept";
/// How long after its end an hour is summed up in its day, in seconds: gateways may be late. What comes later still is
/// added to both.
const LATE: u64 = 600;
/// How long it is known that a batch came, in seconds: far longer than gateways keep any.
const KNOWN_BATCHES: u64 = 2 * DAY;
/// A gateway that was silent for so long, in seconds, has ended.
const GONE: u64 = DAY;
/// How long the texts of clients are kept, in seconds.
const CLIENT_TEXTS: u64 = 30 * DAY;

/// Hours that are done at once. Between them, others may write.
const AT_ONCE: u64 = 24;

/// Does some of the work that is due. Returns whether that was all.
pub fn retain(
    connection: &mut Connection,
    retention: &Retention,
    now: u64,
    retained: &mut RetentionStats,
) -> Result<bool, StoreError> {
    let mut left = AT_ONCE;
    if let Some(oldest) = oldest(connection)? {
        roll_hours(connection, oldest, now, &mut left)?;
        repack(connection, retention, (oldest, now), (&mut left, retained))?;
        if left == 0 {
            return Ok(false);
        }
    }
    retained.deleted += delete(connection, retention, now)?;
    forget(connection, now)?;
    if meta(connection, SWEPT)?.unwrap_or(0) + DAY <= now {
        sweep_names(connection)?;
        set_meta(connection, SWEPT, now)?;
    }
    connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)")?;
    vacuum(connection)?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(true)
}

/// Returns free pages to the disk.
fn vacuum(connection: &Connection) -> Result<(), StoreError> {
    let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut rows = vacuum.query([])?;
    // Each row is a page.
    while rows.next()?.is_some() {}
    Ok(())
}

/// Under which name it is noted which hours have moved on from a tier.
pub fn moved(tier: usize) -> String {
    format!("moved_{tier}")
}

/// The oldest hour; `None`: no rows.
fn oldest(connection: &Connection) -> Result<Option<u64>, StoreError> {
    let mut oldest: Option<i64> = None;
    for tier in 0..TIERS {
        let of_tier: Option<i64> =
            connection.query_row(&format!("SELECT min(hour) FROM tier_{tier}"), [], |row| {
                row.get(0)
            })?;
        oldest = oldest.into_iter().chain(of_tier).min();
    }
    Ok(oldest.map(|hour| hour as u64))
}

/// Moves hours on that have come to the next step since the last time, and puts their minutes together.
fn repack(
    connection: &mut Connection,
    retention: &Retention,
    (oldest, now): (u64, u64),
    (left, retained): (&mut u64, &mut RetentionStats),
) -> Result<(), StoreError> {
    for (tier, age) in retention.steps().into_iter().enumerate() {
        let first = meta(connection, &moved(tier))?.unwrap_or(0).max(oldest);
        for hour in Retention::due(age, first, now) {
            if *left == 0 {
                return Ok(());
            }
            *left -= 1;
            let transaction = connection.transaction()?;
            let spans = retention.spans(now.saturating_sub(hour * HOUR));
            retained.repacked += move_hour(&transaction, tier, hour, spans)?;
            set_meta(&transaction, &moved(tier), hour + 1)?;
            transaction.commit()?;
        }
    }
    Ok(())
}

fn move_hour(
    transaction: &Transaction<'_>,
    tier: usize,
    hour: u64,
    (minutes, sketches): (u8, u8),
) -> Result<u64, StoreError> {
    let mut moved = 0;
    let mut select = transaction.prepare_cached(&format!(
        "SELECT cube, key, data FROM tier_{tier} WHERE hour = ?1 ORDER BY cube, key"
    ))?;
    let mut insert = transaction.prepare_cached(&format!(
        "INSERT OR REPLACE INTO tier_{} (hour, cube, key, data) VALUES (?1, ?2, ?3, ?4)",
        tier + 1
    ))?;
    let mut rows = select.query([hour as i64])?;
    while let Some(row) = rows.next()? {
        let number: u8 = row.get(0)?;
        // A cube of a later version that this one does not know is dropped when it moves.
        let Some(cube) = Cube::numbered(number) else {
            continue;
        };
        let data = row.get_ref(2)?.as_blob().unwrap_or_default();
        let mut packed = Row::decode(cube, data, Parts::ALL)?;
        packed.repack(minutes, sketches);
        let key = row.get_ref(1)?.as_blob().unwrap_or_default();
        insert.execute((hour as i64, number, key, packed.encode(cube)))?;
        moved += 1;
    }
    drop(rows);
    transaction.execute(&format!("DELETE FROM tier_{tier} WHERE hour = ?1"), [hour as i64])?;
    Ok(moved)
}

/// Adds hours that are over to the rows of their days, so that the present day is read as one row for each key, too.
fn roll_hours(connection: &mut Connection, oldest: u64, now: u64, left: &mut u64) -> Result<(), StoreError> {
    let first = meta(connection, ROLLED)?.unwrap_or(oldest).max(oldest);
    for hour in first..now.saturating_sub(LATE) / HOUR {
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        let transaction = connection.transaction()?;
        roll_hour(&transaction, hour)?;
        roll_callers(&transaction, hour)?;
        set_meta(&transaction, ROLLED, hour + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

fn roll_hour(transaction: &Transaction<'_>, hour: u64) -> Result<(), StoreError> {
    let parts = Parts {
        sketches: [true; 3],
        has_minutes: false,
        has_minute_sketches: false,
    };
    let mut select = transaction.prepare_cached(&format!(
        "SELECT cube, key, data FROM tier_{} WHERE hour = ?1",
        Tiers::of(transaction)?.tier(hour)
    ))?;
    let mut rows = select.query([hour as i64])?;
    while let Some(row) = rows.next()? {
        let Some(cube) = Cube::numbered(row.get(0)?) else {
            continue;
        };
        let key = row.get_ref(1)?.as_blob().unwrap_or_default();
        let sum = Row::decode(cube, row.get_ref(2)?.as_blob().unwrap_or_default(), parts)?;
        merge_day(transaction, cube, (hour / 24) as u32, key, sum)?;
    }
    Ok(())
}

fn roll_callers(transaction: &Transaction<'_>, hour: u64) -> Result<(), StoreError> {
    let mut select =
        transaction.prepare_cached("SELECT environment, service, data FROM hour_callers WHERE hour = ?1")?;
    let mut rows = select.query([hour as i64])?;
    while let Some(row) = rows.next()? {
        let place = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
        let mut callers = Uniques::default();
        callers.merge_encoded(&mut Reader::new(row.get_ref(2)?.as_blob().unwrap_or_default()))?;
        add_callers(transaction, "day", hour / 24, place, &callers)?;
    }
    Ok(())
}

/// Deletes what no step of the ladder keeps.
fn delete(connection: &Connection, retention: &Retention, now: u64) -> Result<u64, StoreError> {
    let rolled = meta(connection, ROLLED)?.unwrap_or(0);
    // Hours go once their days hold them.
    let hour_of = |age: u64| (now.saturating_sub(age) / HOUR).min(rolled) as i64;
    let mut deleted = connection.execute(
        "DELETE FROM hour_callers WHERE hour < ?1",
        [hour_of(retention.unique_hours)],
    )?;
    let texts = now.saturating_sub(CLIENT_TEXTS);
    for tier in 0..TIERS {
        let delete = format!("DELETE FROM tier_{tier} WHERE hour < ?1");
        deleted += connection.execute(&delete, [hour_of(retention.hours)])?;
        for cube in Cube::ALL.iter().filter(|cube| cube.is_sampled()) {
            let delete = format!("DELETE FROM tier_{tier} WHERE hour < ?1 AND cube = ?2");
            deleted += connection.execute(&delete, ((texts / HOUR) as i64, cube.number()))?;
        }
    }
    for cube in Cube::ALL.iter().filter(|cube| cube.is_sampled()) {
        let days = ((texts / DAY) as i64, cube.number());
        deleted += connection.execute("DELETE FROM day_row WHERE day < ?1 AND cube = ?2", days)?;
    }
    let minute = (now.saturating_sub(retention.hours) / MINUTE) as i64;
    connection.execute("DELETE FROM gap WHERE last < ?1", [minute])?;
    Ok(deleted as u64)
}

/// Forgets batches that cannot come again, and gateways that are gone.
fn forget(connection: &Connection, now: u64) -> Result<(), StoreError> {
    connection.execute(
        "DELETE FROM batch WHERE at < ?1",
        [now.saturating_sub(KNOWN_BATCHES) as i64],
    )?;
    let silent = (now.saturating_sub(GONE) / MINUTE) as i64;
    connection.execute(
        "INSERT OR IGNORE INTO gap SELECT name, complete + 1, complete + 1, 'the gateway ended without handing over its last counts'
         FROM gateway WHERE closed = 0 AND complete < ?1",
        [silent],
    )?;
    connection.execute("DELETE FROM gateway WHERE complete < ?1", [silent])?;
    Ok(())
}

/// Deletes names that no key uses.
fn sweep_names(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    let mut used: HashSet<u64> = HashSet::default();
    let mut key = Vec::new();
    let tiers = (0..TIERS).map(|tier| format!("tier_{tier}"));
    for table in tiers.chain(["day_row".to_owned()]) {
        let mut select = transaction.prepare(&format!("SELECT key FROM {table}"))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            names::decode(row.get_ref(0)?.as_blob().unwrap_or_default(), &mut key)?;
            used.extend(&key);
        }
    }
    for table in ["hour_callers", "day_callers"] {
        let mut select = transaction.prepare(&format!("SELECT environment, service FROM {table}"))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            used.extend([row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64]);
        }
    }
    let mut unused = Vec::new();
    let mut select = transaction.prepare("SELECT id FROM name")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let id = row.get::<_, i64>(0)?;
        if !used.contains(&(id as u64)) {
            unused.push(id);
        }
    }
    drop(rows);
    drop(select);
    for id in unused {
        transaction.execute("DELETE FROM name WHERE id = ?1", [id])?;
    }
    transaction.commit()?;
    Ok(())
}
