//! Adding a batch: all of it in one transaction, once.

use super::{Tiers, Writer, meta, names};
use crate::batch::{Batch, BatchRow};
use crate::cell::{Parts, Row};
use crate::cube::Cube;
use crate::store::{IngestResult, StoreError};
use crate::uniques::Uniques;
use crate::varint::Reader;
use foldhash::HashMap;
use rusqlite::Connection;

const HOURS_A_DAY: u32 = 24;

/// Adds a batch.
pub fn ingest(writer: &mut Writer, batch: &Batch, now: u64) -> Result<IngestResult, StoreError> {
    let Writer { connection, names } = writer;
    let transaction = connection.transaction()?;
    if is_known(&transaction, batch)? {
        return Ok(IngestResult::Duplicate);
    }
    remember(&transaction, batch, now)?;
    let mut numbers = Vec::with_capacity(batch.names.len());
    for name in &batch.names {
        numbers.push(names.number(&transaction, name)?);
    }
    let tiers = Tiers::of(&transaction)?;
    let rolled = meta(&transaction, super::retain::ROLLED)?.unwrap_or(0) as u32;
    for ((cube, hour, key), rows) in by_row(batch, &numbers) {
        add_to_hour(
            &transaction,
            tiers.tier(u64::from(hour)),
            (cube, hour, &key),
            &rows,
        )?;
        if hour < rolled {
            add_to_day(&transaction, cube, hour / HOURS_A_DAY, &key, &rows)?;
        }
    }
    for (environment, service, hour, callers) in &batch.uniques {
        let place = (numbers[*environment as usize], numbers[*service as usize]);
        add_callers(&transaction, "hour", u64::from(*hour), place, callers)?;
        if *hour < rolled {
            add_callers(&transaction, "day", u64::from(hour / HOURS_A_DAY), place, callers)?;
        }
    }
    note_gateway(&transaction, batch)?;
    transaction.commit()?;
    Ok(IngestResult::Added)
}

/// Whether the batch has come before.
pub fn is_known(connection: &Connection, batch: &Batch) -> Result<bool, StoreError> {
    let id = (batch.gateway.as_str(), batch.run as i64, batch.number as i64);
    let hash = batch.hash() as i64;
    let mut select = connection
        .prepare_cached("SELECT hash FROM batch WHERE gateway = ?1 AND run = ?2 AND number = ?3")?;
    let mut rows = select.query(id)?;
    if let Some(row) = rows.next()? {
        return match row.get::<_, i64>(0)? == hash {
            true => Ok(true),
            false => Err(StoreError::OtherBatch {
                gateway: batch.gateway.clone(),
                number: batch.number,
            }),
        };
    }
    Ok(false)
}

/// Notes that the batch has come.
pub fn remember(connection: &Connection, batch: &Batch, now: u64) -> Result<(), StoreError> {
    let id = (batch.gateway.as_str(), batch.run as i64, batch.number as i64);
    let mut insert = connection
        .prepare_cached("INSERT INTO batch (gateway, run, number, hash, at) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    insert.execute((id.0, id.1, id.2, batch.hash() as i64, now as i64))?;
    Ok(())
}

type RowKey = (Cube, u32, Vec<u8>);

/// The batch's rows by the row of an hour that they belong to.
fn by_row<'b>(batch: &'b Batch, numbers: &[u64]) -> HashMap<RowKey, Vec<&'b BatchRow>> {
    let mut rows: HashMap<RowKey, Vec<&BatchRow>> = HashMap::default();
    for row in &batch.rows {
        let key = &row.key[..row.cube.dimensions().len()];
        let key: Vec<u64> = key.iter().map(|name| numbers[*name as usize]).collect();
        let place = (row.cube, row.minute / 60, names::encode(&key));
        rows.entry(place).or_default().push(row);
    }
    rows
}

fn add_to_hour(
    connection: &Connection,
    tier: usize,
    (cube, hour, key): (Cube, u32, &[u8]),
    rows: &[&BatchRow],
) -> Result<(), StoreError> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT data FROM tier_{tier} WHERE hour = ?1 AND cube = ?2 AND key = ?3"
    ))?;
    let mut found = select.query((hour, cube.number(), key))?;
    let mut sum = match found.next()? {
        Some(row) => Row::decode(cube, row.get_ref(0)?.as_blob().unwrap_or_default(), Parts::ALL)?,
        None => Row::default(),
    };
    for row in rows {
        sum.add(cube, (row.minute % 60) as u8, &row.cell);
    }
    let mut put = connection.prepare_cached(&format!(
        "INSERT OR REPLACE INTO tier_{tier} (hour, cube, key, data) VALUES (?1, ?2, ?3, ?4)"
    ))?;
    put.execute((hour, cube.number(), key, sum.encode(cube)))?;
    Ok(())
}

