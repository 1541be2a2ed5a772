//! Checks of single values and of several fields together, in Kong's words.

use super::fields::Fields;
use super::location::{Location, Problems};
use serde_json::Value;
use weir_model::DocPath;

/// A condition on one value in addition to its kind.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// A number from the first to the second.
    Between(i64, i64),
    /// A number from the first to the second, which are no whole numbers.
    Range(f64, f64),
    /// A number above this.
    Above(i64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these numbers.
    OneOfNumbers(&'static [i64]),
    /// None of these texts.
    NotOneOf(&'static [&'static str]),
    /// A text that begins with this.
    StartsWith(&'static str),
    /// A list of at least so many items.
    AtLeast(usize),
    /// A text for which the function has no complaint.
    Text(fn(&str) -> Result<(), String>),
    /// Any value for which the function has no complaint.
    Value(fn(&Value) -> Result<(), String>),
}

impl Check {
    /// The complaint about `value`, if there is one. Values of another kind have been refused before.
    pub fn verify(&self, value: &Value) -> Result<(), String> {
        let text = value.as_str().unwrap_or_default();
        let message = match self {
            Self::Between(low, high) => {
                let number = value.as_f64().unwrap_or_default();
                if number >= *low as f64 && number <= *high as f64 {
                    return Ok(());
                }
                format!("value should be between {low} and {high}")
            }
            Self::Range(low, high) => {
                let number = value.as_f64().unwrap_or_default();
                if (*low..=*high).contains(&number) {
                    return Ok(());
                }
                format!("value should be between {low} and {high}")
            }
            Self::Above(low) if value.as_f64().is_some_and(|number| number > *low as f64) => return Ok(()),
            Self::Above(low) => format!("value must be greater than {low}"),
            Self::OneOf(texts) if texts.contains(&text) => return Ok(()),
            Self::OneOf(texts) => format!("expected one of: {}", texts.join(", ")),
            Self::OneOfNumbers(numbers) => {
                if value.as_i64().is_some_and(|number| numbers.contains(&number)) {
                    return Ok(());
                }
                let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
                format!("expected one of: {}", numbers.join(", "))
            }
            Self::NotOneOf(texts) if !texts.contains(&text) => return Ok(()),
            Self::NotOneOf(texts) => format!("must not be one of: {}", texts.join(", ")),
            Self::StartsWith(prefix) if text.starts_with(prefix) => return Ok(()),
            Self::StartsWith(prefix) => format!("should start with: {prefix}"),
            Self::AtLeast(count) if value.as_array().is_some_and(|items| items.len() >= *count) => {
                return Ok(());
            }
            Self::AtLeast(count) => format!("length must be at least {count}"),
            Self::Text(test) => return test(text),
            Self::Value(test) => return test(value),
        };
        Err(message)
    }
}

/// A condition on several fields together. Fields are named with dots from the entity
/// (`config.redis.host`).
#[derive(Debug, Clone, Copy)]
pub enum EntityCheck {
    /// At least one has a value.
    AtLeastOneOf(&'static [&'static str]),
    /// Exactly one has a value.
    ExactlyOneOf(&'static [&'static str]),
    /// At most one has a value.
    MutuallyExclusive(&'static [&'static str]),
    /// All have a value, or none.
    MutuallyRequired(&'static [&'static str]),
    /// No two have the same value.
    Distinct(&'static [&'static str]),
    /// If one field has some value, another must comply.
    When {
        /// The first field.
        field: &'static str,
        /// The value that makes the check apply.
        is: FieldTest,
        /// The other field.
        then: &'static str,
        /// The requirement.
        must: Requirement,
    },
    /// A function has no complaint about the entity.
    Test(fn(&Fields) -> Result<(), String>),
    /// A function has no complaints about fields because of others.
    Fields(fn(&Fields) -> Vec<(&'static str, String)>),
}

/// A test of the field that a check depends on.
#[derive(Debug, Clone, Copy)]
pub enum FieldTest {
    /// Equal to this.
    Equal(&'static str),
    /// One of these.
    OneOf(&'static [&'static str]),
    /// None of these.
    NotOneOf(&'static [&'static str]),
    /// A number above this.
    Above(i64),
}

/// The requirement for a field because of another.
#[derive(Debug, Clone, Copy)]
pub enum Requirement {
    /// It has no value.
    BeNull,
    /// It has a value.
    BeGiven,
    /// It is one of these.
    BeOneOf(&'static [&'static str]),
    /// It has a value, a text for which the function has no complaint.
    BeText(fn(&str) -> Result<(), String>),
    /// It is a list with this text in it, or none.
    Contain(&'static str),
}

