//! Boards: panels, each with a query, that are looked at together. Some are given with Weir, others are saved by people.
//!
//! **What it is not**: it keeps nothing and draws nothing. A board is a document; who shows it asks its queries.

use crate::query::{Length, OneOrMany, Query, QueryError, QueryPlan, TimePoint, time};
use crate::retention::Retention;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Panels of a board, at most.
pub const MAX_PANELS: usize = 30;
/// The longest title, and the longest description, in characters.
const MAX_TITLE: usize = 200;
const MAX_DESCRIPTION: usize = 2_000;
/// Columns of a board.
const COLUMNS: u8 = 12;

/// How a panel shows its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PanelKind {
    /// A line for each group, over the time.
    Line,
    /// The same, with areas on top of each other.
    Area,
    /// A bar for each group.
    Bar,
    /// A row for each group.
    Table,
    /// One number for each metric.
    Stat,
}

impl PanelKind {
    /// Whether it shows a series.
    pub const fn has_series(self) -> bool {
        matches!(self, Self::Line | Self::Area)
    }
}

/// A part of a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// How the answer is shown.
    pub kind: PanelKind,
    /// Its width, in columns of 12.
    #[serde(default = "half")]
    pub width: u8,
    /// Its query. The board's time and filter take precedence over those of the query.
    pub query: Query,
}

fn half() -> u8 {
    COLUMNS / 2
}

/// A board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// From when all panels show calls; without it, each by its own query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<TimePoint>,
    /// Until when; without it, now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<TimePoint>,
    /// How much earlier the time lies that all panels are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Length>,
    /// Only calls that have one of each of these values, in all panels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, OneOrMany>,
    /// The panels, in order.
    pub panels: Vec<Panel>,
}

impl Board {
    /// The query of a panel with the board's time, comparison and filter.
    pub fn query_of(&self, panel: &Panel) -> Query {
        let mut query = panel.query.clone();
        if let Some(from) = &self.from {
            (query.from, query.to) = (from.clone(), self.to.clone());
        }
        if self.compare.is_some() {
            query.compare.clone_from(&self.compare);
        }
        let filter = self.filter.iter();
        query
            .filter
            .extend(filter.map(|(name, values)| (name.clone(), values.clone())));
        query
    }

    /// Checks it.
    ///
    /// # Errors
    /// Something is; the error names the field.
    pub fn check(&self, now: u64) -> Result<(), QueryError> {
        check_title("title", &self.title)?;
        if self.description.chars().count() > MAX_DESCRIPTION {
            let message = format!("it is longer than {MAX_DESCRIPTION} characters");
            return Err(QueryError::new("description", message));
        }
        if let (None, Some(_)) = (&self.from, &self.to) {
            return Err(QueryError::new("to", "it also needs `from`"));
        }
        if let Some(from) = &self.from {
            time::read("from", from, now)?;
        }
        check_panels(&self.panels)?;
        for (place, panel) in self.panels.iter().enumerate() {
            let field = |error: QueryError| QueryError {
                field: format!("panels.{place}.query.{}", error.field),
                message: error.message,
            };
            QueryPlan::check(&self.query_of(panel), &Retention::default(), now).map_err(field)?;
        }
        Ok(())
    }
}

/// Checks panels, but not whether their queries can be answered.
///
/// # Errors
/// Something is wrong with one; the error names the field.
pub fn check_panels(panels: &[Panel]) -> Result<(), QueryError> {
    if panels.is_empty() || panels.len() > MAX_PANELS {
        let message = format!("there must be 1 to {MAX_PANELS} panels, not {}", panels.len());
        return Err(QueryError::new("panels", message));
    }
    for (place, panel) in panels.iter().enumerate() {
        check_title(&format!("panels.{place}.title"), &panel.title)?;
        if !(1..=COLUMNS).contains(&panel.width) {
            let message = format!("{} is not a valid width: write 1 to {COLUMNS}", panel.width);
            return Err(QueryError::new(format!("panels.{place}.width"), message));
        }
        if panel.kind.has_series() && panel.query.step.is_none() {
            let message = "a line or an area needs steps; write 'auto', or a length such as '5m'";
            return Err(QueryError::new(format!("panels.{place}.query.step"), message));
        }
    }
    Ok(())
}

/// Checks a title.
///
/// # Errors
/// It is empty or too long.
pub fn check_title(field: &str, title: &str) -> Result<(), QueryError> {
    if title.chars().any(char::is_control) {
        return Err(QueryError::new(
            field,
            "it has a line break or another control character",
        ));
    }
    match title.trim().chars().count() {
        0 => Err(QueryError::new(field, "it is empty")),
        1..=MAX_TITLE => Ok(()),
        _ => {
            let message = format!("it is longer than {MAX_TITLE} characters");
            Err(QueryError::new(field, message))
        }
    }
}

