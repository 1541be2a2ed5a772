//! Where a value of the normal form stands in the document as it is written: behind a reference, and not beyond what there is.

use crate::openapi::{Description, MAX_CHAIN, Operation, resolve};
use serde_json::Value;
use weir_model::DocPath;
use weir_model::diagnostic::PathStep;

/// The place as it is written: a step below a reference is one below what it leads to. It ends where the document does.
pub fn written(document: &Value, path: &DocPath) -> DocPath {
    walk(document, path).0
}

fn walk<'d>(document: &'d Value, path: &DocPath) -> (DocPath, &'d Value) {
    let (mut place, mut value) = (DocPath::root(), document);
    for step in &path.0 {
        let mut below = child(value, step);
        for _ in 0..MAX_CHAIN {
            if below.is_some() {
                break;
            }
            let Some((target, found)) = target(document, value) else {
                break;
            };
            (place, value) = (target, found);
            below = child(value, step);
        }
        let Some(below) = below else { break };
        place.0.push(step.clone());
        value = below;
    }
    (place, value)
}

fn child<'v>(value: &'v Value, step: &PathStep) -> Option<&'v Value> {
    match step {
        PathStep::Field(name) => value.get(name.as_str()),
        PathStep::Index(index) => value.get(*index),
    }
}

/// What a reference within the document leads to, with its place.
fn target<'d>(document: &'d Value, value: &Value) -> Option<(DocPath, &'d Value)> {
    let pointer = value.get("$ref")?.as_str()?.strip_prefix("#/")?;
    let (mut place, mut found) = (DocPath::root(), document);
    for step in pointer.split('/') {
        let step = percent_encoding::percent_decode_str(step)
            .decode_utf8()
            .ok()?
            .replace("~1", "/")
            .replace("~0", "~");
        let (step, below) = match found {
            Value::Array(items) => {
                let index: usize = step.parse().ok()?;
                (PathStep::Index(index), items.get(index)?)
            }
            found => {
                let below = found.get(step.as_str())?;
                (PathStep::Field(step), below)
            }
        };
        place.0.push(step);
        found = below;
    }
    Some((place, found))
}

/// The place of a parameter of an operation: in its own list, or in that of its path.
pub fn of_parameter(description: &Description, operation: &Operation, parameter: &Value) -> DocPath {
    let document = &description.source;
    let lists = [
        operation.place.field("parameters"),
        DocPath::root()
            .field("paths")
            .field(operation.path.as_str())
            .field("parameters"),
    ];
    let is_it = |item: &Value| {
        let item = resolve(document, item).map_or(item, |(end, _)| end);
        ["name", "in"]
            .iter()
            .all(|field| item.get(field) == parameter.get(field))
    };
    for list in &lists {
        // Without such a list, the walk has ended above it: that is none.
        let items = walk(document, list).1.as_array();
        if let Some(index) = items.and_then(|it| it.iter().position(is_it)) {
            return list.index(index);
        }
    }
    lists.into_iter().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_those_of_what_is_written() {
        let document = json!({
            "paths": {"/a": {"$ref": "#/x-items/0"}, "/b": {"get": {"responses": {"200": {"$ref": "#/components/responses/r"}}}}},
            "x-items": [{"get": {"tags": ["a"]}}],
            "components": {"responses": {"r": {"$ref": "#/components/responses/a~1b"}, "a/b": {"description": "x"}, "loop": {"$ref": "#/components/responses/loop"}}},
        });
        let path = |text: &str| {
            text.split(' ')
                .fold(DocPath::root(), |path, step| match step.parse() {
                    Ok(index) if step.len() < 3 => path.index(index),
                    _ => path.field(step),
                })
        };
        for (from, expected) in [
            ("paths /a get tags 0", "x-items 0 get tags 0"),
            ("paths /a get tags 7", "x-items 0 get tags"),
            ("paths /b get responses 200", "paths /b get responses 200"),
            (
                "paths /b get responses 200 description",
                "components responses a/b description",
            ),
            ("paths /b get summary", "paths /b get"),
            ("components responses loop content", "components responses loop"),
        ] {
            assert_eq!(written(&document, &path(from)), path(expected), "{from}");
        }
    }
}
