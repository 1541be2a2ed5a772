//! Answering queries: the server sums up groups and steps, and [`Frames`] makes the answer of them, as for any store.

use super::rows::Reader;
use super::schema::summed;
use super::{ClickhouseAnalytics, quoted};
use crate::cell::{Cell, Field};
use crate::cube::{OTHER, Position};
use crate::query::frames::RowContent;
use crate::query::{Frames, GroupKey, QueryPlan, QueryResponse, Source};
use crate::retention::{HOUR, MINUTE};
use crate::store::StoreError;
use crate::uniques::Uniques;
use foldhash::HashMap;

/// The separator of a group's names in one text.
const BETWEEN: &str = "\u{1}";

/// Numbers of the names that an answer has.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, u64>,
    texts: Vec<String>,
}

impl Names {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    fn text(&self, number: u64) -> String {
        self.texts.get(number as usize).cloned().unwrap_or_default()
    }
}

/// Which groups are shown separately.
enum GroupSplit<'g> {
    All,
    /// These; all others are one.
    Only(&'g [String]),
}

/// Rows of a table between two times.
struct TableRange {
    is_hours: bool,
    from: u64,
    to: u64,
}

/// Answers a plan.
pub fn answer(store: &ClickhouseAnalytics, plan: &QueryPlan, now: u64) -> Result<QueryResponse, StoreError> {
    let reading = TableReader {
        store,
        rolled: store.ledger.rolled_days()?.unwrap_or(0) * 24 * HOUR,
    };
    let mut names = Names::default();
    let mut frames = reading.totals(plan, &mut names)?;
    frames.choose(plan, |name| names.text(name));
    reading.series(plan, &mut frames, &mut names)?;
    let mut compared = None;
    let earlier = plan.earlier();
    if let Some(earlier) = &earlier {
        let mut before = reading.totals(earlier, &mut names)?;
        before.choose_as(&frames);
        reading.series(earlier, &mut before, &mut names)?;
        compared = Some((earlier, before));
    }
    let gaps = store.ledger.gaps(plan, now)?;
    Ok(frames.answer(plan, compared, gaps, |name| names.text(name)))
}

struct TableReader<'s> {
    store: &'s ClickhouseAnalytics,
    /// Up to here hours are summed up.
    rolled: u64,
}

impl TableReader<'_> {
    fn totals(&self, plan: &QueryPlan, names: &mut Names) -> Result<Frames, StoreError> {
        let mut frames = Frames::new(plan);
        self.read(plan, None, &GroupSplit::All, names, |group, _, part| {
            Ok(frames.add(group, part)?)
        })?;
        Ok(frames)
    }

    fn series(&self, plan: &QueryPlan, frames: &mut Frames, names: &mut Names) -> Result<(), StoreError> {
        let Some(step) = plan.step else {
            return Ok(());
        };
        let text = |group: &GroupKey| {
            let all: Vec<String> = group[..plan.group_by.len()]
                .iter()
                .map(|it| names.text(*it))
                .collect();
            all.join(BETWEEN)
        };
        let shown: Vec<String> = frames.displayed_groups().map(text).collect();
        self.read(
            plan,
            Some(step),
            &GroupSplit::Only(&shown),
            names,
            |group, at, part| Ok(frames.add_to_step(plan, group, at, part)?),
        )
    }

    /// The tables to read: hours where whole ones are asked for and summed up, minutes elsewhere.
    fn spans(&self, plan: &QueryPlan, step: Option<u64>) -> Vec<TableRange> {
        let by_hour = step.is_none_or(|step| step.is_multiple_of(HOUR) && plan.from.is_multiple_of(HOUR));
        let whole = (
            plan.from.div_ceil(HOUR) * HOUR,
            (plan.to / HOUR * HOUR).min(self.rolled),
        );
        let span = |is_hours: bool, from: u64, to: u64| TableRange { is_hours, from, to };
        // What is estimated is not summed up: it is soon deleted.
        let mut spans = match by_hour && !plan.is_sampled() && whole.0 < whole.1 {
            true => vec![
                span(false, plan.from, whole.0),
                span(true, whole.0, whole.1),
                span(false, whole.1, plan.to),
            ],
            false => vec![span(false, plan.from, plan.to)],
        };
        spans.retain(|it| it.from < it.to);
        spans
    }

    fn read(
        &self,
        plan: &QueryPlan,
        step: Option<u64>,
        apart: &GroupSplit<'_>,
        names: &mut Names,
        mut add: impl FnMut(GroupKey, u64, RowContent<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Source::Cube(cube) = plan.source else {
            return self.callers(plan, step, apart, names, add);
        };
        let mut fields = vec![Field::Calls];
        for field in plan.metrics.iter().flat_map(|it| it.fields()) {
            if !fields.contains(field) {
                fields.push(*field);
            }
        }
        let kinds: Vec<usize> = (0..3).filter(|kind| plan.parts().sketches[*kind]).collect();
        for span in self.spans(plan, step) {
            let of = TableQuery {
                plan,
                step,
                apart,
                span: &span,
                cube: Some(cube.number()),
            };
            let table = if span.is_hours { "weir_hour" } else { "weir_minute" };
            let sums: Vec<String> = fields.iter().map(|field| summed(*field)).collect();
            let rows = self.store.send(&of.sql(table, &sums.join(", "), "", ""), None)?;
            let mut reader = Reader::new(&rows);
            while !reader.is_empty() {
                let (group, at) = of.head(&mut reader, names)?;
                let mut cell = Cell::default();
                for field in &fields {
                    cell.sums.add(*field, reader.u64()?);
                }
                add(group, at, RowContent::Cell(&cell))?;
            }
            for kind in &kinds {
                let of_kind = format!(" AND kind = {kind}");
                let sql = of.sql(
                    &format!("{table}_times"),
                    "bucket, sum(count)",
                    &of_kind,
                    "bucket",
                );
                let rows = self.store.send(&sql, None)?;
                let mut reader = Reader::new(&rows);
                while !reader.is_empty() {
                    let (group, at) = of.head(&mut reader, names)?;
                    let mut cell = Cell::default();
                    let (bucket, count) = (reader.u16()?, reader.u64()?);
                    cell.sketches[*kind].add_to(bucket, count);
                    add(group, at, RowContent::Cell(&cell))?;
                }
            }
        }
        Ok(())
    }

    fn callers(
        &self,
        plan: &QueryPlan,
        step: Option<u64>,
        apart: &GroupSplit<'_>,
        names: &mut Names,
        mut add: impl FnMut(GroupKey, u64, RowContent<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let span = TableRange {
            is_hours: true,
            from: plan.from / HOUR * HOUR,
            to: plan.to.div_ceil(HOUR) * HOUR,
        };
        let of = TableQuery {
            plan,
            step,
            apart,
            span: &span,
            cube: None,
        };
        let rows = self.store.send(
            &of.sql("weir_callers", "register, max(rank)", "", "register"),
            None,
        )?;
        let mut reader = Reader::new(&rows);
        while !reader.is_empty() {
            let (group, at) = of.head(&mut reader, names)?;
            let mut callers = Uniques::default();
            callers.raise(usize::from(reader.u16()?), reader.u8()?);
            add(group, at, RowContent::Uniques(&callers))?;
        }
        Ok(())
    }
}

/// A part of what a plan asks for.
struct TableQuery<'p> {
    plan: &'p QueryPlan,
    step: Option<u64>,
    apart: &'p GroupSplit<'p>,
    span: &'p TableRange,
    cube: Option<u8>,
}

