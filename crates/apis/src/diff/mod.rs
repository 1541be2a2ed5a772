//! The changes between two descriptions, and which changes break callers.
//!
//! A change breaks callers if calls that were good may be refused now, or answers lack what they had: an operation or a
//! response code that is gone, a parameter or a field that is required now, a type or an enumeration that is narrower,
//! stricter security.

mod flat;
mod keywords;
mod lines;
mod parameters;
mod plans;
mod schema;
mod security;

pub use lines::in_lines;
pub use plans::{PlanChange, plan_changes, plans_in_lines};

use parameters::{described_value, parameters};
use security::{ChangedSchemes, changed_schemes, security};

use crate::openapi::{Description, Operation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The most changes that are listed for one operation, and for all of them. After that, each operation lists one: one that breaks
/// callers, if there is any.
pub const MAX_CHANGES: usize = 5_000;

/// One change of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "OperationChangeDetail")]
pub struct Change {
    /// The place in the operation, such as `parameters.query.limit` or `responses.200.body.name`.
    pub place: String,
    /// The change, in one sentence.
    pub message: String,
    /// Whether it breaks callers.
    pub breaking: bool,
}

/// The kind of an operation's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "OperationChangeKind")]
pub enum Kind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is another one.
    Changed,
}

/// A changed operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OperationChange {
    /// The operation's id; of one that is gone, its former one.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// The kind of its change.
    pub kind: Kind,
    /// Its changes; for an operation that is gone, that it is.
    pub changes: Vec<Change>,
}

/// The changes between two descriptions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Operations that are not what they were, in the order of the new description, those that are gone last.
    pub operations: Vec<OperationChange>,
}

impl Diff {
    /// Whether a change breaks callers.
    pub fn is_breaking(&self) -> bool {
        self.breaking().next().is_some()
    }

    /// The changes that break callers, each with its operation.
    pub fn breaking(&self) -> impl Iterator<Item = (&OperationChange, &Change)> {
        let all = self
            .operations
            .iter()
            .flat_map(|it| it.changes.iter().map(move |change| (it, change)));
        all.filter(|(_, change)| change.breaking)
    }
}

/// The direction of a value: what a caller may send may become more; what a caller gets may become less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Request,
    Response,
}

impl Direction {
    /// Whether a change breaks callers that makes what is possible narrower, or wider, or both.
    fn breaks(self, is_narrower: bool, is_wider: bool) -> bool {
        match self {
            Self::Request => is_narrower,
            Self::Response => is_wider,
        }
    }
}

/// Notes changes of an operation.
pub(crate) struct ChangeCollector {
    changes: Vec<Change>,
    /// How many there may be.
    room: usize,
    /// How many there were, with those that had no room.
    count: usize,
    is_breaking: bool,
}

impl ChangeCollector {
    fn new(room: usize) -> Self {
        Self {
            changes: Vec::new(),
            room: room.max(1),
            count: 0,
            is_breaking: false,
        }
    }

    /// How many were noted.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn add(&mut self, breaking: bool, place: &str, message: impl Into<String>) {
        self.count += 1;
        let has_room = self.changes.len() < self.room;
        // That callers break is not lost among what does not matter.
        if has_room || breaking && !self.is_breaking {
            self.changes.truncate(self.room - 1);
            self.changes.push(Change {
                place: place.to_owned(),
                message: message.into(),
                breaking,
            });
        }
        self.is_breaking |= breaking;
    }
}

