//! Fields that several plugins of the paid edition have in common.

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
