//! The lists of header changes that the two transformer plugins have in common.

use super::Unfit;
use crate::schema::{Check, Default, Field, Kind};
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::header_steps::HeaderStep;

/// Names.
pub const NAMES: Field = list(
    "headers",
    &Field::element(Kind::String).check(&[Check::Text(check_name)]),
);
/// Pairs of a name and a value, or of an old and a new name.
pub const PAIRS: Field = list(
    "headers",
    &Field::element(Kind::String).check(&[Check::Text(check_pair)]),
);

/// A list of texts that is empty unless a document says otherwise.
pub const fn list(name: &'static str, element: &'static Field) -> Field {
    Field::new(name, Kind::Array(element))
        .required()
        .or(Default::Texts(&[]))
}

fn check_name(text: &str) -> Result<(), String> {
    let name = text.split(':').next().unwrap_or_default();
    if !name.is_empty() && weir_plugin::headers::is_name(name.as_bytes()) {
        Ok(())
    } else {
        Err(format!("'{name}' is not a valid header"))
    }
}

fn check_pair(text: &str) -> Result<(), String> {
    if !text.contains(':') || text.starts_with(':') {
        return Err(format!("invalid value: {text}"));
    }
    check_name(text)
}

type MakeStep = fn(BTreeMap<String, String>) -> HeaderStep;

/// The steps in the order in which both plugins take them.
pub fn steps(config: &Value) -> Result<Vec<HeaderStep>, Unfit> {
    let mut steps = Vec::new();
    for name in headers(config, "remove") {
        if name.contains(':') {
            return Err(Unfit {
                field: "remove",
                what: "removing a header by its value".to_owned(),
            });
        }
        steps.push(HeaderStep::Remove(vec![name.to_owned()]));
    }
    let kinds: [(&str, MakeStep); 4] = [
        ("rename", HeaderStep::Rename),
        ("replace", HeaderStep::Replace),
        ("add", HeaderStep::Add),
        ("append", HeaderStep::Append),
    ];
    for (operation, step) in kinds {
        for pair in headers(config, operation) {
            let (name, value) = pair.split_once(':').unwrap_or((pair, ""));
            let pair = (name.to_owned(), value.trim_start().to_owned());
            steps.push(step(BTreeMap::from([pair])));
        }
    }
    Ok(steps)
}

/// The texts of `config.OPERATION.headers`.
pub fn headers<'c>(config: &'c Value, operation: &str) -> impl Iterator<Item = &'c str> {
    texts(&config[operation]["headers"])
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str)
}

/// Complains about the first of `parts` (such as `json`) that any operation uses.
pub fn refuse_parts(config: &Value, parts: &[&str]) -> Result<(), Unfit> {
    for operation in ["remove", "rename", "replace", "add", "append"] {
        for part in parts {
            let is_used = match &config[operation][*part] {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                _ => true,
            };
            if is_used {
                return Err(Unfit {
                    field: operation,
                    what: format!("\"{operation}.{part}\" of a transformer"),
                });
            }
        }
    }
    Ok(())
}
