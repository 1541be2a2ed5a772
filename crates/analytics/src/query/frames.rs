//! Sums rows up to the frames of an answer.
//!
//! In a first pass come the totals of all groups, from which those that are shown are chosen; in a second one, if series
//! are asked for, their steps. So memory is bounded by the groups that are shown, not by those that there are. Sketches
//! are most of what there is to read; where steps follow, the first pass leaves them out ([`QueryPlan::ranks_by_sums`]).

use super::plan::QueryPlan;
use super::{Columns, ComparisonValues, Frame, MAX_GROUPS, Metric, QueryResponse};
use crate::cell::Cell;
use crate::cube::OTHER;
use crate::store::Gap;
use crate::uniques::Uniques;
use crate::varint::{DecodeError, Reader};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;

/// The values of a group: numbers of names. A group has at most two.
pub type GroupKey = [u64; 2];

/// The sums for a group or a step.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    cell: Cell,
    uniques: Uniques,
}

impl Sum {
    fn value(&self, metric: Metric, seconds: u64) -> Option<f64> {
        match metric {
            Metric::UniqueCallers => Some(self.uniques.estimate() as f64),
            metric => metric.value(&self.cell, seconds),
        }
    }
}

/// The values of a row.
#[derive(Debug, Clone, Copy)]
pub enum RowContent<'p> {
    /// Sums and sketches.
    Cell(&'p Cell),
    /// The total of a stored row; of its sketches, those that are wanted.
    Row(&'p [u8], [bool; 3]),
    /// Callers.
    Uniques(&'p Uniques),
}

impl Sum {
    fn add(&mut self, part: RowContent<'_>) -> Result<(), DecodeError> {
        match part {
            RowContent::Cell(cell) => self.cell.merge(cell),
            RowContent::Row(bytes, sketches) => self.cell.merge_encoded(&mut Reader::new(bytes), sketches)?,
            RowContent::Uniques(uniques) => self.uniques.merge(uniques),
        }
        Ok(())
    }
}

/// Groups on their way to frames.
pub struct Frames {
    totals: HashMap<GroupKey, Sum>,
    /// Once chosen: the groups that are shown, in order, with their steps.
    displayed: Vec<GroupKey>,
    series: HashMap<GroupKey, Vec<Option<Sum>>>,
    points: usize,
}

/// Orders groups of equal values by their names, as far as they may be shown.
fn order_equal(groups: &mut [(f64, GroupKey)], plan: &QueryPlan, name: impl Fn(u64) -> String) {
    let mut start = 0;
    while start < groups.len().min(plan.limit) {
        let equal = groups[start..]
            .iter()
            .take_while(|it| it.0.total_cmp(&groups[start].0).is_eq());
        let end = start + equal.count();
        if end - start > 1 {
            groups[start..end].sort_by_cached_key(|(_, group)| {
                let names = group[..plan.group_by.len()].iter().map(|it| name(*it));
                names.collect::<Vec<String>>()
            });
        }
        start = end;
    }
}

impl Frames {
    /// The group of all that is not shown.
    pub const REST: GroupKey = [u64::MAX, u64::MAX];

    /// Nothing yet.
    pub fn new(plan: &QueryPlan) -> Self {
        Self {
            totals: HashMap::default(),
            displayed: Vec::new(),
            series: HashMap::default(),
            points: plan.times().len(),
        }
    }

    /// Adds to the total of a group.
    ///
    /// # Errors
    /// The part is a row that is damaged.
    pub fn add(&mut self, group: GroupKey, part: RowContent<'_>) -> Result<(), DecodeError> {
        let is_known = self.totals.len() < MAX_GROUPS || self.totals.contains_key(&group);
        let group = if is_known { group } else { Self::REST };
        self.totals.entry(group).or_default().add(part)
    }

    /// The groups that are shown separately, in order.
    pub fn displayed_groups(&self) -> impl Iterator<Item = &GroupKey> {
        self.displayed.iter().filter(|group| **group != Self::REST)
    }

    /// Chooses the groups that are shown; all others become one. Equal ones are ordered by their names, so that the
    /// answer does not depend on the store.
    pub fn choose(&mut self, plan: &QueryPlan, name: impl Fn(u64) -> String) {
        let (place, is_largest) = plan.order;
        let (metric, seconds) = (plan.metrics[place], plan.to - plan.from);
        let mut groups: Vec<(f64, GroupKey)> = self
            .totals
            .iter()
            .filter(|(group, _)| **group != Self::REST)
            .map(|(group, sum)| (sum.value(metric, seconds).unwrap_or(0.0), *group))
            .collect();
        groups.sort_by(|(a, a_group), (b, b_group)| {
            let order = if is_largest {
                b.total_cmp(a)
            } else {
                a.total_cmp(b)
            };
            order.then(a_group.cmp(b_group))
        });
        order_equal(&mut groups, plan, name);
        self.displayed = groups
            .into_iter()
            .map(|(_, group)| group)
            .take(plan.limit)
            .collect();
        self.fold();
    }

    /// Shows the groups that another one shows.
    pub fn choose_as(&mut self, other: &Self) {
        self.displayed.clone_from(&other.displayed);
        self.displayed.retain(|group| *group != Self::REST);
        self.fold();
    }

    /// Puts the groups that are not shown together.
    fn fold(&mut self) {
        let displayed: HashSet<&GroupKey> = self.displayed.iter().collect();
        let hidden: Vec<GroupKey> = self
            .totals
            .keys()
            .copied()
            .filter(|group| !displayed.contains(group))
            .collect();
        if hidden.is_empty() {
            return;
        }
        let mut rest = Sum::default();
        for sum in hidden.iter().filter_map(|group| self.totals.remove(group)) {
            rest.cell.merge(&sum.cell);
            rest.uniques.merge(&sum.uniques);
        }
        self.totals.insert(Self::REST, rest);
        self.displayed.push(Self::REST);
    }

    /// Adds to a step of a group, once groups are chosen.
    ///
    /// # Errors
    /// The part is a row that is damaged.
    pub fn add_to_step(
        &mut self,
        plan: &QueryPlan,
        group: GroupKey,
        at: u64,
        part: RowContent<'_>,
    ) -> Result<(), DecodeError> {
        let Some(step) = plan.step else {
            return Ok(());
        };
        let is_shown = group != Self::REST && self.totals.contains_key(&group);
        let group = if is_shown { group } else { Self::REST };
        let points = self.points;
        let series = self.series.entry(group).or_insert_with(|| vec![None; points]);
        let place = (at.saturating_sub(plan.from) / step) as usize;
        match series.get_mut(place) {
            Some(point) => point.get_or_insert_with(Sum::default).add(part),
            None => Ok(()),
        }
    }

    /// Makes the sketches of totals of those of the steps, if totals were read without theirs.
    pub fn total_sketches(&mut self) {
        for (group, steps) in &self.series {
            let Some(total) = self.totals.get_mut(group) else {
                continue;
            };
            for step in steps.iter().flatten() {
                for (whole, part) in total.cell.sketches.iter_mut().zip(&step.cell.sketches) {
                    whole.merge(part);
                }
            }
        }
    }

    /// The values of a group, by metric.
    fn values(&self, plan: &QueryPlan, group: &GroupKey) -> ComparisonValues {
        let (seconds, empty) = (plan.to - plan.from, Sum::default());
        let total = self.totals.get(group).unwrap_or(&empty);
        let mut values = BTreeMap::new();
        if let Some(step) = plan.step {
            let points = self.series.get(group);
            for metric in &plan.metrics {
                let value = |point: &Option<Sum>| match point {
                    Some(sum) => sum.value(*metric, step),
                    None => metric.value(&empty.cell, step),
                };
                let points: Vec<Option<f64>> = match points {
                    Some(points) => points.iter().map(value).collect(),
                    None => vec![metric.value(&empty.cell, step); self.points],
                };
                values.insert(metric.as_str(), points);
            }
        }
        let total = plan
            .metrics
            .iter()
            .map(|it| (it.as_str(), total.value(*it, seconds)));
        ComparisonValues {
            total: total.collect(),
            values,
        }
    }

    /// The answer. `name` returns the names of groups' values.
    pub fn answer(
        mut self,
        plan: &QueryPlan,
        compared: Option<(&QueryPlan, Self)>,
        gaps: Vec<Gap>,
        name: impl Fn(u64) -> String,
    ) -> QueryResponse {
        if self.totals.is_empty() && plan.group_by.is_empty() {
            // Nothing at all is one frame of nothing.
            self.totals.insert([0, 0], Sum::default());
            self.displayed.push([0, 0]);
        }
        let frame = |group: &GroupKey| {
            let names = plan.group_by.iter().zip(group).map(|((dimension, _), value)| {
                let value = if *group == Self::REST {
                    OTHER.to_owned()
                } else {
                    name(*value)
                };
                (dimension.as_str(), value)
            });
            let values = self.values(plan, group);
            Frame {
                group: names.collect(),
                total: values.total,
                values: values.values,
                compare: compared
                    .as_ref()
                    .map(|(plan, frames)| Box::new(frames.values(plan, group))),
            }
        };
        QueryResponse {
            from: plan.from,
            to: plan.to,
            step: plan.step,
            resolution: plan.resolution,
            partial: !gaps.is_empty(),
            gaps,
            sampled: plan.is_sampled(),
            notes: plan.notes.clone(),
            units: plan.metrics.iter().map(|it| (it.as_str(), it.unit())).collect(),
            times: plan.times(),
            frames: self.displayed.iter().map(frame).collect(),
            marks: Vec::new(),
            columns: Columns {
                dimensions: plan.group_by.iter().map(|(it, _)| it.as_str()).collect(),
                metrics: plan.metrics.iter().map(|it| it.as_str()).collect(),
                is_compared: compared.is_some(),
            },
        }
    }
}
