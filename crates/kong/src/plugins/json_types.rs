//! Types of values that texts stand for in JSON, as the transformer plugins have them.

use super::header_edits::list;
use crate::schema::{Check, Field, Kind};
use serde_json::Value;

/// The types of an operation's values, in their order.
pub const JSON_TYPES: Field = list("json_types", &JSON_TYPE);
const JSON_TYPE: Field =
    Field::element(Kind::String).check(&[Check::OneOf(&["boolean", "number", "string"])]);

/// The value of a text at its place in an operation's list; `None`: nothing is done.
pub fn typed_value(config: &Value, operation: &str, text: &str, index: usize) -> Option<Value> {
    if text.is_empty() {
        return None;
    }
    match config[operation]["json_types"][index].as_str() {
        Some("number") => {
            let number: f64 = text.trim().parse().ok()?;
            let is_whole = number.fract() == 0.0 && number.abs() < 1e15;
            Some(match is_whole {
                true => Value::from(number as i64),
                false => Value::from(number),
            })
        }
        Some("boolean") => Some(Value::Bool(text == "true")),
        _ => Some(Value::from(text)),
    }
}
