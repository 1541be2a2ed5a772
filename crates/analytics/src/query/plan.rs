//! Which cube answers a query, in which steps; or why none does.

use super::{
    Length, MAX_GROUPS, MAX_LIMIT, MAX_POINTS, Metric, Query, QueryError, USUAL_POINTS, WORKSPACE,
    check_values, dimension, time,
};
use crate::cell::{Field, Parts};
use crate::cube::{Cube, Dimension, Position};
use crate::retention::{DAY, HOUR, MINUTE, Retention};
use std::collections::BTreeMap;

/// Steps that `auto` chooses from, in seconds.
const STEPS: [u64; 12] = [
    60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000, 7_776_000,
];
/// Of a longer time than this, in seconds, `auto` chooses days. A week is shown by the half hour.
const BY_DAYS: u64 = 8 * DAY;
/// The dimensions that unique callers are kept by.
const UNIQUE_DIMENSIONS: [Dimension; 2] = [Dimension::Environment, Dimension::Service];

/// The table that answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A cube.
    Cube(Cube),
    /// The estimates of unique callers.
    Uniques,
}

/// A query as a store carries it out.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPlan {
    /// The table of the rows.
    pub source: Source,
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// From when, a multiple of the resolution.
    pub from: u64,
    /// Until when, likewise.
    pub to: u64,
    /// The step of series.
    pub step: Option<u64>,
    /// The finest step of what is asked for.
    pub resolution: u64,
    /// The dimensions that are grouped by, and where their values are.
    pub group_by: Vec<(Dimension, Position)>,
    /// The dimensions of the filter, the positions of their values, and the values that are wanted.
    pub filter: Vec<(Position, Vec<String>)>,
    /// Groups that are shown.
    pub limit: usize,
    /// The place of the metric that groups are ordered by, and whether the largest come first.
    pub order: (usize, bool),
    /// How much earlier the time lies that is compared with.
    pub compare: Option<u64>,
    /// Notes for the answer.
    pub notes: Vec<String>,
}

/// The parts of a cube that a query needs.
struct Needs {
    dimensions: Vec<Dimension>,
    fields: Vec<Field>,
    sketches: [bool; 3],
    has_uniques: bool,
    /// Whether some of the dimensions are those of groups.
    has_groups: bool,
}

impl QueryPlan {
    /// The plan of a query.
    ///
    /// # Errors
    /// The query asks for what does not exist or is not kept.
    pub fn of(query: &Query, retention: &Retention, now: u64) -> Result<Self, QueryError> {
        let from = time::read("from", &query.from, now)?;
        let to = match &query.to {
            Some(to) => time::read("to", to, now)?,
            None => now,
        };
        if from >= to {
            return Err(QueryError::new("from", "must be before `to`"));
        }
        let compare = match &query.compare {
            Some(length) => Some(time::length("compare", length)?),
            None => None,
        };
        if compare == Some(0) {
            return Err(QueryError::new(
                "compare",
                "it compares with the same time; write '1d' or '1w'",
            ));
        }
        let metrics = metrics(query)?;
        let (groups, filters) = (groups(query)?, filters(query)?);
        let needs = Needs {
            dimensions: groups
                .iter()
                .copied()
                .chain(filters.iter().map(|(it, _)| *it))
                .collect(),
            fields: metrics.iter().flat_map(|it| it.fields()).copied().collect(),
            sketches: sketches(&metrics),
            has_uniques: metrics.contains(&Metric::UniqueCallers),
            has_groups: !groups.is_empty(),
        };
        let source = choose(&needs, &metrics)?;
        let oldest = now.saturating_sub(from.saturating_sub(compare.unwrap_or(0)));
        let (resolution, mut notes) = resolution(source, &needs, retention, oldest);
        let (from, to) = (
            from / resolution * resolution,
            to.div_ceil(resolution) * resolution,
        );
        let step = step(query, from, to, resolution, &mut notes)?;
        let (from, to) = match step {
            Some(step) => (from / step * step, to.div_ceil(step) * step),
            None => (from, to),
        };
        let compare = compare.map(|it| it.div_ceil(step.unwrap_or(resolution)) * step.unwrap_or(resolution));
        let position = |dimension| match source {
            Source::Cube(cube) => cube.position(dimension),
            Source::Uniques => {
                let place = UNIQUE_DIMENSIONS.iter().position(|it| *it == dimension);
                place.map(Position::Value)
            }
        };
        Ok(Self {
            source,
            order: order(query, &metrics)?,
            metrics,
            from,
            to,
            step,
            resolution,
            group_by: groups
                .into_iter()
                .filter_map(|it| Some((it, position(it)?)))
                .collect(),
            filter: filters
                .into_iter()
                .filter_map(|(it, values)| Some((position(it)?, values)))
                .collect(),
            limit: limit(query)?,
            compare,
            notes,
        })
    }

