//! Forms: names such as `paths[]`, `config.minute` or `headers[x-a][1]` as nested fields, and texts as the values that
//! the fields of an entity hold.

use crate::document::entity_type::entity_type;
use crate::schema::{Field, Kind, Record, record_by_type};
use serde_json::{Map, Value};
use weir_plugin::multipart as parts_of_body;

/// Deeper names than this are cut.
const MAX_DEPTH: usize = 8;
/// No list is longer than this because of a position in a name.
const MAX_POSITION: usize = 100;

/// A step of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'n> {
    Field(&'n str),
    /// `[]`
    Next,
    /// `[1]` is the first.
    Position(usize),
}

/// The fields of a body in parts. What has no name is left out.
pub fn multipart(content_type: &str, body: &[u8]) -> Vec<(String, String)> {
    let Some(boundary) = parts_of_body::boundary(content_type.as_bytes()) else {
        return Vec::new();
    };
    parts_of_body::parts(body, boundary)
        .into_iter()
        .filter_map(|part| {
            let name = String::from_utf8_lossy(part.name()?).into_owned();
            Some((name, String::from_utf8_lossy(part.content).into_owned()))
        })
        .collect()
}

/// The fields that names stand for. Of a name that is there several times a list is made.
pub fn nested(pairs: Vec<(String, String)>) -> Map<String, Value> {
    let mut fields = Value::Object(Map::new());
    for (name, value) in pairs {
        put(&mut fields, &steps(&name), Value::String(value));
    }
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn steps(name: &str) -> Vec<Step<'_>> {
    // The first character is never a separator.
    let first_length = name.chars().next().map_or(0, char::len_utf8);
    let end = name[first_length..]
        .find(['[', '.'])
        .map_or(name.len(), |at| at + first_length);
    let mut steps = vec![Step::Field(&name[..end])];
    let mut rest = &name[end..];
    while !rest.is_empty() && steps.len() < MAX_DEPTH {
        if let Some(inner) = rest.strip_prefix('[') {
            let (key, behind) = inner.split_once(']').unwrap_or((inner, ""));
            steps.push(match (key, key.parse::<usize>()) {
                ("", _) => Step::Next,
                (_, Ok(position)) => Step::Position(position.clamp(1, MAX_POSITION)),
                (key, Err(_)) => Step::Field(key),
            });
            rest = behind;
        } else {
            let inner = rest.strip_prefix('.').unwrap_or(rest);
            let end = inner.find(['[', '.']).unwrap_or(inner.len());
            if end > 0 {
                steps.push(Step::Field(&inner[..end]));
            }
            rest = &inner[end..];
        }
    }
    steps
}

fn put(place: &mut Value, steps: &[Step<'_>], value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        match place {
            Value::Null => *place = value,
            Value::Array(items) => items.push(value),
            other => *other = Value::Array(vec![other.take(), value]),
        }
        return;
    };
    match step {
        Step::Field(name) => {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            put(&mut place[*name], rest, value);
        }
        Step::Next | Step::Position(_) => {
            match &mut *place {
                Value::Array(_) => {}
                Value::Null => *place = Value::Array(Vec::new()),
                other => *other = Value::Array(vec![other.take()]),
            }
            let Value::Array(items) = place else { return };
            let index = match step {
                Step::Position(position) => position - 1,
                // Fields of records that follow each other belong to one record.
                _ if !rest.is_empty() && !items.is_empty() => items.len() - 1,
                _ => items.len(),
            };
            if items.len() <= index {
                items.resize(index + 1, Value::Null);
            }
            put(&mut items[index], rest, value);
        }
    }
}

/// Makes the values of a form's fields out of their texts.
pub fn infer_fields(fields: &mut Map<String, Value>, record: &Record) {
    for (name, value) in fields {
        if let Some(field) = record.field(name) {
            infer(value, field);
        }
    }
}

