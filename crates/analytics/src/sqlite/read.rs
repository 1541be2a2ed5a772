//! Answering queries: rows of the file become the groups and steps of frames.

use super::{Tiers, meta, names};
use crate::cell::{Cell, Parts, Row};
use crate::cube::{CLASSES, Cube, Position, class_of};
use crate::query::frames::RowContent;
use crate::query::{Frames, GroupKey, Query, QueryPlan, QueryResponse, Source};
use crate::retention::{DAY, HOUR, MINUTE, Retention};
use crate::store::{Gap, StoreError};
use crate::uniques::Uniques;
use crate::varint::{DecodeError, Reader};
use foldhash::HashMap;
use rusqlite::Connection;
use std::cell::RefCell;

/// Numbers from here on stand for classes of statuses, which are no names of the file.
const FIRST_CLASS: u64 = 1 << 62;
/// A gateway that was silent for so many minutes is one of which something is missing.
const SILENT: u64 = 3;

/// Answers a query.
pub fn query(
    connection: &Connection,
    query: &Query,
    retention: &Retention,
    now: u64,
) -> Result<QueryResponse, StoreError> {
    let plan = QueryPlan::of(query, retention, now)?;
    // What is written meanwhile does not change the answer half-way.
    let transaction = connection.unchecked_transaction()?;
    let reader = QueryReader {
        connection: &transaction,
        tiers: Tiers::of(&transaction)?,
        rolled: meta(&transaction, super::retain::ROLLED)?.unwrap_or(0),
        classes: RefCell::default(),
    };
    let mut frames = reader.totals(&plan)?;
    frames.choose(&plan, |name| reader.text(name));
    reader.series(&plan, &mut frames)?;
    let earlier = plan.earlier();
    let mut compared = None;
    if let Some(earlier) = &earlier {
        let mut before = reader.totals(earlier)?;
        before.choose_as(&frames);
        reader.series(earlier, &mut before)?;
        compared = Some((earlier, before));
    }
    let gaps = gaps(&transaction, &plan, now)?;
    Ok(frames.answer(&plan, compared, gaps, |name| reader.text(name)))
}

/// The period of a row.
#[derive(Clone, Copy)]
enum RowPeriod {
    Hour,
    Day,
}

struct QueryReader<'c> {
    connection: &'c Connection,
    /// Which tiers hours lie in.
    tiers: Tiers,
    /// Hours before this one are summed up in the rows of their days.
    rolled: u64,
    /// The classes of statuses, by the numbers of their names.
    classes: RefCell<HashMap<u64, u64>>,
}

/// A filter with the numbers of its values.
struct Filter {
    position: Position,
    numbers: Vec<u64>,
}

