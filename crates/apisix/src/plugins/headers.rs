//! Header changes as `proxy-rewrite` and `response-rewrite` spell them, and the headers about consumers.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_plugins::header_edits::HeaderEdit;
use weir_plugins::identity::{Config, IdentityHeader, IdentityValue};

/// The headers by which APISIX sends the caller's identity to upstreams.
pub fn identity(anonymous: Option<String>) -> Config {
    Config {
        anonymous,
        headers: vec![
            IdentityHeader::new("X-Consumer-Username", IdentityValue::ConsumerUsername),
            IdentityHeader::new("X-Credential-Identifier", IdentityValue::CredentialId),
            IdentityHeader::new("X-Consumer-Custom-ID", IdentityValue::ConsumerCustomId),
        ],
        anonymous_header: None,
        ..Config::default()
    }
}

/// Whether headers are given as `add`, `set` and `remove` rather than as a plain map of headers to set.
pub fn is_by_operation(headers: &Map<String, Value>) -> bool {
    ["add", "set", "remove"].iter().any(|operation| {
        headers
            .get(*operation)
            .is_some_and(|value| value.is_object() || value.is_array())
    })
}

/// The steps of `add`, `set` and `remove`, which work in this order. `added` reads the value of `add`.
pub fn steps(headers: &Map<String, Value>, added: fn(&Value) -> Vec<(String, String)>) -> Vec<HeaderEdit> {
    let mut steps = Vec::new();
    if headers.is_empty() {
        return steps;
    }
    if !is_by_operation(headers) {
        set(&mut steps, headers);
        return steps;
    }
    for (name, value) in headers.get("add").map(added).into_iter().flatten() {
        append(&mut steps, &name, value);
    }
    if let Some(Value::Object(headers)) = headers.get("set") {
        set(&mut steps, headers);
    }
    if let Some(Value::Array(names)) = headers.get("remove") {
        let names = names.iter().filter_map(Value::as_str).map(str::to_owned);
        steps.push(HeaderEdit::Remove(names.collect()));
    }
    steps
}

/// The steps of a plain map of headers to set.
pub fn set_steps(headers: &Map<String, Value>) -> Vec<HeaderEdit> {
    let mut steps = Vec::new();
    if !headers.is_empty() {
        set(&mut steps, headers);
    }
    steps
}

/// Sets headers; of a list of values, the first takes the place of all and the others are added.
fn set(steps: &mut Vec<HeaderEdit>, headers: &Map<String, Value>) {
    let mut firsts = BTreeMap::new();
    let mut others = Vec::new();
    for (name, value) in headers {
        let mut values = texts(value).into_iter();
        firsts.insert(header_name(name), values.next().unwrap_or_default());
        others.extend(values.map(|value| (name, value)));
    }
    steps.push(HeaderEdit::Set(firsts));
    for (name, value) in others {
        append(steps, name, value);
    }
}

fn append(steps: &mut Vec<HeaderEdit>, name: &str, value: String) {
    let name = header_name(name);
    match steps.last_mut() {
        Some(HeaderEdit::Append(headers)) if !headers.contains_key(&name) => {
            headers.insert(name, value);
        }
        _ => steps.push(HeaderEdit::Append(BTreeMap::from([(name, value)]))),
    }
}

/// A value, or each of a list, as text.
pub fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// A name in which characters that no header name has are escaped, as APISIX's server does.
fn header_name(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_become_steps() {
        let pairs = |value: &Value| {
            let map = value.as_object().expect("a map");
            map.iter()
                .flat_map(|(name, value)| texts(value).into_iter().map(move |text| (name.clone(), text)))
                .collect()
        };
        for (headers, wanted) in [
            (
                json!({"X-A": "1", "X-B": 2}),
                json!([{"set": {"X-A": "1", "X-B": "2"}}]),
            ),
            (
                json!({"remove": ["X-C"], "set": {"A B": ["1", "2"]}, "add": {"X-D": ["3", "4"]}}),
                json!([
                    {"append": {"X-D": "3"}}, {"append": {"X-D": "4"}},
                    {"set": {"A%20B": "1"}}, {"append": {"A%20B": "2"}},
                    {"remove": ["X-C"]}
                ]),
            ),
        ] {
            let headers = headers.as_object().expect("a map");
            let steps = serde_json::to_value(steps(headers, pairs)).expect("serializable");
            assert_eq!(steps, wanted);
        }
    }
}
