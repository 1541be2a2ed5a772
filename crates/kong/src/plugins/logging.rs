//! What the plugins that log have in common.

use super::Unfit;
use serde_json::Value;
use weir_plugins::logger::Config;

/// The configuration that all of them begin with.
pub fn base(config: &Value) -> Result<Config, Unfit> {
    let is_used = |fields: &Value| fields.as_object().is_some_and(|it| !it.is_empty());
    if is_used(&config["custom_fields_by_lua"]) {
        return Err(Unfit {
            field: "custom_fields_by_lua",
            what: "code in Lua".to_owned(),
        });
    }
    Ok(Config::default())
}
