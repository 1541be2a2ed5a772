//! What kind of value a schema wants, as far as it decides how a text is read.

use serde_json::{Number, Value};
use std::collections::HashMap;

/// How many references and `allOf` are followed to a type.
const MAX_HOPS: usize = 16;

/// The kind of value that a schema wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// It does not say.
    Any,
    /// A text, a number, `true` or `false`, or nothing: those that it takes.
    Scalar(Scalars),
    /// A list of such values.
    List(Box<Shape>),
    /// Named values.
    Map(Box<Fields>),
}

/// The scalar types that a schema takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scalars {
    number: bool,
    boolean: bool,
    null: bool,
}

/// The named values of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Fields {
    properties: HashMap<String, Shape>,
    /// The shape of the other members, if any are allowed.
    others: Option<Shape>,
}

impl Fields {
    /// The shape of a property, or of another member if the schema has no properties.
    pub fn named(&self, name: &str) -> Option<&Shape> {
        match self.properties.is_empty() {
            true => self.others.as_ref(),
            false => self.properties.get(name),
        }
    }

    /// The shape of any member.
    pub fn any(&self, name: &str) -> &Shape {
        let own = self.properties.get(name).or(self.others.as_ref());
        own.unwrap_or(&Shape::Any)
    }
}

impl Shape {
    /// The shape that a schema wants.
    pub fn of(schema: &Value, document: &Value) -> Self {
        Self::at(schema, document, 0)
    }

    fn at(schema: &Value, document: &Value, hops: usize) -> Self {
        if hops > MAX_HOPS {
            return Self::Any;
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let target = reference
                .strip_prefix('#')
                .and_then(|path| document.pointer(path));
            return target.map_or(Self::Any, |target| Self::at(target, document, hops + 1));
        }
        let named = |kind: &str| match schema.get("type") {
            Some(Value::String(one)) => one == kind,
            Some(Value::Array(all)) => all.iter().any(|one| one == kind),
            _ => false,
        };
        if named("array") || schema.get("items").is_some() {
            let item = schema
                .get("items")
                .map_or(Self::Any, |it| Self::at(it, document, hops + 1));
            return Self::List(Box::new(item));
        }
        if named("object") || schema.get("properties").is_some() {
            return Self::Map(Box::new(fields(schema, document, hops)));
        }
        if schema.get("type").is_some() {
            return Self::Scalar(Scalars {
                number: named("integer") || named("number"),
                boolean: named("boolean"),
                null: named("null"),
            });
        }
        for word in ["allOf", "oneOf", "anyOf"] {
            let parts = schema.get(word).and_then(Value::as_array).into_iter().flatten();
            let mut shapes = parts.map(|part| Self::at(part, document, hops + 1));
            let Some(first) = shapes.find(|shape| *shape != Self::Any) else {
                continue;
            };
            // Alternatives of scalar types take all of them.
            return shapes.fold(first, |all, next| match (all, next) {
                (Self::Scalar(a), Self::Scalar(b)) => Self::Scalar(Scalars {
                    number: a.number || b.number,
                    boolean: a.boolean || b.boolean,
                    null: a.null || b.null,
                }),
                (all, _) => all,
            });
        }
        Self::Any
    }

    /// The value of a text, if it is a single value.
    pub fn scalar(&self, text: &[u8]) -> Value {
        let text = String::from_utf8_lossy(text);
        if let Self::Scalar(scalars) = self {
            if scalars.boolean && (text == "true" || text == "false") {
                return Value::Bool(text == "true");
            }
            if scalars.null && text.is_empty() {
                return Value::Null;
            }
            if scalars.number
                && let Some(number) = number(&text)
            {
                return Value::Number(number);
            }
        }
        Value::String(text.into_owned())
    }
}

/// A number as JSON writes it.
fn number(text: &str) -> Option<Number> {
    let is_plain = text.starts_with(|it: char| it == '-' || it.is_ascii_digit());
    is_plain.then(|| serde_json::from_str(text).ok()).flatten()
}

fn fields(schema: &Value, document: &Value, hops: usize) -> Fields {
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => None,
        Some(inner @ Value::Object(_)) => Some(Shape::at(inner, document, hops + 1)),
        _ => Some(Shape::Any),
    };
    Fields {
        properties: properties
            .into_iter()
            .flatten()
            .map(|(name, inner)| (name.clone(), Shape::at(inner, document, hops + 1)))
            .collect(),
        others,
    }
}
