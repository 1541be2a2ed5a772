//! Clearing up: days that are over are summed up by the hour, and minutes that are too old are dropped.
//!
//! A day is summed up again if rows of it come late. Each step can be done again: what was half done is dropped first.

use super::ClickhouseAnalytics;
use super::rows::Reader;
use super::schema::{KEY, SUMS, summed};
use crate::cube::Cube;
use crate::retention::{DAY, Retention};
use crate::store::{Retained, StoreError};

/// How long after its end a day is summed up, in seconds: gateways may be late.
const LATE: u64 = DAY;
/// Minutes of a day.
const MINUTES: u64 = 1_440;

/// Does what is due.
pub fn retain(store: &ClickhouseAnalytics, retention: &Retention, now: u64) -> Result<Retained, StoreError> {
    let mut retained = Retained::default();
    let Some(first) = first_day(store)? else {
        return Ok(retained);
    };
    for day in first..now.saturating_sub(LATE) / DAY {
        sum_up(store, day)?;
        store.ledger.set_rolled_days(day + 1)?;
        retained.repacked += 1;
    }
    let rolled = store.ledger.rolled_days()?.unwrap_or(0);
    let oldest = (now.saturating_sub(retention.five_minutes) / DAY).min(rolled);
    for table in ["weir_minute", "weir_minute_times"] {
        for day in days(store, table, oldest)? {
            store.send(&format!("ALTER TABLE {table} DROP PARTITION {day}"), None)?;
            retained.deleted += 1;
        }
    }
    Ok(retained)
}

/// The first day that is not summed up; `None`: there is nothing.
fn first_day(store: &ClickhouseAnalytics) -> Result<Option<u64>, StoreError> {
    if let Some(day) = store.ledger.rolled_days()? {
        return Ok(Some(day));
    }
    let oldest = store.send(
        "SELECT toUInt64(count()), toUInt64(min(minute)) FROM weir_minute FORMAT RowBinary",
        None,
    )?;
    let mut reader = Reader::new(&oldest);
    let (count, minute) = (reader.u64()?, reader.u64()?);
    Ok((count > 0).then_some(minute / MINUTES))
}

fn sum_up(store: &ClickhouseAnalytics, day: u64) -> Result<(), StoreError> {
    let sampled: Vec<String> = Cube::ALL
        .iter()
        .filter(|cube| cube.is_sampled())
        .map(|cube| cube.number().to_string())
        .collect();
    let of_day = format!(
        "minute >= {} AND minute < {} AND cube_id NOT IN ({})",
        day * MINUTES,
        (day + 1) * MINUTES,
        sampled.join(", ")
    );
    let names: Vec<&str> = SUMS.iter().map(|(_, name)| *name).collect();
    let sums: Vec<String> = SUMS.iter().map(|(field, _)| summed(*field)).collect();
    for (table, columns, values, also) in [
        ("hour", names.join(", "), sums.join(", "), ""),
        (
            "hour_times",
            "kind, bucket, count".to_owned(),
            "kind, bucket, sum(count)".to_owned(),
            ", kind, bucket",
        ),
    ] {
        let from = table.replace("hour", "minute");
        store.send(&format!("ALTER TABLE weir_{table} DROP PARTITION {day}"), None)?;
        let sql = format!(
            "INSERT INTO weir_{table} (cube_id, hour, {KEY}, {columns}) \
             SELECT cube_id, toUInt32(intDiv(minute, 60)) AS hour, {KEY}, {values} FROM weir_{from} \
             WHERE {of_day} GROUP BY cube_id, hour, {KEY}{also}"
        );
        store.send(&sql, None)?;
    }
    Ok(())
}

/// Days before a day of which a table has rows.
fn days(store: &ClickhouseAnalytics, table: &str, before: u64) -> Result<Vec<u64>, StoreError> {
    let sql = format!(
        "SELECT DISTINCT toUInt64(intDiv(minute, {MINUTES})) FROM {table} WHERE minute < {} FORMAT RowBinary",
        before * MINUTES
    );
    let rows = store.send(&sql, None)?;
    let (mut reader, mut days) = (Reader::new(&rows), Vec::new());
    while !reader.is_empty() {
        days.push(reader.u64()?);
    }
    Ok(days)
}