impl QueryReader<'_> {
    fn text(&self, name: u64) -> String {
        match name.checked_sub(FIRST_CLASS) {
            Some(class) => CLASSES.get(class as usize).map_or("", |it| *it).to_owned(),
            // A name that cannot be read is shown as empty rather than that there is no answer.
            None => names::text(self.connection, name).unwrap_or_default(),
        }
    }

    fn class(&self, status: u64) -> u64 {
        if let Some(class) = self.classes.borrow().get(&status) {
            return *class;
        }
        let class = class_of(&self.text(status));
        let place = CLASSES
            .iter()
            .position(|it| *it == class)
            .unwrap_or(CLASSES.len() - 1);
        let class = FIRST_CLASS + place as u64;
        self.classes.borrow_mut().insert(status, class);
        class
    }

    fn value(&self, key: &[u64], position: Position) -> u64 {
        match position {
            Position::Value(place) => key.get(place).copied().unwrap_or(0),
            Position::ClassOf(place) => self.class(key.get(place).copied().unwrap_or(0)),
        }
    }

    fn filters(&self, plan: &QueryPlan) -> Result<Vec<Filter>, StoreError> {
        let mut filters = Vec::new();
        for (position, values) in &plan.filter {
            let mut numbers = Vec::new();
            for value in values {
                let number = match position {
                    Position::Value(_) => names::find(self.connection, value)?,
                    Position::ClassOf(_) => {
                        let place = CLASSES.iter().position(|it| it == value);
                        place.map(|place| FIRST_CLASS + place as u64)
                    }
                };
                numbers.extend(number);
            }
            filters.push(Filter {
                position: *position,
                numbers,
            });
        }
        Ok(filters)
    }

    /// The group of a key; `None`: a filter leaves it out.
    fn group(&self, plan: &QueryPlan, filters: &[Filter], key: &[u64]) -> Option<GroupKey> {
        let holds = |filter: &Filter| filter.numbers.contains(&self.value(key, filter.position));
        if !filters.iter().all(holds) {
            return None;
        }
        let mut group = GroupKey::default();
        for (place, (_, position)) in plan.group_by.iter().enumerate() {
            group[place] = self.value(key, *position);
        }
        Some(group)
    }

    /// The total of each group.
    fn totals(&self, plan: &QueryPlan) -> Result<Frames, StoreError> {
        let mut frames = Frames::new(plan);
        let sketches = match plan.ranks_by_sums() {
            true => [false; 3],
            false => plan.parts().sketches,
        };
        // Days, if whole ones are needed and summed up; hours before and after them.
        let (first, last, end) = self.whole_days(plan);
        let hours = match first < last {
            true => vec![(plan.from, first * DAY), (end, plan.to)],
            false => vec![(plan.from, plan.to)],
        };
        self.days(plan, (first, last), sketches, |group, _, part| {
            frames.add(group, part)
        })?;
        for (from, to) in hours.into_iter().filter(|(from, to)| from < to) {
            let parts = Parts {
                sketches,
                has_minute_sketches: plan.parts().has_minute_sketches && sketches[0],
                ..plan.parts()
            };
            self.hours(plan, (from, to), (None, parts), |group, _, part| {
                frames.add(group, part)
            })?;
        }
        Ok(frames)
    }

    /// The days whose rows hold all that is asked for of them: the first one, the one after the last, and the time up
    /// to which they hold it. The present day is summed up in part: its row will do if the rest of it is asked for as
    /// well.
    fn whole_days(&self, plan: &QueryPlan) -> (u64, u64, u64) {
        let first = plan.from.div_ceil(DAY);
        let end = match self.rolled * HOUR {
            rolled if rolled <= plan.to => rolled,
            _ => plan.to / DAY * DAY,
        };
        (first, end.div_ceil(DAY).max(first), end)
    }

    /// The steps of the groups that are shown.
    fn series(&self, plan: &QueryPlan, frames: &mut Frames) -> Result<(), StoreError> {
        let Some(step) = plan.step else {
            return Ok(());
        };
        let mut from = plan.from;
        let (first, last, end) = self.whole_days(plan);
        if step.is_multiple_of(DAY) && plan.from.is_multiple_of(DAY) && first < last {
            self.days(plan, (first, last), plan.parts().sketches, |group, at, part| {
                frames.add_to_step(plan, group, at, part)
            })?;
            from = end;
        }
        if from < plan.to {
            let asked = (Some(step), plan.parts());
            self.hours(plan, (from, plan.to), asked, |group, at, part| {
                frames.add_to_step(plan, group, at, part)
            })?;
        }
        if plan.ranks_by_sums() {
            frames.total_sketches();
        }
        Ok(())
    }

    fn days(
        &self,
        plan: &QueryPlan,
        (first, last): (u64, u64),
        sketches: [bool; 3],
        mut add: impl FnMut(GroupKey, u64, RowContent<'_>) -> Result<(), DecodeError>,
    ) -> Result<(), StoreError> {
        if first >= last {
            return Ok(());
        }
        self.rows(plan, RowPeriod::Day, (first, last), |_, day, group, data| {
            Ok(add(group, day * DAY, RowContent::Row(data, sketches))?)
        })?;
        self.callers(plan, "day", (first, last), |group, day, callers| {
            add(group, day * DAY, RowContent::Uniques(callers))
        })
    }

    /// Adds what was counted between two times. With a step, minutes stay separate if it asks for them.
    fn hours(
        &self,
        plan: &QueryPlan,
        (from, to): (u64, u64),
        (step, parts): (Option<u64>, Parts),
        mut add: impl FnMut(GroupKey, u64, RowContent<'_>) -> Result<(), DecodeError>,
    ) -> Result<(), StoreError> {
        let by_hour = step.is_none_or(|step| step.is_multiple_of(HOUR) && plan.from.is_multiple_of(HOUR));
        let range = (from / HOUR, to.div_ceil(HOUR));
        self.rows(plan, RowPeriod::Hour, range, |cube, hour, group, data| {
            let start = hour * HOUR;
            let is_whole = start >= from && start + HOUR <= to;
            if plan.resolution >= HOUR || (by_hour && is_whole) {
                return Ok(add(group, start, RowContent::Row(data, parts.sketches))?);
            }
            let row = Row::decode(cube, data, parts)?;
            let is_asked = |at: u64| at >= from && at < to;
            for (minute, sums) in row.minutes {
                let at = start + u64::from(minute) * MINUTE;
                if is_asked(at) {
                    let cell = Cell {
                        sums,
                        sketches: Default::default(),
                    };
                    add(group, at, RowContent::Cell(&cell))?;
                }
            }
            for (minute, sketch) in row.sketches {
                let at = start + u64::from(minute) * MINUTE;
                if is_asked(at) {
                    let mut cell = Cell::default();
                    cell.sketches[0] = sketch;
                    add(group, at, RowContent::Cell(&cell))?;
                }
            }
            Ok(())
        })?;
        self.callers(plan, "hour", range, |group, hour, callers| {
            add(group, hour * HOUR, RowContent::Uniques(callers))
        })
    }

    fn rows(
        &self,
        plan: &QueryPlan,
        span: RowPeriod,
        (first, last): (u64, u64),
        mut each: impl FnMut(Cube, u64, GroupKey, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Source::Cube(cube) = plan.source else {
            return Ok(());
        };
        let filters = self.filters(plan)?;
        let mut key = Vec::new();
        for at in first..last {
            let mut select = match span {
                RowPeriod::Hour => self.connection.prepare_cached(&format!(
                    "SELECT key, data FROM tier_{} WHERE hour = ?1 AND cube = ?2",
                    self.tiers.tier(at)
                ))?,
                RowPeriod::Day => self
                    .connection
                    .prepare_cached("SELECT key, data FROM day_row WHERE day = ?1 AND cube = ?2")?,
            };
            let mut rows = select.query((at as i64, cube.number()))?;
            while let Some(row) = rows.next()? {
                names::decode(row.get_ref(0)?.as_blob().unwrap_or_default(), &mut key)?;
                if let Some(group) = self.group(plan, &filters, &key) {
                    each(cube, at, group, row.get_ref(1)?.as_blob().unwrap_or_default())?;
                }
            }
        }
        Ok(())
    }

    fn callers(
        &self,
        plan: &QueryPlan,
        span: &str,
        (first, last): (u64, u64),
        mut each: impl FnMut(GroupKey, u64, &Uniques) -> Result<(), DecodeError>,
    ) -> Result<(), StoreError> {
        if plan.source != Source::Uniques {
            return Ok(());
        }
        let filters = self.filters(plan)?;
        let mut select = self.connection.prepare_cached(&format!(
            "SELECT {span}, environment, service, data FROM {span}_callers WHERE {span} >= ?1 AND {span} < ?2"
        ))?;
        let mut rows = select.query((first as i64, last as i64))?;
        while let Some(row) = rows.next()? {
            let key = [row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64];
            if let Some(group) = self.group(plan, &filters, &key) {
                let mut callers = Uniques::default();
                callers.merge_encoded(&mut Reader::new(row.get_ref(3)?.as_blob().unwrap_or_default()))?;
                each(group, row.get::<_, i64>(0)? as u64, &callers)?;
            }
        }
        Ok(())
    }
}

/// The gaps in the time of a plan.
pub fn gaps(connection: &Connection, plan: &QueryPlan, now: u64) -> Result<Vec<Gap>, StoreError> {
    let (from, to) = (plan.from / MINUTE, plan.to.min(now).div_ceil(MINUTE));
    let mut gaps = Vec::new();
    let mut select = connection.prepare_cached(
        "SELECT gateway, first, last, reason FROM gap WHERE first < ?2 AND last >= ?1 ORDER BY first, gateway LIMIT 100",
    )?;
    let mut rows = select.query((from as i64, to as i64))?;
    while let Some(row) = rows.next()? {
        gaps.push(Gap {
            gateway: row.get(0)?,
            from: row.get::<_, i64>(1)? as u64 * MINUTE,
            to: (row.get::<_, i64>(2)? as u64 + 1) * MINUTE,
            reason: row.get(3)?,
        });
    }
    let mut select = connection.prepare_cached("SELECT name, complete FROM gateway WHERE closed = 0")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let complete = row.get::<_, i64>(1)? as u64;
        if complete + SILENT < now / MINUTE && complete + 1 < to {
            gaps.push(Gap {
                gateway: row.get(0)?,
                from: (complete + 1) * MINUTE,
                to: now,
                reason: "the gateway has not reported since".to_owned(),
            });
        }
    }
    Ok(gaps)
}