    /// Whether a query can be answered once services are in the place of workspaces.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn check(query: &Query, retention: &Retention, now: u64) -> Result<(), QueryError> {
        let mut query = query.clone();
        if let Some(workspaces) = query.filter.remove(WORKSPACE) {
            let service = Dimension::Service.as_str().to_owned();
            query.filter.entry(service).or_insert(workspaces);
        }
        Self::of(&query, retention, now).map(drop)
    }

    /// The same plan for the time that is compared with.
    pub fn earlier(&self) -> Option<Self> {
        let back = self.compare?;
        Some(Self {
            from: self.from.checked_sub(back)?,
            to: self.to.checked_sub(back)?,
            ..self.clone()
        })
    }

    /// Which parts of rows it reads.
    pub fn parts(&self) -> Parts {
        let sketches = sketches(&self.metrics);
        let is_fine = self.resolution < HOUR;
        Parts {
            sketches,
            has_minutes: is_fine,
            has_minute_sketches: is_fine && sketches[0],
        }
    }

    /// Whether groups can be ranked by their sums alone, and the sketches of their totals made of those of the steps.
    pub fn ranks_by_sums(&self) -> bool {
        let order = self.metrics.get(self.order.0);
        self.step.is_some() && order.is_some_and(|metric| metric.percentile().is_none())
    }

    /// The beginnings of its steps.
    pub fn times(&self) -> Vec<u64> {
        let Some(step) = self.step else {
            return Vec::new();
        };
        (self.from..self.to).step_by(step as usize).collect()
    }

    /// Whether sampled calls answer it.
    pub fn is_sampled(&self) -> bool {
        matches!(self.source, Source::Cube(cube) if cube.is_sampled())
    }
}