/// Adds what comes late to its day, too, which is summed up already.
fn add_to_day(
    connection: &Connection,
    cube: Cube,
    day: u32,
    key: &[u8],
    rows: &[&BatchRow],
) -> Result<(), StoreError> {
    let mut sum = Row::default();
    for row in rows {
        sum.add(cube, 0, &row.cell);
    }
    merge_day(connection, cube, day, key, sum)
}

/// Adds to the row of a day.
pub fn merge_day(
    connection: &Connection,
    cube: Cube,
    day: u32,
    key: &[u8],
    mut sum: Row,
) -> Result<(), StoreError> {
    let mut select =
        connection.prepare_cached("SELECT data FROM day_row WHERE cube = ?1 AND day = ?2 AND key = ?3")?;
    let mut found = select.query((cube.number(), day, key))?;
    if let Some(row) = found.next()? {
        let known = Row::decode(cube, row.get_ref(0)?.as_blob().unwrap_or_default(), Parts::ALL)?;
        sum.total.merge(&known.total);
    }
    (sum.minutes, sum.sketches) = (Vec::new(), Vec::new());
    let mut put = connection
        .prepare_cached("INSERT OR REPLACE INTO day_row (cube, day, key, data) VALUES (?1, ?2, ?3, ?4)")?;
    put.execute((cube.number(), day, key, sum.encode(cube)))?;
    Ok(())
}

/// Adds callers to an hour or a day.
pub fn add_callers(
    connection: &Connection,
    span: &str,
    at: u64,
    (environment, service): (u64, u64),
    callers: &Uniques,
) -> Result<(), StoreError> {
    let place = (at as i64, environment as i64, service as i64);
    let mut select = connection.prepare_cached(&format!(
        "SELECT data FROM {span}_callers WHERE {span} = ?1 AND environment = ?2 AND service = ?3"
    ))?;
    let mut sum = callers.clone();
    if let Some(row) = select.query(place)?.next()? {
        sum.merge_encoded(&mut Reader::new(row.get_ref(0)?.as_blob().unwrap_or_default()))?;
    }
    let mut data = Vec::new();
    sum.encode(&mut data);
    let mut put = connection.prepare_cached(&format!(
        "INSERT OR REPLACE INTO {span}_callers ({span}, environment, service, data) VALUES (?1, ?2, ?3, ?4)"
    ))?;
    put.execute((place.0, place.1, place.2, data))?;
    Ok(())
}

/// Notes how far the gateway is, and what is missing of it.
pub fn note_gateway(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut select =
        connection.prepare_cached("SELECT run, complete, closed FROM gateway WHERE name = ?1")?;
    let mut rows = select.query([&batch.gateway])?;
    let known: Option<(u64, u32, bool)> = match rows.next()? {
        Some(row) => Some((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?)),
        None => None,
    };
    drop(rows);
    let gap = |first: u32, last: u32, reason: &str| -> Result<(), StoreError> {
        let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO gap VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute((&batch.gateway, first, last, reason))?;
        Ok(())
    };
    if let Some((first, last)) = batch.lost {
        gap(
            first,
            last,
            "the control plane was unreachable for longer than counts are kept",
        )?;
    }
    if batch.dropped > 0 {
        let reason = format!(
            "{} calls were not counted: the gateway was too busy",
            batch.dropped
        );
        gap(batch.complete, batch.complete + 1, &reason)?;
    }
    let mut complete = batch.complete;
    match known {
        Some((run, _, _)) if run > batch.run => return Ok(()),
        Some((run, known, _)) if run == batch.run => complete = complete.max(known),
        Some((_, known, false)) => {
            gap(
                known + 1,
                batch.since.max(known + 1),
                "the gateway ended without handing over its last counts",
            )?;
        }
        _ => {}
    }
    let mut put = connection.prepare_cached(
        "INSERT OR REPLACE INTO gateway (name, run, complete, closed) VALUES (?1, ?2, ?3, ?4)",
    )?;
    put.execute((&batch.gateway, batch.run as i64, complete, batch.is_last))?;
    Ok(())
}
