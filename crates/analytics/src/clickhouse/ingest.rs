//! Storing a batch: its rows by day, each day with one insert into each table.

use super::rows::Writer;
use super::schema::{KEY, SUMS};
use super::{ClickhouseAnalytics, Server};
use crate::batch::{Batch, BatchRow};
use crate::cube::MAX_DIMENSIONS;
use crate::store::StoreError;
use crate::uniques;
use std::collections::BTreeMap;

/// Minutes of a day.
const DAY: u32 = 1_440;

/// Why rows of a batch are not stored.
const TOO_LATE: &str = "counts arrived after the minutes of their day were deleted";

/// The id of a batch: as a token for the server, and as a number in its rows.
struct Id {
    token: String,
    number: u64,
}

impl Id {
    fn of(batch: &Batch) -> Self {
        let token = format!("{}/{}/{}", batch.gateway, batch.run, batch.number);
        Self {
            // No row of a server with tokens has a number, so 0 means none.
            number: uniques::hash(token.as_bytes()).max(1),
            token,
        }
    }
}

/// Stores all of a batch. It may be called again if it failed.
pub fn store(to: &ClickhouseAnalytics, server: Server, batch: &Batch) -> Result<(), StoreError> {
    let id = Id::of(batch);
    let mut days: BTreeMap<u32, Vec<&BatchRow>> = BTreeMap::new();
    for row in &batch.rows {
        days.entry(row.minute / DAY).or_default().push(row);
    }
    let first_kept = to.ledger.first_kept_day()?;
    for (day, rows) in days {
        if u64::from(day) < first_kept {
            // The minutes of this day are gone: to sum it up again would lose what came in time.
            let minutes = (day * DAY, (day + 1) * DAY - 1);
            to.ledger.note_gap(&batch.gateway, minutes, TOO_LATE)?;
            continue;
        }
        // A day that was summed up is summed up again.
        to.ledger.unroll(u64::from(day))?;
        let number = if server.has_tokens { 0 } else { id.number };
        let sums: Vec<&str> = SUMS.iter().map(|(_, name)| *name).collect();
        let columns = format!("cube_id, minute, {KEY}, {}, batch", sums.join(", "));
        insert(
            to,
            server,
            (&id, day),
            ("weir_minute", &columns),
            sums_of(batch, &rows, number),
        )?;
        let columns = format!("cube_id, minute, {KEY}, kind, bucket, count, batch");
        let times = times_of(batch, &rows, number);
        insert(to, server, (&id, day), ("weir_minute_times", &columns), times)?;
    }
    let callers = callers_of(batch);
    if !callers.is_empty() {
        let sql = "INSERT INTO weir_callers (hour, d1, d2, register, rank) FORMAT RowBinary";
        to.send(sql, Some(callers))?;
    }
    Ok(())
}

/// Inserts rows of one day: all or none, and once.
fn insert(
    to: &ClickhouseAnalytics,
    server: Server,
    (id, day): (&Id, u32),
    (table, columns): (&str, &str),
    rows: Vec<u8>,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let settings = match server.has_tokens {
        true => {
            let token = super::quoted(&format!("{}/{day}", id.token));
            format!(" SETTINGS insert_deduplication_token = {token}")
        }
        false => {
            let (first, last) = (day * DAY, (day + 1) * DAY);
            let is_there = format!(
                "SELECT toUInt64(count()) FROM {table} WHERE minute >= {first} AND minute < {last} AND batch = {} FORMAT RowBinary",
                id.number
            );
            if super::rows::Reader::new(&to.send(&is_there, None)?).u64()? > 0 {
                return Ok(());
            }
            String::new()
        }
    };
    let sql = format!("INSERT INTO {table} ({columns}){settings} FORMAT RowBinary");
    to.send(&sql, Some(rows))?;
    Ok(())
}

/// Writes the begin of a row: the cube, the minute, and a name for each of five dimensions.
fn head(out: &mut Writer, batch: &Batch, row: &BatchRow) {
    out.u8(row.cube.number());
    out.u32(row.minute);
    let used = row.cube.dimensions().len();
    for place in 0..MAX_DIMENSIONS {
        let name = batch.names.get(row.key[place] as usize).filter(|_| place < used);
        out.text(name.map_or("", String::as_str));
    }
}

fn sums_of(batch: &Batch, rows: &[&BatchRow], number: u64) -> Vec<u8> {
    let mut out = Writer::default();
    for row in rows {
        head(&mut out, batch, row);
        for (field, _) in SUMS {
            out.u64(row.cell.sums.get(field));
        }
        out.u64(number);
    }
    out.0
}

fn times_of(batch: &Batch, rows: &[&BatchRow], number: u64) -> Vec<u8> {
    let mut out = Writer::default();
    for row in rows {
        let kept = row
            .cube
            .sketches()
            .into_iter()
            .zip(&row.cell.sketches)
            .enumerate();
        for (kind, (_, sketch)) in kept.filter(|(_, (is_kept, _))| *is_kept) {
            for (bucket, count) in sketch.buckets() {
                head(&mut out, batch, row);
                out.u8(kind as u8);
                out.u16(bucket);
                out.u64(count);
                out.u64(number);
            }
        }
    }
    out.0
}

fn callers_of(batch: &Batch) -> Vec<u8> {
    let mut out = Writer::default();
    let name = |number: u32| batch.names.get(number as usize).map_or("", String::as_str);
    for (environment, service, hour, callers) in &batch.uniques {
        for (register, rank) in callers.registers() {
            out.u32(*hour);
            out.text(name(*environment));
            out.text(name(*service));
            out.u16(register);
            out.u8(rank);
        }
    }
    out.0
}
