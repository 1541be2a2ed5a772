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

    fn set(self) -> KindSet {
        KindSet(1 << self as u8)
    }
}

/// Types of which a value is: a whole number is of two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KindSet(u8);

impl KindSet {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Object(_) => Kind::Object.set(),
            Value::Array(_) => Kind::Array.set(),
            Value::String(_) => Kind::Text.set(),
            Value::Bool(_) => Kind::Boolean.set(),
            Value::Null => Kind::Null.set(),
            Value::Number(number) => Self::of_number(number),
        }
    }

    pub(super) fn of_number(number: &Number) -> Self {
        match number.is_f64() && number.as_f64().is_none_or(|it| it.fract() != 0.0) {
            true => Kind::Number.set(),
            false => Kind::Number.set().with(Kind::Integer),
        }
    }

    pub(super) fn one(kind: Kind) -> Self {
        kind.set()
    }

    fn with(self, kind: Kind) -> Self {
        Self(self.0 | kind.set().0)
    }

    fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The types that a schema allows, as it lists them. If it lists none, all are allowed.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    listed: Vec<Kind>,
    set: KindSet,
}

impl Kinds {
    pub(super) fn new(listed: Vec<Kind>) -> Self {
        let set = listed
            .iter()
            .fold(KindSet::default(), |set, kind| set.with(*kind));
        Self { listed, set }
    }

    /// Checks a value of these types.
    #[inline]
    pub(super) fn check(&self, found: KindSet) -> CheckResult {
        match self.listed.is_empty() || self.set.meets(found) {
            true => Ok(()),
            false => Err(self.fault(found)),
        }
    }

    #[cold]
    fn fault(&self, found: KindSet) -> String {
        let names = [
            (Kind::Null, "userdata"),
            (Kind::Boolean, "boolean"),
            (Kind::Number, "number"),
            (Kind::Text, "string"),
        ];
        let name = names.iter().find(|(kind, _)| kind.set().meets(found));
        let name = name.map_or("table", |(_, name)| name);
        let wanted: Vec<&str> = self.listed.iter().map(|kind| kind.as_str()).collect();
        let one_of = if wanted.len() > 1 { "one of " } else { "" };
        format!("wrong type: expected {one_of}{}, got {name}", wanted.join(", "))
    }
}

/// Checks a text. The description of a fault is made only if it is read, because it may be long.
pub(super) fn check_text<'t>(rules: &'t Text, text: &'t str) -> Result<(), impl FnOnce() -> String + 't> {
    enum ScalarViolation {
        Short(usize, usize),
        Long(usize, usize),
        Pattern,
        Format,
    }
    // A character takes up to four bytes: mostly, the bytes say that there are enough and not too many.
    let has_enough = rules.least.is_none_or(|least| text.len().div_ceil(4) >= least);
    let has_too_many = rules.most.is_some_and(|most| text.len() > most);
    let length = (!has_enough || has_too_many).then(|| text.chars().count());
    let pattern = rules.pattern.as_ref();
    let wrong = match (length, rules.least, rules.most) {
        (Some(length), Some(least), _) if length < least => Some(ScalarViolation::Short(least, length)),
        (Some(length), _, Some(most)) if length > most => Some(ScalarViolation::Long(most, length)),
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
                let source = pattern.map_or("", |(source, _)| source);
                format!("failed to match pattern \"{source}\" with \"{text}\"")
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
    let out_of_bounds =
        |what: &str, bound: f64| Err(format!("expected {} to be {what} {bound}", written(number)));
    match rules {
        Numbers {
            minimum: Some(bound), ..
        } if value < *bound => out_of_bounds("at least", *bound),
        Numbers {
            above: Some(bound), ..
        } if value <= *bound => out_of_bounds("greater than", *bound),
        Numbers {
            maximum: Some(bound), ..
        } if value > *bound => out_of_bounds("at most", *bound),
        Numbers {
            below: Some(bound), ..
        } if value >= *bound => out_of_bounds("smaller than", *bound),
        Numbers {
            multiple_of: Some(of),
            ..
        } if !is_multiple(value, *of) => out_of_bounds("a multiple of", *of),
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
