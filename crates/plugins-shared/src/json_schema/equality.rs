//! When values are the same, as JSON Schema sees it: 1 and 1.0 are, whatever the order of fields.

use serde_json::Value;
use std::collections::HashMap;

/// Whether no two items are the same.
///
/// # Errors
/// Which two are.
pub fn check_unique(items: &[Value]) -> Result<(), String> {
    // Lists that are long enough to be a burden are compared by their texts.
    let mut seen = HashMap::with_capacity(items.len());
    for (item, index) in items.iter().zip(1..) {
        let mut text = String::new();
        write_plainly(item, &mut text);
        if let Some(earlier) = seen.insert(text, index) {
            return Err(format!(
                "expected unique items but items {earlier} and {index} are equal"
            ));
        }
    }
    Ok(())
}

/// Whether two values mean the same: numbers by what they count, objects without order.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| {
                    let other = other.get(name);
                    other.is_some_and(|other| is_same(value, other))
                })
        }
        _ => one == other,
    }
}

/// Writes a value so that two texts are equal exactly if [`is_same`] says so of the values.
fn write_plainly(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => out.push_str(&number.as_f64().unwrap_or_default().to_string()),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_plainly(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in fields {
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                write_plainly(value, out);
                out.push(',');
            }
            out.push('}');
        }
        value => out.push_str(&value.to_string()),
    }
}
