//! A rule: what is watched, when it fires, and who is notified.

use crate::query::{
    Length, Metric, OneOrMany, Query, QueryError, QueryPlan, QueryResponse, TimePoint, WORKSPACE,
    check_values, dimension, time,
};
use crate::retention::Retention;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The shortest and the longest period, in seconds.
const PERIODS: std::ops::RangeInclusive<u64> = 120..=86_400;
/// Groups of one rule, at most.
const MAX_GROUPS: usize = 100;

/// How a value is compared with the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// Above.
    #[serde(rename = ">")]
    Above,
    /// At least.
    #[serde(rename = ">=")]
    AtLeast,
    /// Below.
    #[serde(rename = "<")]
    Below,
    /// At most.
    #[serde(rename = "<=")]
    AtMost,
}

/// The meaning of a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoData {
    /// A separate state.
    #[default]
    NoData,
    /// The state stays as it is.
    Keep,
    /// As if the value were 0.
    Zero,
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// To be known.
    Info,
    /// To be reviewed.
    #[default]
    Warning,
    /// To be acted on.
    Critical,
}

/// A receiver of notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Channel {
    /// Weir's own log.
    Log,
    /// A server, by a POST with JSON.
    Webhook {
        /// Its URL.
        url: String,
    },
    /// A mail.
    Mail {
        /// The address.
        to: String,
    },
}

/// How fast the error budget of an objective is used up: 1 uses it up exactly at the end of its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurnRate {
    /// The target share of good calls, such as 0.999.
    pub objective: f64,
    /// A second, shorter period in which the rate must be exceeded, too: the alert ends soon after the errors do.
    pub short: Length,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// Its name.
    pub name: String,
    /// The metric.
    pub metric: String,
    /// The value is the metric divided by this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// How the value is compared.
    pub operator: Operator,
    /// With what.
    pub threshold: f64,
    /// The time that the value is of, up to now: 2 minutes to a day.
    pub period: Length,
    /// Only calls that have one of each of these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, OneOrMany>,
    /// An alert for each value of these dimensions, at most two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_by: Vec<String>,
    /// The value is divided by that of so much earlier, such as `1w`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Length>,
    /// The value is the rate at which the error budget is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_rate: Option<BurnRate>,
    /// Groups with fewer calls in the period have no value.
    #[serde(default)]
    pub min_calls: u64,
    /// The meaning of a missing value.
    #[serde(default)]
    pub no_data: NoData,
    /// How much it matters.
    #[serde(default)]
    pub severity: Severity,
    /// The receivers of notifications.
    #[serde(default)]
    pub channels: Vec<Channel>,
    /// No channel is used until then, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted_until: Option<u64>,
    /// Whether it is evaluated.
    #[serde(default = "yes")]
    pub enabled: bool,
}

fn yes() -> bool {
    true
}

/// A value for each group; `None`: there is no data.
pub type Values = BTreeMap<BTreeMap<String, String>, Option<f64>>;

impl Rule {
    /// Checks it.
    ///
    /// # Errors
    /// Something is.
    pub fn check(&self) -> Result<(), QueryError> {
        if self.name.trim().is_empty() {
            return Err(QueryError::new("name", "it is empty"));
        }
        for (field, name) in [("metric", Some(&self.metric)), ("over", self.over.as_ref())] {
            if let Some(name) = name {
                Metric::read(field, name)?;
            }
        }
        let period = time::length("period", &self.period)?;
        if !PERIODS.contains(&period) {
            return Err(QueryError::new(
                "period",
                "it must be between 2 minutes and 24 hours",
            ));
        }
        if !self.threshold.is_finite() {
            return Err(QueryError::new("threshold", "it must be a number"));
        }
        for name in &self.group_by {
            dimension("group_by", name)?;
        }
        for (name, values) in self.filter.iter().filter(|(name, _)| *name != WORKSPACE) {
            check_values(dimension("filter", name)?, values.values())?;
        }
        let ways = usize::from(self.over.is_some())
            + usize::from(self.compare.is_some())
            + usize::from(self.burn_rate.is_some());
        if ways > 1 {
            return Err(QueryError::new(
                "over",
                "only one of over, compare and burn_rate can be given",
            ));
        }
        if let Some(burn) = &self.burn_rate {
            if !(0.0..1.0).contains(&burn.objective) {
                return Err(QueryError::new(
                    "burn_rate.objective",
                    "it must be a share below 1, such as 0.999",
                ));
            }
            if time::length("burn_rate.short", &burn.short)? >= period {
                return Err(QueryError::new(
                    "burn_rate.short",
                    "it must be shorter than the period",
                ));
            }
            if Metric::of(&self.metric).is_none_or(|it| it.unit() != "share") {
                return Err(QueryError::new(
                    "metric",
                    "a burn rate needs a share, such as share_5xx",
                ));
            }
        }
        for channel in &self.channels {
            if let Channel::Mail { to } = channel {
                crate::mail_address::check("channels", to)?;
            }
            if let Channel::Webhook { url } = channel
                && !(url.starts_with("http://") || url.starts_with("https://"))
            {
                return Err(QueryError::new(
                    "channels",
                    format!("'{url}' is not a valid URL; write http://… or https://…"),
                ));
            }
        }
        // Whether all of it is kept, the query's plan finds out.
        for query in self.queries(1_000_000) {
            QueryPlan::check(&query, &Retention::default(), 1_000_000)?;
        }
        Ok(())
    }