impl EntityCheck {
    /// Reports what is wrong with `entity`, which stands at `place`. What is wrong with fields by themselves (`failed`, by
    /// their first name) is among the problems already: checks do not depend on the value of a wrong field, and what
    /// they say of one goes before what was said.
    pub fn verify(&self, entity: &Fields, failed: &[&str], place: &Location<'_>, problems: &mut Problems) {
        let message = match self {
            Self::AtLeastOneOf(fields) if fields.iter().any(|field| is_given(entity, field)) => return,
            Self::AtLeastOneOf(fields) => {
                format!(
                    "at least one of these fields must be non-empty: {}",
                    quoted(fields)
                )
            }
            Self::ExactlyOneOf(fields) if count_given(entity, fields) == 1 => return,
            Self::ExactlyOneOf(fields) => {
                format!(
                    "exactly one of these fields must be non-empty: {}",
                    quoted(fields)
                )
            }
            Self::MutuallyExclusive(fields) if count_given(entity, fields) <= 1 => return,
            Self::MutuallyExclusive(fields) => {
                format!("only one or none of these fields must be set: {}", quoted(fields))
            }
            Self::MutuallyRequired(fields) => match count_given(entity, fields) {
                0 => return,
                count if count == fields.len() => return,
                _ => format!("all or none of these fields must be set: {}", quoted(fields)),
            },
            Self::Distinct(fields) => {
                let values: Vec<&Value> = fields
                    .iter()
                    .filter_map(|field| find(entity, field))
                    .filter(|value| !value.is_null())
                    .collect();
                let is_distinct = values
                    .iter()
                    .enumerate()
                    .all(|(index, value)| !values[..index].contains(value));
                if is_distinct {
                    return;
                }
                format!("values of these fields must be distinct: {}", quoted(fields))
            }
            Self::When {
                field,
                is,
                then,
                must,
            } => {
                if !is.holds(find(entity, field)) || is_wrong(field, failed, place, problems) {
                    return;
                }
                let then_is_wrong = is_wrong(then, failed, place, problems);
                match must.verify(find(entity, then)) {
                    Err(message) => {
                        if then_is_wrong {
                            let path = path_of(place, then);
                            problems.0.retain(|found| !found.path.0.starts_with(&path.0));
                        }
                        report_at(place, then, &message, problems);
                    }
                    Ok(()) if then_is_wrong && !matches!(must, Requirement::BeNull) => {}
                    Ok(()) => return,
                }
                format!("failed conditional validation given value of field '{field}'")
            }
            Self::Test(test) => match test(entity) {
                Ok(()) => return,
                Err(message) => message,
            },
            Self::Fields(test) => {
                for (field, message) in test(entity) {
                    report_at(place, field, &message, problems);
                }
                return;
            }
        };
        problems.error(place, message);
    }
}

/// Whether something was reported about a field already.
fn is_wrong(field: &str, failed: &[&str], place: &Location<'_>, problems: &Problems) -> bool {
    if !failed.contains(&field.split('.').next().unwrap_or(field)) {
        return false;
    }
    let path = path_of(place, field);
    problems.0.iter().any(|found| found.path.0.starts_with(&path.0))
}

/// The place of a field that is named with dots.
fn path_of(place: &Location<'_>, field: &str) -> DocPath {
    field
        .split('.')
        .fold(place.to_path(), |path, step| path.field(step))
}

fn report_at(place: &Location<'_>, field: &str, message: &str, problems: &mut Problems) {
    match field.split_once('.') {
        Some((first, rest)) => report_at(&place.field(first), rest, message, problems),
        None => problems.error(&place.field(field), message),
    }
}

impl FieldTest {
    fn holds(self, value: Option<&Value>) -> bool {
        if let Self::Above(low) = self {
            return value
                .and_then(Value::as_f64)
                .is_some_and(|number| number > low as f64);
        }
        let Some(text) = value.and_then(Value::as_str) else {
            return false;
        };
        match self {
            Self::Above(_) => false,
            Self::Equal(other) => text == other,
            Self::OneOf(others) => others.contains(&text),
            Self::NotOneOf(others) => !others.contains(&text),
        }
    }
}

impl Requirement {
    fn verify(self, value: Option<&Value>) -> Result<(), String> {
        let value = value.filter(|value| !value.is_null());
        match (self, value) {
            (Self::BeNull | Self::BeOneOf(_) | Self::Contain(_), None) | (Self::BeGiven, Some(_)) => Ok(()),
            (Self::BeNull, Some(_)) => Err("value must be null".to_owned()),
            (Self::BeText(test), Some(value)) => test(value.as_str().unwrap_or_default()),
            (Self::Contain(text), Some(value)) => {
                let mut items = value.as_array().into_iter().flatten();
                match items.any(|item| item.as_str() == Some(text)) {
                    true => Ok(()),
                    false => Err(format!("expected to contain: {text}")),
                }
            }
            (Self::BeGiven | Self::BeText(_), None) => Err("required field missing".to_owned()),
            (Self::BeOneOf(texts), Some(value)) => Check::OneOf(texts).verify(value),
        }
    }
}

/// The value of a field that is named with dots.
fn find<'e>(entity: &'e Fields, field: &str) -> Option<&'e Value> {
    let mut steps = field.split('.');
    let first = entity.get(steps.next()?)?;
    steps.try_fold(first, |record, step| record.as_object()?.get(step))
}

fn is_given(entity: &Fields, field: &str) -> bool {
    match find(entity, field) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}

fn count_given(entity: &Fields, fields: &[&str]) -> usize {
    fields.iter().filter(|field| is_given(entity, field)).count()
}

fn quoted(fields: &[&str]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| format!("'{field}'")).collect();
    fields.join(", ")
}
