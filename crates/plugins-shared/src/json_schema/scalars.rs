//! What types, texts and numbers must look like.

use super::check::CheckResult;
use super::{Kind, Numbers, Text};
use serde_json::{Number, Value};

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
            Self::Function => "function",
        }
    }

    fn is_of(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_))
            | (Self::Text, Value::String(_))
            | (Self::Number, Value::Number(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Null, Value::Null) => true,
            (Self::Integer, Value::Number(number)) => number.as_f64().is_some_and(|it| it.fract() == 0.0),
            _ => false,
        }
    }
}

pub(super) fn check_kind(kinds: &[Kind], value: &Value) -> CheckResult {
    if kinds.is_empty() || kinds.iter().any(|kind| kind.is_of(value)) {
        return Ok(());
    }
    let found = match value {
        Value::Null => "userdata",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => "table",
    };
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    let one_of = if kinds.len() > 1 { "one of " } else { "" };
    Err(format!(
        "wrong type: expected {one_of}{}, got {found}",
        names.join(", ")
    ))
}

/// Checks a text. The description of a fault is made only if it is read, because it may be long.
pub(super) fn check_text<'t>(rules: &'t Text, text: &'t str) -> Result<(), impl FnOnce() -> String + 't> {
    enum ScalarViolation {
        Short(usize, usize),
        Long(usize, usize),
        Pattern,
        Format,
    }
    let length = match rules.least.is_some() || rules.most.is_some() {
        true => text.chars().count(),
        false => 0,
    };
    let pattern = rules.pattern.as_ref();
    let wrong = match (rules.least, rules.most) {
        (Some(least), _) if length < least => Some(ScalarViolation::Short(least, length)),
        (_, Some(most)) if length > most => Some(ScalarViolation::Long(most, length)),
        _ if pattern.is_some_and(|(_, pattern)| !pattern.is_match(text)) => Some(ScalarViolation::Pattern),
        _ if rules.format.is_some_and(|format| !format.holds(text)) => Some(ScalarViolation::Format),
        _ => None,
    };
    wrong.map_or(Ok(()), |wrong| {
        Err(move || match wrong {
            ScalarViolation::Short(least, length) => {
                format!("string too short, expected at least {least}, got {length}")
            }
            ScalarViolation::Long(most, length) => {
                format!("string too long, expected at most {most}, got {length}")
            }
            ScalarViolation::Pattern => {
                let told = pattern.map_or("", |(told, _)| told);
                format!("failed to match pattern \"{told}\" with \"{text}\"")
            }
            ScalarViolation::Format => {
                let name = rules.format.map_or("", |format| format.name());
                format!("expect valid {name} format but got: {text}")
            }
        })
    })
}

/// How many values a value is made of.
pub fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(weight).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

pub(super) fn check_number(rules: &Numbers, number: &Number) -> CheckResult {
    let value = number.as_f64().unwrap_or(f64::NAN);
    let told = |what: &str, bound: f64| Err(format!("expected {} to be {what} {bound}", written(number)));
    match rules {
        Numbers {
            minimum: Some(bound), ..
        } if value < *bound => told("at least", *bound),
        Numbers {
            above: Some(bound), ..
        } if value <= *bound => told("greater than", *bound),
        Numbers {
            maximum: Some(bound), ..
        } if value > *bound => told("at most", *bound),
        Numbers {
            below: Some(bound), ..
        } if value >= *bound => told("smaller than", *bound),
        Numbers {
            multiple_of: Some(of),
            ..
        } if !is_multiple(value, *of) => told("a multiple of", *of),
        _ => Ok(()),
    }
}

/// A number as the words have it: whole ones without a fraction.
fn written(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => value.to_string(),
        _ => number.to_string(),
    }
}

/// Of fractions, only about as much counts as a binary number can hold of them.
fn is_multiple(value: f64, of: f64) -> bool {
    let quotient = value / of;
    let rounded = quotient.round();
    (quotient - rounded).abs() <= 1e-12 * rounded.abs().max(1.0)
}
