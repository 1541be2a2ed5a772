//! Clearing up: days that are over are summed up by the hour, and minutes that are too old are dropped.
//!
//! A day is summed up again if rows of it come late. Each step can be done again: what was half done is dropped first.

use super::ClickhouseAnalytics;
use super::rows::Reader;
use super::schema::{KEY, SUMS, summed};
use crate::cube::Cube;
use crate::retention::{DAY, Retention};
use crate::store::{RetentionStats, StoreError};

/// How long after its end a day is summed up, in seconds: gateways may be late.
const LATE: u64 = DAY;
/// Minutes of a day.
const MINUTES: u64 = 1_440;

/// Does what is due.
pub fn retain(
    store: &ClickhouseAnalytics,
    retention: &Retention,
    now: u64,
) -> Result<RetentionStats, StoreError> {
    let mut retained = RetentionStats::default();
    let (rolled, over) = (
        store.ledger.rolled_days()?.unwrap_or(0),
        now.saturating_sub(LATE) / DAY,
    );
    // Only days with rows: a clock that is wrong must not make work for every day since 1970.
    for day in days(store, "weir_minute", over)?
        .into_iter()
        .filter(|day| *day >= rolled)
    {
        sum_up(store, day)?;
        store.ledger.set_rolled_days(day + 1)?;
        retained.repacked += 1;
    }
    let rolled = rolled.max(over);
    store.ledger.set_rolled_days(rolled)?;
    let oldest = (now.saturating_sub(retention.five_minutes) / DAY).min(rolled);
    // It is noted before: from then on no row of these days is taken.
    store
        .ledger
        .set_first_kept_day(oldest.max(store.ledger.first_kept_day()?))?;
    for table in ["weir_minute", "weir_minute_times"] {
        for day in days(store, table, oldest)? {
            store.send(&format!("ALTER TABLE {table} DROP PARTITION {day}"), None)?;
            retained.deleted += 1;
        }
    }
    Ok(retained)
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

/// Days before a day of which a table has rows, the earliest first.
fn days(store: &ClickhouseAnalytics, table: &str, before: u64) -> Result<Vec<u64>, StoreError> {
    let sql = format!(
        "SELECT DISTINCT toUInt64(intDiv(minute, {MINUTES})) AS day FROM {table} WHERE minute < {} ORDER BY day FORMAT RowBinary",
        before * MINUTES
    );
    let rows = store.send(&sql, None)?;
    let (mut reader, mut days) = (Reader::new(&rows), Vec::new());
    while !reader.is_empty() {
        days.push(reader.u64()?);
    }
    Ok(days)
}
