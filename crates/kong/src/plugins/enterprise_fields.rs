//! Fields that several plugins of the paid edition have in common.

use super::UnsupportedOption;
use crate::schema::{Check, Default, Field, Kind};
use serde_json::Value;
use weir_plugins::openapi_validation::{Action, BasePath};

/// Whether calls are stopped.
pub const MODE: Field = Field::new("enforcement_mode", Kind::String)
    .or(Default::Text("block"))
    .check(&[Check::OneOf(&["block", "log_only"])]);
/// The status of calls that are stopped.
pub const STATUS: Field = Field::new("error_status_code", Kind::Integer)
    .or(Default::Integer(400))
    .check(&[Check::Between(400, 499)]);
/// The message for them.
pub const MESSAGE: Field = Field::new("error_message", Kind::String).or(Default::Text("Bad Request"));

/// A truth value that has a default.
pub const fn flag(name: &'static str, default: bool) -> Field {
    Field::new(name, Kind::Boolean).or(Default::Boolean(default))
}

/// Refuses a field of these that has another value than its default: only that one is served. `null` stands for the
/// default, and so does an empty list or map if the default has nothing in it either.
///
/// # Errors
/// The first such field.
pub fn only_defaults(config: &Value, fields: &'static [Field]) -> Result<(), UnsupportedOption> {
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    // The order of choices means nothing.
    let has_same_items = |value: &Value, default: &Value| match (value, default) {
        (Value::Array(value), Value::Array(default)) => {
            value.len() == default.len() && value.iter().all(|it| default.contains(it))
        }
        _ => false,
    };
    let differs = |field: &&Field| {
        let value = config.get(field.name).unwrap_or(&Value::Null);
        let is_number = |default: &Value| value.as_f64().is_some() && value.as_f64() == default.as_f64();
        let default = field.default.value();
        let is_absent = is_nothing(value) && (value.is_null() || is_nothing(&default));
        !is_absent && *value != default && !is_number(&default) && !has_same_items(value, &default)
    };
    match fields.iter().find(differs) {
        Some(field) => Err(UnsupportedOption {
            field: field.name,
            what: format!("another value of {} than its default", field.name),
        }),
        None => Ok(()),
    }
}

/// The action for calls in a mode.
pub fn action(mode: &str) -> Action {
    match mode {
        "log_only" => Action::Log,
        _ => Action::Refuse,
    }
}

/// The base path in the originals' terms.
pub fn base_path(config: &Value) -> BasePath {
    match (
        config["custom_base_path"].as_str(),
        config["include_base_path"].as_bool(),
    ) {
        (Some(path), _) => BasePath::Path(path.to_owned()),
        (None, Some(true)) => BasePath::Servers,
        _ => BasePath::None,
    }
}
