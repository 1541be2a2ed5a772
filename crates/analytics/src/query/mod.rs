//! The query object: what to show, of which calls, over which time, in which steps.
//!
//! Boards, alerts, reports and export ask with the same object. [`plan`] finds the cube that holds what is asked for,
//! or says what is not kept; [`frames`] sums rows up. Both are pure; a store feeds them.

pub mod frames;
pub mod metric;
pub mod plan;
pub mod time;

pub use frames::{Frames, GroupKey};
pub use metric::Metric;
pub use plan::{QueryPlan, Source};

use crate::cube::{CLASSES, Dimension, OTHER, PROTOCOLS};
use crate::store::Gap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The most points of a frame.
pub const MAX_POINTS: u64 = 1_500;
/// Points of a frame if the query leaves the step to Weir, at most.
pub const USUAL_POINTS: u64 = 500;
/// The most groups of an answer.
pub const MAX_LIMIT: usize = 1_000;
/// Groups that are shown separately, at most; the rest is `_other`.
pub const MAX_GROUPS: usize = 100_000;

/// A name in filters that is no dimension: it stands for the services of workspaces. They are put in its place before a
/// store is asked.
pub const WORKSPACE: &str = "workspace";

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct QueryError {
    /// The field of the query.
    pub field: String,
    /// The fault, and the remedy.
    pub message: String,
}

impl QueryError {
    /// An error about a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// A value in a query: a text, or a number such as a status.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum ValueBody {
    Text(String),
    Number(u64),
}

impl From<ValueBody> for String {
    fn from(wanted: ValueBody) -> Self {
        match wanted {
            ValueBody::Text(text) => text,
            ValueBody::Number(number) => number.to_string(),
        }
    }
}

/// What [`OneOrMany`] is read from.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, a whole number, or a list of them")]
enum FilterBody {
    One(ValueBody),
    Many(Vec<ValueBody>),
}

impl From<FilterBody> for OneOrMany {
    fn from(wanted: FilterBody) -> Self {
        match wanted {
            FilterBody::One(value) => Self::One(value.into()),
            FilterBody::Many(values) => Self::Many(values.into_iter().map(String::from).collect()),
        }
    }
}

/// One value, or several of which one must match. Integers are read as texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(#[schemars(with = "ValueBody")] String),
    /// Several.
    Many(#[schemars(with = "Vec<ValueBody>")] Vec<String>),
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        FilterBody::deserialize(from).map(Self::from)
    }
}

impl OneOrMany {
    /// The values.
    pub fn values(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// A point in time: seconds since the Unix epoch, or a text such as `now`, `-1h`, or one of RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a time: whole seconds since 1970, or a text such as 'now' or '-1h'"
)]
pub enum TimePoint {
    /// Seconds since the Unix epoch.
    Unix(u64),
    /// In words.
    Text(String),
}

/// A length of time: seconds, or a text such as `5m`, `1d`, `1w`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a length of time: whole seconds, or a text such as '5m'"
)]
pub enum Length {
    /// Seconds.
    Seconds(u64),
    /// In words.
    Text(String),
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Names of metrics, at least one.
    pub metrics: Vec<String>,
    /// From when; a day ago if it is left out.
    #[serde(default = "a_day_ago")]
    pub from: TimePoint,
    /// Until when; without it, now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<TimePoint>,
    /// The step of the series; `auto` chooses one; without it, there are totals and no series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Length>,
    /// Dimensions to group by, at most two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_by: Vec<String>,
    /// Values of dimensions: only calls that have one of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, OneOrMany>,
    /// Groups that are shown; the rest is summed up as `_other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The metric by which groups are ordered, the largest first; with `-` before it, the smallest first. Without it,
    /// the first metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// How much earlier the time lies that each value is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Length>,
    /// Whether the answer includes commits and publications of the time; left out: only with series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<bool>,
    /// Whether all groups are shown separately, however many: [`MAX_GROUPS`] at most. No caller may ask for this.
    #[serde(skip)]
    pub all_groups: bool,
}

fn a_day_ago() -> TimePoint {
    TimePoint::Text("-24h".to_owned())
}

impl Query {
    /// Whether marks belong to its answer.
    pub fn wants_marks(&self) -> bool {
        self.marks.unwrap_or(self.step.is_some())
    }