    /// Its queries at a time: the period, then the shorter one of a burn rate.
    pub fn queries(&self, now: u64) -> Vec<Query> {
        let period = time::length("period", &self.period).unwrap_or(*PERIODS.start());
        let mut metrics = vec![self.metric.clone()];
        metrics.extend(self.over.clone());
        let has_calls = crate::query::Metric::of(&self.metric) != Some(Metric::UniqueCallers);
        if has_calls && !metrics.iter().any(|it| it == "calls") {
            metrics.push("calls".to_owned());
        }
        let query = |period: u64| Query {
            metrics: metrics.clone(),
            from: TimePoint::Unix(now.saturating_sub(period)),
            to: Some(TimePoint::Unix(now)),
            group_by: self.group_by.clone(),
            filter: self.filter.clone(),
            limit: Some(MAX_GROUPS),
            compare: self.compare.clone(),
            ..Query::of("calls", 0, 0)
        };
        let mut queries = vec![query(period)];
        if let Some(burn) = &self.burn_rate {
            queries.push(query(
                time::length("burn_rate.short", &burn.short).unwrap_or(period),
            ));
        }
        queries
    }

    /// The values in the answers to its queries.
    pub fn values(&self, answers: &[QueryResponse]) -> Values {
        let Some((answer, others)) = answers.split_first() else {
            return Values::default();
        };
        let whole = answer.to.saturating_sub(answer.from);
        // Nothing is known about a time in which no gateway reported.
        let is_silent = answer
            .gaps
            .iter()
            .any(|gap| gap.to.min(answer.to).saturating_sub(gap.from.max(answer.from)) >= whole);
        let mut values = Values::new();
        for frame in &answer.frames {
            let group = frame
                .group
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect();
            let get = |total: &BTreeMap<&str, Option<f64>>, name: &str| total.get(name).copied().flatten();
            let calls = get(&frame.total, "calls");
            let has_calls = calls.is_none_or(|calls| calls >= self.min_calls as f64);
            let value =
                get(&frame.total, &self.metric).filter(|_| has_calls && !(is_silent && calls == Some(0.0)));
            let ratio = |part: Option<f64>, whole: Option<f64>| match (part, whole) {
                (Some(part), Some(whole)) if whole > 0.0 => Some(part / whole),
                _ => None,
            };
            let value = if let Some(over) = &self.over {
                ratio(value, get(&frame.total, over))
            } else if self.compare.is_some() {
                let before = frame.compare.as_ref();
                ratio(value, before.and_then(|before| get(&before.total, &self.metric)))
            } else if let Some(burn) = &self.burn_rate {
                let short = others
                    .first()
                    .and_then(|other| other.frames.iter().find(|it| it.group == frame.group));
                // Without calls in the short time, no errors are in it.
                let short = short.map_or(0.0, |it| get(&it.total, &self.metric).unwrap_or(0.0));
                value.map(|long| long.min(short) / (1.0 - burn.objective))
            } else {
                value
            };
            values.insert(group, value);
        }
        values
    }

    /// Whether a value is beyond the threshold.
    pub fn fires(&self, value: f64) -> bool {
        match self.operator {
            Operator::Above => value > self.threshold,
            Operator::AtLeast => value >= self.threshold,
            Operator::Below => value < self.threshold,
            Operator::AtMost => value <= self.threshold,
        }
    }
}
