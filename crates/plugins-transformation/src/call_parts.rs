//! Parts of a call in JSON, as plugins send them to functions and to message brokers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Headers, Request};

/// Which parts are described.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallParts {
    /// `method`.
    pub(crate) method: bool,
    /// `headers`.
    pub(crate) headers: bool,
    /// `uri` and `uri_args`.
    pub(crate) uri: bool,
    /// `body` and `body_args`.
    pub(crate) body: bool,
    /// Whether a body that is no text, form or JSON is encoded in Base64; `body_base64` says so.
    pub(crate) base64_body: bool,
}

impl CallParts {
    /// These parts of a call, each named with this prefix. `fields` are those of its body.
    pub(crate) fn of(self, request: &Request, fields: Option<Value>, prefix: &str) -> Map<String, Value> {
        let name = |part: &str| format!("{prefix}{part}");
        let mut parts = Map::new();
        if self.method {
            parts.insert(name("method"), text(&request.method));
        }
        if self.headers {
            let (single, _) = header_maps(&request.headers, true);
            parts.insert(name("headers"), single);
        }
        if self.uri {
            let query = request.query.as_deref();
            let mut whole = String::from_utf8_lossy(&request.raw_path).into_owned();
            if let Some(query) = query {
                whole.push('?');
                whole.push_str(&String::from_utf8_lossy(query));
            }
            parts.insert(name("uri"), whole.into());
            let arguments = arguments(query.unwrap_or_default());
            parts.insert(name("uri_args"), Value::Object(arguments));
        }
        if self.body {
            let raw = request.body.as_deref().unwrap_or_default();
            let is_plain = request.headers.get(b"content-type").is_some_and(is_raw_type);
            match (&fields, self.base64_body && !is_plain) {
                (None, true) => {
                    parts.insert(name("body"), STANDARD.encode(raw).into());
                    parts.insert(name("body_base64"), true.into());
                }
                _ => drop(parts.insert(name("body"), text(raw))),
            }
            parts.insert(name("body_args"), fields.unwrap_or_else(|| json!({})));
        }
        parts
    }
}

pub(crate) fn text(bytes: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(bytes).into_owned())
}

/// The types of bodies that are written as text.
fn is_raw_type(content_type: &[u8]) -> bool {
    let types = [
        "text/plain",
        "text/html",
        "application/xml",
        "text/xml",
        "application/soap+xml",
    ];
    types
        .iter()
        .any(|known| known.as_bytes().eq_ignore_ascii_case(content_type))
}

/// Headers as a map of first values (or of lists, if a header occurs several times), and as a map of lists.
pub(crate) fn header_maps(headers: &Headers, lists_several: bool) -> (Value, Value) {
    let (mut single, mut all) = (Map::new(), Map::new());
    for header in headers.iter() {
        let name = String::from_utf8_lossy(header.name).to_ascii_lowercase();
        if all.contains_key(&name) {
            continue;
        }
        let values: Vec<Value> = headers.get_all(header.name).map(text).collect();
        let first = match values.len() {
            2.. if lists_several => Value::Array(values.clone()),
            _ => values.first().cloned().unwrap_or_default(),
        };
        single.insert(name.clone(), first);
        all.insert(name, Value::Array(values));
    }
    (Value::Object(single), Value::Object(all))
}

/// Arguments by name. One that comes several times is a list; one without `=` is `true`.
pub(crate) fn arguments(query: &[u8]) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in query_pairs(query) {
        let name = String::from_utf8_lossy(&decode_form(name)).into_owned();
        let value = value.map_or(Value::Bool(true), |value| text(&decode_form(value)));
        match map.get_mut(&name) {
            None => drop(map.insert(name, value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    map
}

/// The body's fields, if it is a form or JSON. An error: it says that it is JSON, and is not.
pub(crate) fn body_fields(request: &Request) -> Result<Option<Value>, serde_json::Error> {
    let body = request.body.as_deref().unwrap_or_default();
    if body.is_empty() {
        return Ok(None);
    }
    let content_type = request.headers.get(b"content-type").unwrap_or_default();
    let content_type = content_type.to_ascii_lowercase();
    if content_type.starts_with(b"application/json") {
        return serde_json::from_slice(body).map(Some);
    }
    let is_form = content_type.starts_with(b"application/x-www-form-urlencoded");
    Ok(is_form.then(|| Value::Object(arguments(body))))
}
