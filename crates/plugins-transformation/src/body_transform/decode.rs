//! What bodies hold, as JSON: from JSON, XML, forms and texts. What is made of it is the template's.

use super::Input;
use crate::xml;
use serde_json::{Map, Value};
use weir_plugin::multipart::{boundary, parts};
use weir_plugin::uri::{decode_form, query_pairs};

/// Reads a body.
///
/// # Errors
/// Says why the body cannot be decoded.
pub(super) fn decoded(input: Input, content_type: &[u8], body: &[u8]) -> Result<Value, String> {
    match input {
        Input::Json => serde_json::from_slice(body).map_err(|error| error.to_string()),
        Input::Xml => xml::parse(body, &xml::TABLES).map_err(str::to_owned),
        Input::Encoded => Ok(pairs(body)),
        Input::Multipart => {
            let boundary = boundary(content_type).ok_or("no boundary")?;
            let mut map = Map::new();
            for part in parts(body, boundary) {
                add(&mut map, part.name().unwrap_or_default(), text(part.content));
            }
            Ok(Value::Object(map))
        }
        Input::Args | Input::Plain => Ok(Value::Object(Map::new())),
    }
}

/// The pairs of a query or form; several of a name make a list, and one without `=` is `true`.
pub(super) fn pairs(query: &[u8]) -> Value {
    let mut map = Map::new();
    for (name, value) in query_pairs(query) {
        let value = value.map_or(Value::Bool(true), |value| text(&decode_form(value)));
        add(&mut map, &decode_form(name), value);
    }
    Value::Object(map)
}

fn add(map: &mut Map<String, Value>, name: &[u8], value: Value) {
    let name = String::from_utf8_lossy(name).into_owned();
    match map.get_mut(&name) {
        None => drop(map.insert(name, value)),
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

fn text(bytes: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(bytes).into_owned())
}