fn metrics(query: &Query) -> Result<Vec<Metric>, QueryError> {
    if query.metrics.is_empty() {
        return Err(QueryError::new("metrics", "name at least one, such as 'calls'"));
    }
    let mut metrics = Vec::new();
    for name in &query.metrics {
        let metric = Metric::read("metrics", name)?;
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    Ok(metrics)
}

fn groups(query: &Query) -> Result<Vec<Dimension>, QueryError> {
    if query.group_by.len() > 2 {
        return Err(QueryError::new(
            "group_by",
            "at most two dimensions can be grouped by",
        ));
    }
    query
        .group_by
        .iter()
        .map(|name| dimension("group_by", name))
        .collect()
}

fn filters(query: &Query) -> Result<Vec<(Dimension, Vec<String>)>, QueryError> {
    let one = |(name, values): (&String, &super::OneOrMany)| {
        let dimension = dimension("filter", name)?;
        check_values(dimension, values.values())?;
        Ok((dimension, values.values().to_vec()))
    };
    query.filter.iter().map(one).collect()
}

fn limit(query: &Query) -> Result<usize, QueryError> {
    match query.limit {
        _ if query.all_groups => Ok(MAX_GROUPS),
        None => Ok(10),
        Some(limit) if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
        Some(_) => Err(QueryError::new(
            "limit",
            format!("it must be between 1 and {MAX_LIMIT}"),
        )),
    }
}

fn order(query: &Query, metrics: &[Metric]) -> Result<(usize, bool), QueryError> {
    let Some(order) = &query.order else {
        return Ok((0, true));
    };
    let (name, is_largest) = match order.strip_prefix('-') {
        Some(name) => (name, false),
        None => (order.as_str(), true),
    };
    let place = metrics.iter().position(|it| it.as_str() == name);
    let place = place.ok_or_else(|| {
        let message = format!("'{name}' is not among the metrics of the query; add it there");
        QueryError::new("order", message)
    })?;
    Ok((place, is_largest))
}

fn sketches(metrics: &[Metric]) -> [bool; 3] {
    let mut sketches = [false; 3];
    for (latency, _) in metrics.iter().filter_map(|it| it.percentile()) {
        sketches[latency as usize] = true;
    }
    sketches
}

/// The first cube that has all that is needed.
fn choose(needs: &Needs, metrics: &[Metric]) -> Result<Source, QueryError> {
    if needs.has_uniques {
        if metrics.len() > 1 {
            let message = "unique_callers is stored separately; query it in a separate query";
            return Err(QueryError::new("metrics", message));
        }
        return match needs.dimensions.iter().find(|it| !UNIQUE_DIMENSIONS.contains(it)) {
            None => Ok(Source::Uniques),
            Some(other) => Err(QueryError::new(
                "metrics",
                format!(
                    "unique_callers is kept by environment and service only, not by {}",
                    other.as_str()
                ),
            )),
        };
    }
    let has_dimensions = |cube: &Cube| needs.dimensions.iter().all(|it| cube.position(*it).is_some());
    let fitting: Vec<Cube> = Cube::ALL.iter().copied().filter(has_dimensions).collect();
    let has_measures = |cube: &&Cube| {
        let kept = cube.sketches();
        let has_sketches = (0..3).all(|place| kept[place] || !needs.sketches[place]);
        let has_fields = !cube.is_sampled() || needs.fields.iter().all(|it| *it == Field::Calls);
        has_sketches && has_fields
    };
    // What is counted for sampled calls only is asked for by its own dimensions.
    match fitting.iter().find(has_measures) {
        Some(cube) => Ok(Source::Cube(*cube)),
        None => Err(unsupported_combination(needs, &fitting)),
    }
}

fn unsupported_combination(needs: &Needs, fitting: &[Cube]) -> QueryError {
    let names = |dimensions: &[Dimension]| {
        let names: Vec<&str> = dimensions.iter().map(|it| it.as_str()).collect();
        names.join(" + ")
    };
    if fitting.is_empty() {
        let kept: Vec<String> = Cube::ALL.iter().map(|cube| names(cube.dimensions())).collect();
        let message = format!(
            "calls are not counted by {} together; possible combinations: {}. Single calls are in the request log",
            names(&needs.dimensions),
            kept.join("; ")
        );
        let field = if needs.has_groups { "group_by" } else { "filter" };
        return QueryError::new(field, message);
    }
    let metrics = Metric::ALL.iter().filter(|metric| is_kept(fitting[0], **metric));
    let metrics: Vec<&str> = metrics.map(|it| it.as_str()).collect();
    let message = format!(
        "not all of them are kept by {}; these are: {}",
        names(&needs.dimensions),
        metrics.join(", ")
    );
    QueryError::new("metrics", message)
}

/// Whether a cube has a metric at all.
pub fn is_kept(cube: Cube, metric: Metric) -> bool {
    if metric == Metric::UniqueCallers {
        return false;
    }
    match metric.percentile() {
        Some((latency, _)) => cube.sketches()[latency as usize],
        None => !cube.is_sampled() || metric.fields().iter().all(|it| *it == Field::Calls),
    }
}

/// Whether a cube has a metric by the minute.
pub fn is_kept_by_minute(cube: Cube, metric: Metric) -> bool {
    match metric.percentile() {
        Some((latency, _)) => latency as usize == 0 && cube.has_minute_sketch(),
        None => metric.fields().iter().all(|it| cube.minute_fields().contains(it)),
    }
}

fn resolution(source: Source, needs: &Needs, retention: &Retention, age: u64) -> (u64, Vec<String>) {
    let Source::Cube(cube) = source else {
        return (retention.unique_resolution(age), Vec::new());
    };
    let mut resolution = retention.resolution(age);
    let mut notes = Vec::new();
    if needs.sketches[0] && cube.has_minute_sketch() {
        resolution = resolution.max(retention.sketch_resolution(age));
    }
    let by_hour = needs.fields.iter().any(|it| !cube.minute_fields().contains(it))
        || (needs.sketches[0] && !cube.has_minute_sketch())
        || needs.sketches[1]
        || needs.sketches[2];
    if by_hour && resolution < HOUR {
        resolution = HOUR;
        notes.push("one of the metrics is kept by the hour only, so the steps are hours".to_owned());
    }
    if needs.sketches[2] && age > retention.five_minutes {
        resolution = DAY;
        notes.push("of old calls, percentiles of the gateway's own time are kept by the day".to_owned());
    }
    if cube == Cube::CallerRoute {
        notes.push(
            "only the 2,000 most frequent pairs of an hour are kept apart; the rest is _other".to_owned(),
        );
    }
    (resolution, notes)
}

fn step(
    query: &Query,
    from: u64,
    to: u64,
    resolution: u64,
    notes: &mut Vec<String>,
) -> Result<Option<u64>, QueryError> {
    let auto = |most: u64, least: u64| {
        let fits = |step: &&u64| **step >= least && (to - from).div_ceil(**step) <= most;
        STEPS.iter().find(fits).copied()
    };
    let wanted = match &query.step {
        None => return Ok(None),
        Some(Length::Text(text)) if text == "auto" => {
            let longest = STEPS[STEPS.len() - 1];
            // Days are summed up, and 24 times fewer rows than hours.
            let least = if to - from > BY_DAYS { DAY } else { resolution };
            return Ok(Some(auto(USUAL_POINTS, least).unwrap_or(longest)));
        }
        Some(length) => time::length("step", length)?,
    };
    if wanted == 0 || !wanted.is_multiple_of(MINUTE) {
        return Err(QueryError::new(
            "step",
            "it must be a whole number of minutes, or 'auto'",
        ));
    }
    if wanted < resolution {
        let kept = match resolution {
            DAY => "days",
            HOUR => "hours",
            900 => "15 minutes",
            _ => "five minutes",
        };
        notes.push(format!(
            "this range is stored in steps of {kept}, so the answer has these steps"
        ));
    }
    let step = wanted.max(resolution).div_ceil(resolution) * resolution;
    if (to - from).div_ceil(step) > MAX_POINTS {
        let message = format!(
            "{} points are more than {MAX_POINTS}; write {} seconds or more, or 'auto'",
            (to - from).div_ceil(step),
            auto(MAX_POINTS, resolution).unwrap_or(step)
        );
        return Err(QueryError::new("step", message));
    }
    Ok(Some(step))
}

/// By metric: the cubes that have it, and whether by the minute. For the definition.
pub fn kept() -> BTreeMap<&'static str, BTreeMap<&'static str, u64>> {
    let mut kept = BTreeMap::new();
    for metric in Metric::ALL {
        let cubes = Cube::ALL.iter().filter(|cube| is_kept(**cube, *metric));
        let finest = |cube: &Cube| match is_kept_by_minute(*cube, *metric) {
            true => MINUTE,
            false => HOUR,
        };
        let cubes = cubes.map(|cube| (cube.as_str(), finest(cube)));
        kept.insert(metric.as_str(), cubes.collect());
    }
    kept
}

#[cfg(test)]
mod tests;