/// Compares two descriptions. Operations are the same if they have the same `operationId`, else the same method and path.
pub fn diff(old: &Description, new: &Description) -> Diff {
    let pairs = pair(&old.operations, &new.operations);
    let mut comparison = schema::Comparison::new(&old.schemas, &new.schemas);
    let changed = changed_schemes(old, new);
    let mut room = MAX_CHANGES;
    let mut operations = Vec::new();
    for (index, operation) in new.operations.iter().enumerate() {
        let change = |kind, changes| OperationChange {
            id: operation.id.clone(),
            method: operation.method.clone(),
            path: operation.path.clone(),
            kind,
            changes,
        };
        match pairs.get(&index) {
            None => operations.push(change(Kind::Added, Vec::new())),
            Some(before) => {
                let mut notes = ChangeCollector::new(room);
                compare(
                    &old.operations[*before],
                    operation,
                    &mut comparison,
                    &changed,
                    &mut notes,
                );
                let changes = notes.changes;
                room = room.saturating_sub(changes.len());
                if !changes.is_empty() {
                    operations.push(change(Kind::Changed, changes));
                }
            }
        }
    }
    let kept: std::collections::HashSet<usize> = pairs.into_values().collect();
    for (_, gone) in old
        .operations
        .iter()
        .enumerate()
        .filter(|(index, _)| !kept.contains(index))
    {
        operations.push(OperationChange {
            id: gone.id.clone(),
            method: gone.method.clone(),
            path: gone.path.clone(),
            kind: Kind::Removed,
            changes: vec![Change {
                place: String::new(),
                message: format!("the operation {} {} is gone", gone.method, gone.path),
                breaking: true,
            }],
        });
    }
    Diff { operations }
}

/// Method and path, without the names of parameters.
pub(crate) fn shape(method: &str, path: &str) -> String {
    format!("{method} {}", crate::path_pattern::shape(path))
}

/// For operations of the new description, which of the old one they were.
fn pair(old: &[Operation], new: &[Operation]) -> HashMap<usize, usize> {
    let by_id: HashMap<&str, usize> = old
        .iter()
        .enumerate()
        .filter(|(_, it)| it.has_own_id)
        .map(|(index, it)| (it.id.as_str(), index))
        .collect();
    let by_shape: HashMap<String, usize> = old
        .iter()
        .enumerate()
        .map(|(index, it)| (shape(&it.method, &it.path), index))
        .collect();
    let mut pairs = HashMap::new();
    let mut taken = std::collections::HashSet::new();
    for (index, operation) in new.iter().enumerate().filter(|(_, it)| it.has_own_id) {
        if let Some(before) = by_id.get(operation.id.as_str()) {
            taken.insert(*before);
            pairs.insert(index, *before);
        }
    }
    for (index, operation) in new.iter().enumerate() {
        if pairs.contains_key(&index) {
            continue;
        }
        if let Some(before) = by_shape.get(&shape(&operation.method, &operation.path))
            && taken.insert(*before)
        {
            pairs.insert(index, *before);
        }
    }
    pairs
}

fn compare(
    old: &Operation,
    new: &Operation,
    comparison: &mut schema::Comparison<'_>,
    changed: &ChangedSchemes,
    notes: &mut ChangeCollector,
) {
    if shape(&old.method, &old.path) != shape(&new.method, &new.path) {
        let message = format!("was {} {}, is {} {}", old.method, old.path, new.method, new.path);
        notes.add(true, "path", message);
    }
    if old.deprecated != new.deprecated {
        let now = if new.deprecated {
            "deprecated now"
        } else {
            "no longer deprecated"
        };
        notes.add(false, "deprecated", format!("is {now}"));
    }
    parameters(old, new, comparison, notes);
    body(&old.value, &new.value, comparison, notes);
    responses(&old.value, &new.value, comparison, notes);
    security(&old.value, &new.value, changed, notes);
    if notes.changes.is_empty() {
        texts(&old.value, &new.value, notes);
    }
}

