//! Reports: a board, or panels of its own, over the last week or month, as a mail with drawn charts and CSV.
//!
//! [`schedule`] decides when one is due and of which time it is, [`chart`] draws, [`render`] writes the mail. All of
//! them are pure: the time and the answers to the queries are arguments. **What it is not**: it asks no store and sends
//! nothing.

pub mod chart;
mod png;
pub mod render;
pub mod schedule;

pub use render::{Rendered, Section, render};
pub use schedule::{Period, ReportInterval, Schedule};

use crate::boards::{Board, Panel, check_panels, check_title};
use crate::mail_address;
use crate::query::{Length, Query, QueryError, QueryPlan, TimePoint};
use crate::retention::{HOUR, Retention};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Receivers of a report, at most.
const MAX_RECEIVERS: usize = 20;

/// A report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduledReport {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// Its title.
    pub title: String,
    /// The board that it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// The panels, if it shows no board.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panels: Vec<Panel>,
    /// When it is sent.
    pub schedule: Schedule,
    /// The addresses that get it.
    pub to: Vec<String>,
    /// Whether the numbers are attached as CSV.
    #[serde(default = "yes")]
    pub csv: bool,
    /// Whether it is sent by its schedule.
    #[serde(default = "yes")]
    pub enabled: bool,
}

fn yes() -> bool {
    true
}

impl ScheduledReport {
    /// Checks it. Whether its board exists, only the store of boards knows.
    ///
    /// # Errors
    /// Something is; the error names the field.
    pub fn check(&self, now: u64) -> Result<(), QueryError> {
        check_title("title", &self.title)?;
        self.schedule.check()?;
        check_receivers("to", &self.to)?;
        match (&self.board, self.panels.is_empty()) {
            (Some(_), true) => return Ok(()),
            (None, false) => check_panels(&self.panels)?,
            (Some(_), false) => {
                return Err(QueryError::new("panels", "give a board or panels, not both"));
            }
            (None, true) => {
                return Err(QueryError::new("board", "name a board, or give panels"));
            }
        }
        let period = self.schedule.last(now)?;
        for (place, panel) in self.panels.iter().enumerate() {
            let field = |error: QueryError| QueryError {
                field: format!("panels.{place}.query.{}", error.field),
                message: error.message,
            };
            QueryPlan::check(&query(&panel.query, period), &Retention::default(), now).map_err(field)?;
        }
        Ok(())
    }

    /// Its panels: its own, or those of its board.
    pub fn panels<'r>(&'r self, board: Option<&'r Board>) -> &'r [Panel] {
        board.map_or(&self.panels, |board| &board.panels)
    }

    /// The query for a panel: the period, compared with the one before.
    pub fn query_of(&self, board: Option<&Board>, panel: &Panel, period: Period) -> Query {
        let asked = board.map_or_else(|| panel.query.clone(), |board| board.query_of(panel));
        query(&asked, period)
    }
}

/// Series of reports are by the hour unless they say otherwise: `auto` would choose days of UTC for a month, whatever its
/// time zone.
fn query(asked: &Query, period: Period) -> Query {
    let step = asked.step.clone().map(|step| match step {
        Length::Text(text) if text == "auto" => Length::Seconds(HOUR),
        step => step,
    });
    Query {
        step,
        from: TimePoint::Unix(period.from),
        to: Some(TimePoint::Unix(period.to)),
        compare: asked
            .compare
            .clone()
            .or(Some(Length::Seconds(period.to - period.from))),
        marks: Some(false),
        ..asked.clone()
    }
}

/// Checks addresses.
///
/// # Errors
/// There are none, too many, or one that is no address.
pub fn check_receivers(field: &str, to: &[String]) -> Result<(), QueryError> {
    if to.is_empty() || to.len() > MAX_RECEIVERS {
        let message = format!("there must be 1 to {MAX_RECEIVERS} addresses, not {}", to.len());
        return Err(QueryError::new(field, message));
    }
    to.iter().try_for_each(|it| mail_address::check(field, it))
}

#[cfg(test)]
mod tests;
