//! `_meta`: what may be said about any plugin.

use crate::schema::{Schema, any, array, boolean, integer, object, one_of, text};
use serde::Deserialize;
use serde_json::Value;

/// The `_meta` of a plugin's configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The plugin does not work.
    pub disable: bool,
    /// The body of the plugin's refusals: a text, or anything else as JSON.
    pub error_response: Option<Value>,
    /// Place among the plugins of the same phase, in place of the plugin's own.
    pub priority: Option<i64>,
    /// A condition for the plugin to work.
    pub filter: Option<Vec<Value>>,
    /// A function in Lua.
    pub pre_function: Option<String>,
}

impl Meta {
    /// The `_meta` of a configuration; of one that has none, the default.
    pub fn of(config: &Value) -> Self {
        config
            .get("_meta")
            .and_then(|meta| Self::deserialize(meta).ok())
            .unwrap_or_default()
    }
}

/// The shape of `_meta`.
pub fn shape() -> Schema {
    object([
        ("disable", boolean()),
        ("error_response", one_of([text(), object([])])),
        ("priority", integer()),
        ("filter", array(any())),
        ("pre_function", text()),
    ])
    .closed()
}