/// Makes the value of a field out of its text. A text that is no valid value of the field stays, and will be
/// complained about.
pub fn infer(value: &mut Value, field: &Field) {
    if value.as_str() == Some("") {
        *value = Value::Null;
        return;
    }
    match field.kind {
        Kind::Integer | Kind::Number => {
            if let Some(number) = value.as_str().and_then(number) {
                *value = number;
            }
        }
        Kind::Boolean => match value.as_str() {
            Some("true") => *value = true.into(),
            Some("false") => *value = false.into(),
            _ => {}
        },
        Kind::Array(element) | Kind::Set(element) => {
            if value.is_null() || value.is_object() {
                return;
            }
            if !value.is_array() {
                *value = Value::Array(vec![value.take()]);
            }
            if let Value::Array(items) = value {
                items.iter_mut().for_each(|item| infer(item, element));
            }
        }
        Kind::Map { values, .. } => {
            if let Value::Object(fields) = value {
                fields.values_mut().for_each(|value| infer(value, values));
            }
        }
        Kind::Record(record) => {
            if let Value::Object(fields) = value {
                infer_fields(fields, record);
            }
        }
        Kind::ByType(records) => {
            if let Some(record) = record_by_type(records, value)
                && let Value::Object(fields) = value
            {
                infer_fields(fields, record);
            }
        }
        Kind::Foreign(target) => {
            if let (Value::Object(fields), Some(entity_type)) = (value, entity_type(target)) {
                infer_fields(fields, entity_type.record);
            }
        }
        _ => {}
    }
}

fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    text.parse::<f64>()
        .ok()
        .and_then(serde_json::Number::from_f64)
        .map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_stand_for_nested_fields() {
        let table: &[(&[(&str, &str)], Value)] = &[
            (&[("name", "x")], json!({"name": "x"})),
            (
                &[("paths[]", "/a"), ("paths[]", "/b")],
                json!({"paths": ["/a", "/b"]}),
            ),
            (
                &[("paths[2]", "/b"), ("paths[1]", "/a")],
                json!({"paths": ["/a", "/b"]}),
            ),
            (&[("hosts", "a"), ("hosts", "b")], json!({"hosts": ["a", "b"]})),
            (
                &[("config.minute", "5"), ("config.redis.host", "h")],
                json!({"config": {"minute": "5", "redis": {"host": "h"}}}),
            ),
            (&[("headers[x-a][1]", "v")], json!({"headers": {"x-a": ["v"]}})),
            (
                &[("sources[1].ip", "::1"), ("sources[1].port", "1")],
                json!({"sources": [{"ip": "::1", "port": "1"}]}),
            ),
            (&[("service.id", "i")], json!({"service": {"id": "i"}})),
            (
                &[("a[", "x"), (".", "y"), ("", "z")],
                json!({"a": ["x"], ".": "y", "": "z"}),
            ),
        ];
        for (pairs, expected) in table {
            let pairs = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            assert_eq!(&Value::Object(nested(pairs)), expected);
        }
    }

    #[test]
    fn parts_are_fields() {
        let body = "--x\r\nContent-Disposition: form-data; name=\"paths[]\"\r\n\r\n/a\r\n--x\r\n\
                    Content-Disposition: form-data; name=\"cert\"; filename=\"c.pem\"\r\n\r\n1\n2\r\n--x--\r\n";
        let parts = multipart("multipart/form-data; boundary=x", body.as_bytes());
        let fields = Value::Object(nested(parts));
        assert_eq!(fields, json!({"paths": ["/a"], "cert": "1\n2"}));
        assert_eq!(multipart("multipart/form-data", body.as_bytes()), Vec::new());
    }

    #[test]
    fn texts_become_the_values_of_their_fields() {
        let list = Field::element(Kind::Integer);
        let list: &'static Field = Box::leak(Box::new(list));
        for (kind, text, expected) in [
            (Kind::Integer, "5", json!(5)),
            (Kind::Number, "0.5", json!(0.5)),
            (Kind::Integer, "x", json!("x")),
            (Kind::Boolean, "true", json!(true)),
            (Kind::String, "5", json!("5")),
            (Kind::String, "", Value::Null),
            (Kind::Array(list), "1", json!([1])),
        ] {
            let mut value = Value::String(text.to_owned());
            infer(&mut value, &Field::element(kind));
            assert_eq!(value, expected, "{kind:?} {text}");
        }
    }
}