    /// The whole traffic of a metric over a time.
    pub fn of(metric: &str, from: u64, to: u64) -> Self {
        Self {
            metrics: vec![metric.to_owned()],
            from: TimePoint::Unix(from),
            to: Some(TimePoint::Unix(to)),
            step: None,
            group_by: Vec::new(),
            filter: BTreeMap::new(),
            limit: None,
            order: None,
            compare: None,
            marks: None,
            all_groups: false,
        }
    }
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueryResponse {
    /// From when, as far as the resolution allows.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// The step of the series in seconds; `null`: there are none.
    pub step: Option<u64>,
    /// The finest step in which this is kept, in seconds.
    pub resolution: u64,
    /// Whether something is missing.
    pub partial: bool,
    /// The gaps in the data.
    pub gaps: Vec<Gap>,
    /// Whether the numbers are estimates from sampled calls.
    pub sampled: bool,
    /// Notes.
    pub notes: Vec<String>,
    /// The unit of each metric.
    pub units: BTreeMap<&'static str, &'static str>,
    /// The beginnings of the steps.
    pub times: Vec<u64>,
    /// A frame for each group.
    pub frames: Vec<Frame>,
    /// Commits and publications of this time, in order; a store of analytics does not know any.
    pub marks: Vec<ChartAnnotation>,
    /// What was asked for: the columns of tables.
    #[serde(skip)]
    pub columns: Columns,
}

/// The columns of an answer as a table, in the order in which they were asked for. They are there without any call, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// The dimensions that are grouped by.
    pub dimensions: Vec<&'static str>,
    /// The metrics.
    pub metrics: Vec<&'static str>,
    /// Whether each metric has the value of another time beside it.
    pub is_compared: bool,
}

/// The kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MarkKind")]
pub enum AnnotationKind {
    /// A commit of the configuration.
    Commit,
    /// A commit that changed a publication.
    Publication,
}

/// A commit or a publication on the time axis of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Mark")]
pub struct ChartAnnotation {
    /// Its kind.
    pub kind: AnnotationKind,
    /// When, in seconds since the Unix epoch.
    pub at: u64,
    /// The revision that the commit made.
    pub revision: u64,
    /// The user who created it.
    pub author: String,
    /// Why, in words.
    pub note: String,
    /// The publications that it changed, as `API/VERSION/ENVIRONMENT`; at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publications: Vec<String>,
    /// The API call that reads its changes.
    pub diff: String,
}

/// The values of a group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Frame {
    /// The values of the dimensions that are grouped by.
    pub group: BTreeMap<&'static str, String>,
    /// By metric: the value over the whole time; `null`: no value.
    pub total: BTreeMap<&'static str, Option<f64>>,
    /// By metric: the value of each step.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<&'static str, Vec<Option<f64>>>,
    /// The same for the time that is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<Box<ComparisonValues>>,
}

/// The values of the time that is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonValues {
    /// By metric: the value over the whole time.
    pub total: BTreeMap<&'static str, Option<f64>>,
    /// By metric: the value of each step.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// Checks the values that a filter asks for. Where only some can be, another one would find nothing and look like an
/// answer.
pub(crate) fn check_values(dimension: Dimension, values: &[String]) -> Result<(), QueryError> {
    let is_status = |it: &str| it.len() == 3 && it.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = |it: &str| match dimension {
        Dimension::Status => is_status(it) || it == OTHER,
        Dimension::Class => CLASSES.contains(&it),
        Dimension::Protocol => PROTOCOLS.contains(&it),
        Dimension::Method => {
            !it.bytes().any(|byte| byte.is_ascii_lowercase()) || ["other", OTHER].contains(&it)
        }
        _ => true,
    };
    let Some(wrong) = values.iter().find(|it| !is_known(it)) else {
        return Ok(());
    };
    let expected = match dimension {
        Dimension::Status if CLASSES.contains(&wrong.as_str()) => {
            format!("write a status such as '404', or filter by 'class': '{wrong}'")
        }
        Dimension::Status => "write a status such as '404'".to_owned(),
        Dimension::Class => format!("there are {}", CLASSES.join(", ")),
        Dimension::Protocol => format!("there are {}", PROTOCOLS.join(", ")),
        _ => "methods are written in capitals, unusual ones 'other'".to_owned(),
    };
    let message = format!("'{wrong}' is no {}: {expected}", dimension.as_str());
    Err(QueryError::new(format!("filter.{}", dimension.as_str()), message))
}

/// Reads the name of a dimension.
pub(crate) fn dimension(field: &str, name: &str) -> Result<Dimension, QueryError> {
    Dimension::of(name).ok_or_else(|| {
        let known: Vec<&str> = Dimension::ALL.iter().map(|it| it.as_str()).collect();
        QueryError::new(
            field,
            format!("there is no dimension '{name}'; there are {}", known.join(", ")),
        )
    })
}