fn is_true(value: &Value, field: &str) -> bool {
    value.get(field).is_some_and(|it| *it == true)
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn body(old: &Value, new: &Value, comparison: &mut schema::Comparison<'_>, notes: &mut ChangeCollector) {
    match (old.get("requestBody"), new.get("requestBody")) {
        (None, None) => {}
        (Some(_), None) => notes.add(false, "body", "the body is gone"),
        (None, Some(body)) => {
            let is_required = is_true(body, "required");
            let what = if is_required {
                "a body is required now"
            } else {
                "a body may be sent now"
            };
            notes.add(is_required, "body", what);
        }
        (Some(was), Some(body)) => {
            requirement(was, body, "body", notes);
            content(was, body, Direction::Request, "body", comparison, notes);
        }
    }
}

/// Whether what a caller sends has become required, or optional.
fn requirement(old: &Value, new: &Value, place: &str, notes: &mut ChangeCollector) {
    match (is_true(old, "required"), is_true(new, "required")) {
        (false, true) => notes.add(true, place, "is required now"),
        (true, false) => notes.add(false, place, "is optional now"),
        _ => {}
    }
}

/// The schemas of two parameters, headers or media types.
fn schemas(
    old: &Value,
    new: &Value,
    direction: Direction,
    place: &str,
    comparison: &mut schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    let any = Value::Bool(true);
    let (was, now) = (
        old.get("schema").unwrap_or(&any),
        new.get("schema").unwrap_or(&any),
    );
    comparison.compare(was, now, direction, place, notes);
}

fn entries<'v>(value: &'v Value, field: &str) -> Option<&'v Map<String, Value>> {
    value.get(field).and_then(Value::as_object)
}

fn content(
    old: &Value,
    new: &Value,
    direction: Direction,
    place: &str,
    comparison: &mut schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    let none = Map::new();
    let (before, after) = (
        entries(old, "content").unwrap_or(&none),
        entries(new, "content").unwrap_or(&none),
    );
    for (kind, media) in before {
        let Some(now) = after.get(kind) else {
            notes.add(true, place, format!("{kind} is gone"));
            continue;
        };
        let place = match before.len() {
            1 => place.to_owned(),
            _ => format!("{place}.{kind}"),
        };
        schemas(media, now, direction, &place, comparison, notes);
    }
    for kind in after.keys().filter(|kind| !before.contains_key(*kind)) {
        notes.add(false, place, format!("{kind} is new"));
    }
}

fn responses(old: &Value, new: &Value, comparison: &mut schema::Comparison<'_>, notes: &mut ChangeCollector) {
    let none = Map::new();
    let before = entries(old, "responses").unwrap_or(&none);
    let after = entries(new, "responses").unwrap_or(&none);
    for (code, response) in before {
        let place = format!("responses.{code}");
        match after.get(code) {
            None => notes.add(true, &place, "the response code is gone"),
            Some(now) => {
                content(
                    response,
                    now,
                    Direction::Response,
                    &format!("{place}.body"),
                    comparison,
                    notes,
                );
                headers(response, now, &place, comparison, notes);
            }
        }
    }
    for code in after.keys().filter(|code| !before.contains_key(*code)) {
        notes.add(false, &format!("responses.{code}"), "a new response code");
    }
}

fn headers(
    old: &Value,
    new: &Value,
    place: &str,
    comparison: &mut schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    let none = Map::new();
    let before = entries(old, "headers").unwrap_or(&none);
    let after = entries(new, "headers").unwrap_or(&none);
    for (name, header) in before {
        let place = format!("{place}.headers.{name}");
        match after.get(name) {
            None => notes.add(is_true(header, "required"), &place, "the header is gone"),
            Some(now) => {
                described_value(header, now, Direction::Response, &place, comparison, notes);
            }
        }
    }
}

/// The texts for people.
fn texts(old: &Value, new: &Value, notes: &mut ChangeCollector) {
    for field in ["operationId", "summary", "description", "tags"] {
        if old.get(field) != new.get(field) {
            notes.add(false, field, "is another text");
        }
    }
    if notes.changes.is_empty() && old != new {
        notes.add(false, "", "differs in details that callers do not notice");
    }
}

#[cfg(test)]
mod tests;
