//! APISIX's checks of plugins that Weir lacks, which their schemas do not have.

use super::models;
use serde_json::{Map, Value};
use weir_plugins::lua_syntax;

/// A plugin's configuration.
pub(super) type Config = Map<String, Value>;

/// The checks before that of the schema.
pub(super) fn before_schema(name: &str, config: &Config) -> Result<(), String> {
    match name {
        "ai-request-rewrite" => models::rewriting_endpoint(config),
        _ => Ok(()),
    }
}

/// The checks after that of the schema, with defaults filled in.
pub(super) fn after_schema(name: &str, config: &Config) -> Result<(), String> {
    match name {
        "ai-proxy" => models::provider(config),
        "ai-proxy-multi" => models::instances(config),
        "ai-prompt-guard" => models::prompt_patterns(config),
        "ai-rate-limiting" => models::cost(config),
        "exit-transformer" => functions(config).find_map(lua_syntax::error).map_or(Ok(()), Err),
        "serverless-pre-function" | "serverless-post-function" => functions(config).try_for_each(function),
        _ => Ok(()),
    }
}

pub(super) fn text<'c>(config: &'c Config, field: &str) -> Option<&'c str> {
    config.get(field).and_then(Value::as_str)
}

pub(super) fn at<'c>(config: &'c Config, place: &[&str]) -> Option<&'c Value> {
    let (first, rest) = place.split_first()?;
    rest.iter()
        .try_fold(config.get(*first)?, |value, field| value.get(field))
}

fn functions(config: &Config) -> impl Iterator<Item = &str> {
    let functions = config.get("functions").and_then(Value::as_array);
    functions.into_iter().flatten().filter_map(Value::as_str)
}

/// A chunk that gives a function back. What it gives back is not looked at.
fn function(chunk: &str) -> Result<(), String> {
    match lua_syntax::error(chunk) {
        Some(error) => Err(format!("failed to loadstring: {error}")),
        None if !lua_syntax::returns(chunk) => {
            Err("only accept Lua function, the input code type is nil".to_owned())
        }
        None => Ok(()),
    }
}
