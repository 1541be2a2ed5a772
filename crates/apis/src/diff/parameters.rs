//! Parameters and headers: whether they are there, how they are written, and their schemas.

use super::{ChangeCollector, Direction, content, is_true, schema, text};
use serde_json::Value;

fn parameter_key(parameter: &Value) -> (String, String) {
    (
        text(parameter, "in").to_owned(),
        text(parameter, "name").to_owned(),
    )
}

pub(super) fn parameters(
    old: &Value,
    new: &Value,
    comparison: &mut schema::Comparison<'_>,
    notes: &mut ChangeCollector,
) {
    let all = |value: &Value| -> Vec<((String, String), Value)> {
        let list = value.get("parameters").and_then(Value::as_array);
        // A parameter of the path is found by its position, and callers do not see its name.
        let outside = list.into_iter().flatten().filter(|it| text(it, "in") != "path");
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
                if is_true(parameter, "required") != is_true(&was, "required") {
                    let is_required = is_true(parameter, "required");
                    let what = if is_required {
                        "is required now"
                    } else {
                        "is optional now"
                    };
                    notes.add(is_required, &place, what);
                }
                style(&was, parameter, &place, comparison, notes);
                described_value(&was, parameter, Direction::Request, &place, comparison, notes);
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
    let any = Value::Bool(true);
    match (old.get("content"), new.get("content")) {
        (None, None) => {
            let (was, now) = (
                old.get("schema").unwrap_or(&any),
                new.get("schema").unwrap_or(&any),
            );
            comparison.compare(was, now, direction, place, notes);
        }
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
