//! Attributes of spans: names, and values that are read of each call.

use std::collections::BTreeMap;
use weir_plugin::{Exchange, Template};

/// Most bytes of an attribute's value.
const MAX_VALUE: usize = 4096;

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Fraction(f64),
    /// Yes or no.
    Flag(bool),
}

/// An attribute, ready for use.
struct Attribute {
    name: String,
    template: Template,
    /// The text is a number.
    is_number: bool,
    is_constant: bool,
}

/// Variables that are numbers.
const NUMBERS: [&str; 5] = [
    "$status",
    "$server_port",
    "$remote_port",
    "$upstream_status",
    "$balancer_port",
];

/// Attributes, ready for use.
pub struct Attributes(Vec<Attribute>);

impl Attributes {
    /// Of names and texts with variables.
    pub fn compile(attributes: &BTreeMap<String, String>) -> Self {
        let all = attributes.iter().map(|(name, text)| {
            let template = Template::parse(text);
            Attribute {
                name: name.clone(),
                is_number: NUMBERS.contains(&text.as_str()),
                is_constant: template.is_constant(),
                template,
            }
        });
        Self(all.collect())
    }

    /// Adds those that have a value for this call.
    pub fn write(&self, exchange: &Exchange, out: &mut Vec<(String, Value)>) {
        for attribute in &self.0 {
            let mut text = Vec::new();
            let found = attribute.template.render(exchange, &mut text);
            if !attribute.is_constant && (found == 0 || text.is_empty()) {
                continue;
            }
            let text = lossy(&text);
            let number = attribute.is_number.then(|| text.parse().ok()).flatten();
            let value = number.map_or(Value::Text(text), Value::Whole);
            out.push((attribute.name.clone(), value));
        }
    }

    /// Whether any of their variables is in the request's body.
    pub fn need_body(&self) -> bool {
        self.0.iter().any(|attribute| attribute.template.needs_body())
    }
}

/// A text, cut if it is too long; invalid UTF-8 in it is replaced.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_VALUE)]).into_owned()
}
