//! The lists of changes that the two transformer plugins have in common.

use crate::schema::{Check, Default, Field, Kind, text};
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugin::headers::is_name;
use weir_plugins::field_edits::FieldEdit;
use weir_plugins::header_edits::{HeaderEdit, is_own};

/// Names of headers.
pub const NAMES: Field = list(
    "headers",
    &Field::element(Kind::String).check(&[Check::Text(check_name)]),
);
/// Pairs of a header's name and a value.
pub const PAIRS: Field = list(
    "headers",
    &Field::element(Kind::String).check(&[Check::Text(is_pair), Check::Text(check_name)]),
);
/// Pairs of a header's old and new name.
pub const NEW_NAMES: Field = list(
    "headers",
    &Field::element(Kind::String).check(&[Check::Text(is_pair), Check::Text(check_names)]),
);

/// A list of texts that is empty unless a document says otherwise.
pub const fn list(name: &'static str, element: &'static Field) -> Field {
    Field::new(name, Kind::Array(element))
        .required()
        .or(Default::Texts(&[]))
}

/// A name, a colon and perhaps more.
pub fn is_pair(text: &str) -> Result<(), String> {
    if text.contains(':') && !text.starts_with(':') {
        Ok(())
    } else {
        Err(format!("invalid value: {text}"))
    }
}

fn check_name(text: &str) -> Result<(), String> {
    is_header(split(text).0)
}

fn check_names(text: &str) -> Result<(), String> {
    let (old, new) = split(text);
    is_header(old)?;
    is_header(new)
}

fn is_header(name: &str) -> Result<(), String> {
    match text::header_name(name) {
        Ok(()) if !name.is_empty() => Ok(()),
        _ => Err(format!("'{name}' is not a valid header")),
    }
}

/// An operation of a transformer on pairs, and the step that it is.
type Operation = (&'static str, fn(BTreeMap<String, String>) -> HeaderEdit);

/// The operations on pairs, in the order in which both plugins carry them out; before them comes `remove`.
pub const OPERATIONS: [&str; 4] = ["rename", "replace", "add", "append"];

const ON_HEADERS: [Operation; 4] = [
    ("rename", HeaderEdit::Rename),
    ("replace", HeaderEdit::Replace),
    ("add", HeaderEdit::Add),
    ("append", HeaderEdit::Append),
];

/// The steps on headers in the order in which both plugins take them. Headers for which `is_special` holds are left out,
/// and those that no message has or that are the gateway's own.
pub fn steps(config: &Value, is_special: fn(&str) -> bool) -> Vec<HeaderEdit> {
    let is_special = |name: &str| is_special(name) || is_own(name) || !is_name(name.as_bytes());
    let mut steps = Vec::new();
    for name in texts(config, "remove", "headers") {
        if is_name(split(name).0.as_bytes()) {
            steps.push(HeaderEdit::Remove(vec![split(name).0.to_owned()]));
        }
    }
    for (operation, step) in ON_HEADERS {
        for pair in texts(config, operation, "headers") {
            let (name, value) = split(pair);
            // An empty value counts as none, and nothing is done.
            if !is_special(name) && !value.trim_start().is_empty() {
                let pair = (name.to_owned(), value.trim_start().to_owned());
                steps.push(step(BTreeMap::from([pair])));
            }
        }
    }
    steps
}

/// The steps on other named values, such as `querystring`. `value_of` makes a value of its text and its place in the
/// list of an operation.
pub fn field_steps(
    config: &Value,
    part: &str,
    value_of: &dyn Fn(&str, &str, usize) -> Option<Value>,
) -> Vec<FieldEdit> {
    let mut steps = Vec::new();
    for name in texts(config, "remove", part) {
        steps.push(FieldEdit::Remove(vec![split(name).0.to_owned()]));
    }
    for operation in OPERATIONS {
        for (index, pair) in texts(config, operation, part).enumerate() {
            let (name, text) = split(pair);
            if operation == "rename" {
                let names = (name.to_owned(), text.to_owned());
                steps.push(FieldEdit::Rename(BTreeMap::from([names])));
            } else if let Some(value) = value_of(operation, text, index) {
                let pair = BTreeMap::from([(name.to_owned(), value)]);
                steps.push(match operation {
                    "replace" => FieldEdit::Replace(pair),
                    "add" => FieldEdit::Add(pair),
                    _ => FieldEdit::Append(pair),
                });
            }
        }
    }
    steps
}

/// Name and value of a pair. The colons between them are no part of either.
pub fn split(pair: &str) -> (&str, &str) {
    let (name, value) = pair.split_once(':').unwrap_or((pair, ""));
    (name, value.trim_start_matches(':'))
}

/// The texts of `config.OPERATION.PART`.
pub fn texts<'c>(config: &'c Value, operation: &str, part: &str) -> impl Iterator<Item = &'c str> {
    let items = config[operation][part].as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str)
}
