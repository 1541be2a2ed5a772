//! Values made up by a JSON Schema, for answers without an upstream. They are examples; nothing is checked by them.

use crate::xml::escape;
use serde_json::{Map, Value, json};

/// Levels of a schema at most.
const MAX_DEPTH: usize = 32;
/// Properties and items of a schema at most.
const MAX_NODES: usize = 1000;

/// A schema made ready.
#[derive(Debug)]
pub(super) enum Sample {
    /// Always this.
    Fixed(Value),
    Text,
    Number,
    Integer,
    Boolean,
    Nothing,
    /// One to three of these.
    Array(Box<Sample>),
    Object(Vec<(String, Sample)>),
}

impl Sample {
    /// Reads a schema; one at the top is of an object whatever its type.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let mut nodes = 0;
        Self::object(schema, 0, &mut nodes)
    }

    fn object(schema: &Value, depth: usize, nodes: &mut usize) -> Result<Self, String> {
        let Some(properties) = schema.get("properties") else {
            return Ok(Self::Object(Vec::new()));
        };
        let properties = properties
            .as_object()
            .ok_or("expected 'properties' to be a map")?;
        let each = properties.iter().map(|(name, schema)| {
            let sample = Self::node(schema, depth + 1, nodes).map_err(|fault| format!("{name}: {fault}"))?;
            Ok((name.clone(), sample))
        });
        Ok(Self::Object(each.collect::<Result<_, String>>()?))
    }

    fn node(schema: &Value, depth: usize, nodes: &mut usize) -> Result<Self, String> {
        *nodes += 1;
        if depth > MAX_DEPTH || *nodes > MAX_NODES {
            return Err(format!(
                "expected at most {MAX_DEPTH} levels and {MAX_NODES} properties"
            ));
        }
        let kind = schema
            .get("type")
            .and_then(Value::as_str)
            .ok_or("expected a 'type'")?;
        let example = schema.get("example");
        Ok(match (kind.to_ascii_lowercase().as_str(), example) {
            ("string", Some(text @ Value::String(_))) => Self::Fixed(text.clone()),
            ("number", Some(number @ Value::Number(_))) => Self::Fixed(number.clone()),
            ("integer", Some(Value::Number(number))) => {
                let whole = number
                    .as_i64()
                    .or_else(|| number.as_f64().map(|it| it.floor() as i64));
                Self::Fixed(json!(whole))
            }
            ("boolean", Some(truth @ Value::Bool(_))) => Self::Fixed(truth.clone()),
            ("string", _) => Self::Text,
            ("number", _) => Self::Number,
            ("integer", _) => Self::Integer,
            ("boolean", _) => Self::Boolean,
            ("object", _) => Self::object(schema, depth, nodes)?,
            ("array", _) => match schema.get("items") {
                Some(items) => Self::Array(Box::new(Self::node(items, depth + 1, nodes)?)),
                None => Self::Nothing,
            },
            _ => Self::Nothing,
        })
    }

    /// Makes a value up with these random numbers.
    pub(super) fn draw(&self, random: &mut dyn FnMut() -> u64) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Text => {
                let length = 1 + random() % 10;
                let letters = (0..length).map(|_| char::from(b'a' + (random() % 26) as u8));
                Value::String(letters.collect())
            }
            Self::Number => json!((random() % 1_000_000_000) as f64 / 100_000.0),
            Self::Integer => json!(1 + random() % 10_000),
            Self::Boolean => json!(random().is_multiple_of(2)),
            Self::Nothing => Value::Null,
            Self::Array(item) => {
                let count = 1 + random() % 3;
                Value::Array((0..count).map(|_| item.draw(random)).collect())
            }
            Self::Object(properties) => {
                let each = properties
                    .iter()
                    .map(|(name, sample)| (name.clone(), sample.draw(random)));
                let each = each.filter(|(_, value)| !value.is_null());
                Value::Object(each.collect::<Map<_, _>>())
            }
        }
    }
}

/// A value as XML below an element `data`. Of a single plain property only the value stands.
pub(super) fn xml(value: &Value) -> String {
    let mut out = String::from("<data>");
    let single = value.as_object().filter(|map| map.len() == 1);
    match single.and_then(|map| map.values().next()) {
        Some(only) if !only.is_object() && !only.is_array() => write_content(only, &mut out),
        _ => write_content(value, &mut out),
    }
    out.push_str("</data>");
    out
}

fn write_element(name: &str, value: &Value, out: &mut String) {
    if let Value::Array(items) = value {
        for item in items {
            write_element(name, item, out);
        }
        return;
    }
    out.push('<');
    escape(name, out);
    out.push('>');
    write_content(value, out);
    out.push_str("</");
    escape(name, out);
    out.push('>');
}

fn write_content(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::String(text) => escape(text, out),
        Value::Object(map) => map
            .iter()
            .for_each(|(name, value)| write_element(name, value, out)),
        Value::Array(items) => items.iter().for_each(|item| write_content(item, out)),
        other => out.push_str(&other.to_string()),
    }
}
