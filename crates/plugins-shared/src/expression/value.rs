//! Values of expressions: their kinds, and what each is as a text or a number.

use crate::json_schema::weight;
use std::borrow::Cow;
use weir_plugin::Exhausted;

/// The most bytes that a text may have.
pub(super) const MAX_TEXT: usize = 1 << 20;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Nil,
    /// A truth value.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text of any bytes.
    Text(Vec<u8>),
    /// A list or map; never a scalar.
    Json(serde_json::Value),
    /// A table of the scope's, by name.
    Table(&'static str),
    /// A function, by name.
    Function(&'static str),
}

/// Why an expression cannot be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvaluationError(pub &'static str);

impl From<Exhausted> for EvaluationError {
    fn from(_: Exhausted) -> Self {
        Self("there is too much to do")
    }
}

impl Value {
    /// A JSON value as a value of expressions.
    pub fn of(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(truth) => Self::Bool(*truth),
            serde_json::Value::Number(number) => number.as_f64().map_or(Self::Nil, Self::Number),
            serde_json::Value::String(text) => Self::Text(text.as_bytes().to_vec()),
            json => Self::Json(json.clone()),
        }
    }

    /// Steps that a copy takes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Text(text) => text.len() / 64,
            Self::Json(json) => weight(json),
            _ => 0,
        }
    }

    /// Anything but nil and false is true.
    pub fn is_true(&self) -> bool {
        !matches!(self, Self::Nil | Self::Bool(false))
    }

    /// A text, or a number as one.
    pub fn text(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Number(number) => Some(Cow::Owned(number_text(*number).into_bytes())),
            _ => None,
        }
    }

    /// A number, or a text that is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    /// Puts the value as a text behind what `out` holds; nil is nothing.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nil | Self::Table(_) | Self::Function(_) => {}
            Self::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
            Self::Json(json) => out.extend_from_slice(json.to_string().as_bytes()),
            other => out.extend_from_slice(&other.text().unwrap_or_default()),
        }
    }

    /// The name of its type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Json(_) | Self::Table(_) => "table",
            Self::Function(_) => "function",
        }
    }
}

/// Whole numbers have no fraction; others have up to 14 digits, as in Lua.
pub(super) fn number_text(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return (number as i64).to_string();
    }
    let rounded: f64 = format!("{number:.13e}").parse().unwrap_or(number);
    rounded.to_string()
}
