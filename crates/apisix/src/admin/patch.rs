//! Changing a part of a document, as PATCH asks. Whether the result is a good one is checked elsewhere.

use serde_json::{Map, Value};

/// Merges one map into another: maps are merged, everything else takes the old value's place, `null` removes it.
pub fn merge(old: &mut Map<String, Value>, new: Map<String, Value>) {
    for (name, value) in new {
        match (old.get_mut(&name), value) {
            (_, Value::Null) => {
                old.shift_remove(&name);
            }
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (_, value) => {
                old.insert(name, value);
            }
        }
    }
}

/// Puts a value at a path inside of a document, making maps on the way. An empty path is the whole document.
///
/// # Errors
/// If the path leads through something that has no parts; APISIX's words.
pub fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let segments: Vec<&str> = path.split('/').collect();
    let (last, way) = match segments.split_last() {
        Some((last, way)) if !last.is_empty() => (last, way),
        _ => {
            *document = value;
            return Ok(());
        }
    };
    let mut place = document;
    for (index, name) in way.iter().enumerate() {
        let invalid = || format!("invalid sub-path: /{}", segments[..=index].join("/"));
        place = step(place, name).ok_or_else(invalid)?;
        if !(place.is_object() || place.is_array()) {
            return Err(invalid());
        }
    }
    let place = step(place, last).ok_or_else(|| format!("invalid sub-path: /{path}"))?;
    *place = value;
    Ok(())
}

/// The part of a value that has a name; made if it is not there.
fn step<'v>(value: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(map) => {
            let part = map.entry(name).or_insert(Value::Null);
            if part.is_null() {
                *part = Value::Object(Map::new());
            }
            Some(part)
        }
        // Positions count from 1.
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?.checked_sub(1)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn maps_are_merged() {
        let Value::Object(mut old) = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1, "e": 2}) else {
            unreachable!()
        };
        let Value::Object(new) = json!({"a": {"b": null, "c": [3]}, "d": {"x": 1}, "f": 1, "g": null}) else {
            unreachable!()
        };
        merge(&mut old, new);
        assert_eq!(
            Value::Object(old),
            json!({"a": {"c": [3]}, "d": {"x": 1}, "e": 2, "f": 1})
        );
    }

    #[test]
    fn parts_are_replaced() {
        for (path, wanted) in [
            ("a/b", Ok(json!({"a": {"b": 9}, "c": [1]}))),
            ("a/x/y", Ok(json!({"a": {"b": 1, "x": {"y": 9}}, "c": [1]}))),
            ("c/1", Ok(json!({"a": {"b": 1}, "c": [9]}))),
            ("", Ok(json!(9))),
            ("a/b/c", Err("invalid sub-path: /a/b".to_owned())),
            ("c/2", Err("invalid sub-path: /c/2".to_owned())),
        ] {
            let mut document = json!({"a": {"b": 1}, "c": [1]});
            let result = replace(&mut document, path, json!(9));
            assert_eq!(result.map(|()| document), wanted, "{path}");
        }
    }
}