/// The boards that Weir comes with. They cannot be changed.
pub fn given() -> &'static [Board] {
    static GIVEN: LazyLock<Vec<Board>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("given.json"))
            .expect("invariant: the given boards are checked by a test")
    });
    &GIVEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: u64 = 1_767_225_600;

    fn board(fields: Value) -> Value {
        let mut board = json!({
            "id": "b", "title": "Board",
            "panels": [{ "title": "Calls", "kind": "line", "query": { "metrics": ["calls"], "step": "auto" } }],
        });
        for (name, value) in fields.as_object().expect("fields") {
            board[name] = value.clone();
        }
        board
    }

    #[test]
    fn given_boards_are_good_and_have_names_of_their_own() {
        let mut ids: Vec<&str> = given().iter().map(|board| board.id.as_str()).collect();
        for board in given() {
            board
                .check(NOW)
                .unwrap_or_else(|error| panic!("{}: {error}", board.id));
            assert!(!board.description.is_empty(), "{}", board.id);
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), given().len());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let panel = |fields: Value| json!([{ "title": "P", "kind": "table", "query": fields }]);
        for (fields, expected) in [
            (json!({}), None),
            (json!({ "filter": { "workspace": ["a", "b"] } }), None),
            (json!({ "title": " " }), Some("title: it is empty")),
            (json!({ "title": "a".repeat(201) }), Some("title: it is longer")),
            (json!({ "description": "a".repeat(2_001) }), Some("description: ")),
            (
                json!({ "panels": [] }),
                Some("panels: there must be 1 to 30 panels, not 0"),
            ),
            (json!({ "to": "now" }), Some("to: it also needs `from`")),
            (
                json!({ "from": "yesterday" }),
                Some("from: 'yesterday' is not a valid time"),
            ),
            (
                json!({ "from": "-7d", "to": "-8d" }),
                Some("panels.0.query.from: "),
            ),
            (
                json!({ "panels": panel(json!({ "metrics": ["no"] })) }),
                Some("panels.0.query.metrics: there is no metric 'no'"),
            ),
            (
                json!({ "filter": { "target": "a" }, "panels": panel(json!({ "metrics": ["calls"], "group_by": ["route"] })) }),
                Some("panels.0.query.group_by: "),
            ),
            (
                json!({ "filter": { "target": "a", "consumer": "c" }, "panels": panel(json!({ "metrics": ["calls"] })) }),
                Some("panels.0.query.filter: "),
            ),
            (
                json!({ "panels": [{ "title": "P", "kind": "line", "query": { "metrics": ["calls"] } }] }),
                Some("panels.0.query.step: a line or an area needs steps"),
            ),
            (
                json!({ "panels": [{ "title": "P", "kind": "stat", "width": 13, "query": { "metrics": ["calls"] } }] }),
                Some("panels.0.width: 13 is not a valid width"),
            ),
        ] {
            let read: Board = serde_json::from_value(board(fields.clone())).expect("a board");
            let message = read.check(NOW).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(message, None, "{fields}"),
                Some(part) => assert!(
                    message.as_ref().is_some_and(|it| it.starts_with(part)),
                    "{fields}: {message:?}"
                ),
            }
        }
        let unknown = serde_json::from_value::<Board>(board(json!({ "colour": "red" })));
        assert!(unknown.is_err(), "{unknown:?}");
    }

    #[test]
    fn the_boards_time_and_filter_go_before_those_of_panels() {
        let read: Board = serde_json::from_value(board(json!({
            "from": "-7d", "compare": "1w", "filter": { "service": "shop" },
            "panels": [{ "title": "P", "kind": "table", "query": {
                "metrics": ["calls"], "from": "-1h", "to": "now", "filter": { "service": "own", "class": "5xx" } } }],
        })))
        .expect("a board");
        let query = read.query_of(&read.panels[0]);
        assert_eq!((query.from, query.to), (TimePoint::Text("-7d".to_owned()), None));
        assert_eq!(query.compare, Some(Length::Text("1w".to_owned())));
        assert_eq!(query.filter["service"].values(), ["shop"]);
        assert_eq!(query.filter["class"].values(), ["5xx"]);
        let plain: Board = serde_json::from_value(board(json!({}))).expect("a board");
        assert_eq!(plain.query_of(&plain.panels[0]), plain.panels[0].query);
    }
}