impl TableQuery<'_> {
    /// The statement: the names of each group, whether it is shown separately, its step, and the columns.
    fn sql(&self, table: &str, columns: &str, condition: &str, group_also: &str) -> String {
        let (at, seconds) = match self.span.is_hours {
            true => ("hour", HOUR),
            false => ("minute", MINUTE),
        };
        let mut groups = ["''".to_owned(), "''".to_owned()];
        for (place, (_, position)) in self.plan.group_by.iter().enumerate() {
            groups[place] = expression(*position);
        }
        let [mut first, mut second] = groups;
        let mut is_apart = "toUInt8(1)".to_owned();
        if let (GroupSplit::Only(shown), false) = (self.apart, self.plan.group_by.is_empty()) {
            let name = match self.plan.group_by.len() {
                1 => first.clone(),
                _ => format!("concat({first}, {}, {second})", quoted(BETWEEN)),
            };
            let shown: Vec<String> = shown.iter().map(|it| quoted(it)).collect();
            is_apart = match shown.is_empty() {
                true => "toUInt8(0)".to_owned(),
                false => format!("toUInt8({name} IN ({}))", shown.join(", ")),
            };
            first = format!("if({is_apart} = 1, {first}, '')");
            second = format!("if({is_apart} = 1, {second}, '')");
        }
        let step = match self.step {
            // Seconds since the beginning, in steps.
            Some(step) => format!(
                "toUInt64(intDiv(toUInt64({at}) * {seconds} - {}, {step}))",
                self.plan.from
            ),
            None => "toUInt64(0)".to_owned(),
        };
        let cube = self
            .cube
            .map_or(String::new(), |cube| format!(" AND cube_id = {cube}"));
        let also = if group_also.is_empty() {
            String::new()
        } else {
            format!(", {group_also}")
        };
        format!(
            "SELECT {first} AS g1, {second} AS g2, {is_apart} AS apart, {step} AS step, {columns} FROM {table} \
             WHERE {at} >= {} AND {at} < {}{cube}{condition}{} GROUP BY g1, g2, apart, step{also} FORMAT RowBinary",
            self.span.from / seconds,
            self.span.to.div_ceil(seconds),
            self.filters(),
        )
    }

    fn filters(&self) -> String {
        let mut out = String::new();
        for (position, values) in &self.plan.filter {
            let values: Vec<String> = values.iter().map(|it| quoted(it)).collect();
            out.push_str(&match values.is_empty() {
                true => " AND 0".to_owned(),
                false => format!(" AND {} IN ({})", expression(*position), values.join(", ")),
            });
        }
        out
    }

    /// Reads the begin of each row: the group, and the beginning of the step.
    fn head(&self, reader: &mut Reader<'_>, names: &mut Names) -> Result<(GroupKey, u64), StoreError> {
        let (first, second) = (reader.text()?, reader.text()?);
        let is_apart = reader.u8()? == 1;
        let at = self.plan.from + reader.u64()? * self.step.unwrap_or(0);
        let mut group = GroupKey::default();
        for (place, text) in [first, second]
            .into_iter()
            .take(self.plan.group_by.len())
            .enumerate()
        {
            group[place] = names.number(text);
        }
        match is_apart {
            true => Ok((group, at)),
            false => Ok((Frames::REST, at)),
        }
    }
}

/// The value of a dimension.
fn expression(position: Position) -> String {
    match position {
        Position::Value(place) => format!("d{}", place + 1),
        Position::ClassOf(place) => {
            let status = format!("d{}", place + 1);
            format!(
                "if(substring({status}, 1, 1) IN ('1', '2', '3', '4', '5'), concat(substring({status}, 1, 1), 'xx'), '{OTHER}')"
            )
        }
    }
}
