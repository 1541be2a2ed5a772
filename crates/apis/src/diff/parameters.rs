//! Parameters and headers: whether they are there, how they are written, and their schemas.

use super::{ChangeCollector, Direction, content, is_true, requirement, schema, schemas, text};
use crate::openapi::Operation;
use crate::path_pattern;
use serde_json::Value;

fn parameter_key(parameter: &Value) -> (String, String) {
    (
        text(parameter, "in").to_owned(),
        text(parameter, "name").to_owned(),
    )
}

pub(super) fn parameters(
    old: &Operation,
    new: &Operation,
    comparison: &mut schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    let all = |operation: &Operation| -> Vec<((String, String), Value)> {
        let outside = listed(&operation.value).filter(|it| text(it, "in") != "path");
        outside.map(|it| (parameter_key(it), it.clone())).collect()
    };
    let (before, after) = (all(old), all(new));
    let find = |list: &[((String, String), Value)], key: &(String, String)| {
        list.iter()
            .find(|(other, _)| other == key)
            .map(|(_, value)| value.clone())
    };
    for (key, parameter) in &after {
        let place = format!("parameters.{}.{}", key.0, key.1);
        match find(&before, key) {
            None => {
                let is_required = is_true(parameter, "required");
                let what = if is_required {
                    "a new required parameter"
                } else {
                    "a new optional parameter"
                };
                notes.add(is_required, &place, what);
            }
            Some(was) => {
                requirement(&was, parameter, &place, notes);
                sent_value(&was, parameter, &place, comparison, notes);
            }
        }
    }
    for (key, _) in before.iter().filter(|(key, _)| find(&after, key).is_none()) {
        notes.add(
            false,
            &format!("parameters.{}.{}", key.0, key.1),
            "the parameter is gone",
        );
    }
    in_path(old, new, comparison, notes);
}

fn listed(operation: &Value) -> impl Iterator<Item = &Value> {
    let list = operation.get("parameters").and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Parameters of the path, which are found by their positions: callers do not see their names.
fn in_path(
    old: &Operation,
    new: &Operation,
    comparison: &mut schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    let (before, after) = (
        path_pattern::parameters(&old.path),
        path_pattern::parameters(&new.path),
    );
    if before.len() != after.len() {
        return;
    }
    for (was, is) in before.into_iter().zip(after) {
        let find = |operation: &Operation, name: &str| {
            let is_it = |it: &&Value| text(it, "in") == "path" && text(it, "name") == name;
            listed(&operation.value).find(is_it).cloned()
        };
        if let (Some(was), Some(parameter)) = (find(old, was), find(new, is)) {
            let place = format!("parameters.path.{is}");
            sent_value(&was, &parameter, &place, comparison, notes);
        }
    }
}

/// The value of a parameter, and how it is written.
fn sent_value(
    old: &Value,
    new: &Value,
    place: &str,
    comparison: &mut schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    style(old, new, place, comparison, notes);
    described_value(old, new, Direction::Request, place, comparison, notes);
}

/// How lists and maps are written: the style, and whether each entry stands for itself.
fn style_of(parameter: &Value) -> (&str, bool) {
    let style = match (text(parameter, "style"), text(parameter, "in")) {
        ("", "query" | "cookie") => "form",
        ("", _) => "simple",
        (style, _) => style,
    };
    let explode = parameter.get("explode").and_then(Value::as_bool);
    (style, explode.unwrap_or(style == "form"))
}

fn style(
    old: &Value,
    new: &Value,
    place: &str,
    comparison: &schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    let (before, after) = (style_of(old), style_of(new));
    let of = |value: &Value| value.get("schema").cloned();
    let (Some(was), Some(_)) = (of(old), of(new)) else {
        return;
    };
    // Single values are written in the same way in all styles.
    if before == after || !comparison.was_list_or_map(&was) {
        return;
    }
    let shown = |(style, explode): (&str, bool)| match explode {
        true => format!("'{style}' with 'explode'"),
        false => format!("'{style}'"),
    };
    let message = format!("is written as {}, was as {}", shown(after), shown(before));
    notes.add(true, place, message);
}

/// The value of a parameter or of a header, which has a schema, or the schema of a media type.
pub(super) fn described_value(
    old: &Value,
    new: &Value,
    direction: Direction,
    place: &str,
    comparison: &mut schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    match (old.get("content"), new.get("content")) {
        (None, None) => schemas(old, new, direction, place, comparison, notes),
        (Some(_), Some(_)) => content(old, new, direction, place, comparison, notes),
        (was, _) => {
            let (now, before) = match was {
                None => ("'content'", "'schema'"),
                Some(_) => ("'schema'", "'content'"),
            };
            notes.add(true, place, format!("is described by {now}, was by {before}"));
        }
    }
}
