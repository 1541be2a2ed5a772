//! The answers that an operation's description holds: its examples, or values made of its schemas.

use crate::media_types::MediaType;
use serde_json::{Map, Value};

/// The most examples of one answer.
const MAX_EXAMPLES: usize = 100;
/// How deep values are made.
const MAX_DEPTH: usize = 16;
/// The most values that are made of one schema.
const MAX_VALUES: usize = 10_000;

/// An answer: a status, a media type, and one body or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleResponse {
    pub status: u16,
    /// Empty: it has no body.
    pub media: String,
    pub bodies: Vec<ExampleBody>,
}

/// A body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleBody {
    /// Its name among the examples; empty: it has none.
    pub name: String,
    pub bytes: Vec<u8>,
}

impl ExampleResponse {
    /// Whether a client that accepts this takes it.
    pub fn fits(&self, accept: Option<&[u8]>) -> bool {
        let Some(own) = MediaType::parse(self.media.as_bytes()) else {
            return true;
        };
        let Some(accept) = accept else { return true };
        let mut ranges = accept.split(|byte| *byte == b',').map(|range| {
            let end = range.iter().position(|byte| *byte == b';');
            MediaType::parse(range[..end.unwrap_or(range.len())].trim_ascii())
        });
        ranges.any(|range| range.is_none_or(|range| range.takes(&own, false)))
    }
}

/// The answers of an operation, by their statuses. `components` is what references lead into.
pub fn answers(described: &Value, components: &Value, statuses: &[u16]) -> Vec<ExampleResponse> {
    let responses = described.get("responses").and_then(Value::as_object);
    let mut answers = Vec::new();
    for (code, response) in responses.into_iter().flatten() {
        let status = match code.as_str() {
            "default" => 200,
            code if code.to_ascii_uppercase().ends_with("XX") => match code.as_bytes()[0] {
                digit @ b'1'..=b'5' => u16::from(digit - b'0') * 100,
                _ => continue,
            },
            code => match code.parse() {
                Ok(status) if (200..=599).contains(&status) => status,
                _ => continue,
            },
        };
        if !statuses.is_empty() && !statuses.contains(&status) {
            continue;
        }
        let content = response.get("content").and_then(Value::as_object);
        let mut has_content = false;
        for (media, of_media) in content.into_iter().flatten() {
            has_content = true;
            let is_json = MediaType::parse(media.as_bytes()).is_some_and(|it| it.is_json());
            let bodies = values(of_media, components);
            answers.push(ExampleResponse {
                status,
                media: media.clone(),
                bodies: bodies
                    .into_iter()
                    .map(|(name, value)| ExampleBody {
                        name,
                        bytes: written(&value, is_json),
                    })
                    .collect(),
            });
        }
        if !has_content {
            answers.push(ExampleResponse {
                status,
                media: String::new(),
                bodies: vec![ExampleBody {
                    name: String::new(),
                    bytes: Vec::new(),
                }],
            });
        }
    }
    // A stable order: of one status, as the document has it.
    answers.sort_by_key(|answer| answer.status);
    answers
}

fn written(value: &Value, is_json: bool) -> Vec<u8> {
    match value {
        Value::String(text) if !is_json => text.clone().into_bytes(),
        value => value.to_string().into_bytes(),
    }
}

/// The examples of a media type with their names, or a value made of its schema.
fn values(media: &Value, components: &Value) -> Vec<(String, Value)> {
    if let Some(example) = media.get("example") {
        return vec![(String::new(), example.clone())];
    }
    let examples = media.get("examples").and_then(Value::as_object);
    let named: Vec<(String, Value)> = examples
        .into_iter()
        .flatten()
        .filter_map(|(name, example)| Some((name.clone(), example.get("value")?.clone())))
        .take(MAX_EXAMPLES)
        .collect();
    if !named.is_empty() {
        return named;
    }
    let mut made = Maker {
        components,
        left: MAX_VALUES,
    };
    let schema = media.get("schema");
    let value = schema.map(|schema| (String::new(), made.value(schema, 0)));
    value.into_iter().collect()
}

struct Maker<'c> {
    components: &'c Value,
    left: usize,
}

impl Maker<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH || self.left == 0 {
            return Value::Null;
        }
        self.left -= 1;
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let components = self.components;
            let target = reference
                .strip_prefix('#')
                .and_then(|path| components.pointer(path));
            return target.map_or(Value::Null, |target| self.value(target, depth + 1));
        }
        let first = |list: &str| {
            schema
                .get(list)
                .and_then(Value::as_array)
                .and_then(|list| list.first())
        };
        let own = [
            first("examples"),
            schema.get("default"),
            schema.get("const"),
            first("enum"),
        ];
        if let Some(own) = own.into_iter().flatten().next() {
            return own.clone();
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let mut whole = Map::new();
            for part in parts.iter().chain(schema.get("properties").map(|_| schema)) {
                let part = match std::ptr::eq(part, schema) {
                    true => self.object(part, depth),
                    false => self.value(part, depth + 1),
                };
                if let Value::Object(part) = part {
                    whole.extend(part);
                }
            }
            return Value::Object(whole);
        }
        if let Some(part) = first("oneOf").or(first("anyOf")) {
            return self.value(part, depth + 1);
        }
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .find(|kind| *kind != "null"),
            kind => kind.and_then(Value::as_str),
        };
        match kind {
            Some("string") => Value::from(match schema.get("format").and_then(Value::as_str) {
                Some("date") => "2020-01-01",
                Some("date-time") => "2020-01-01T00:00:00Z",
                Some("uuid") => "00000000-0000-4000-8000-000000000000",
                Some("email") => "user@example.com",
                _ => "string",
            }),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
            Some("boolean") => Value::Bool(true),
            Some("array") => {
                let item = schema.get("items").map(|items| self.value(items, depth + 1));
                Value::Array(item.into_iter().collect())
            }
            _ if schema.get("properties").is_some() => self.object(schema, depth),
            Some("object") => Value::Object(Map::new()),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut object = Map::new();
        for (name, property) in properties.into_iter().flatten() {
            object.insert(name.clone(), self.value(property, depth + 1));
        }
        Value::Object(object)
    }
}
