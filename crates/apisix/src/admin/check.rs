//! Whether a document may be stored: what a shape cannot say, in the order and the words of APISIX.

mod groups;
mod json_path;
mod plugins;
mod reference;
mod ssl;
mod upstream;

pub use plugins::{AUTHENTICATING, STREAM_PLUGINS};
use weir_plugins::lua_syntax;

use super::kind::Kind;
use super::state::AdminState;
use crate::document::{id_text, proto, secret};
use crate::settings::Settings;
use crate::translate::vars;
use serde_json::{Map, Value};

/// The context of a document's checks.
#[derive(Clone, Copy)]
pub struct CheckContext<'s> {
    /// The stored documents; `None`: what is referred to is not looked for.
    pub state: Option<&'s AdminState>,
    /// The consumer of a credential, the kind of a vault.
    pub owner: Option<&'s str>,
    /// APISIX's `config.yaml`.
    pub settings: &'static Settings,
}

/// Checks a document of a kind. `id` is the one that it is stored under, if that is known.
///
/// # Errors
/// In APISIX's words.
pub fn check(kind: Kind, id: Option<&str>, document: &Value, around: CheckContext<'_>) -> Result<(), String> {
    // The check fills in defaults, which are not stored.
    let mut value = document.clone();
    check_alone(kind, id, &mut value, around)?;
    groups::check(kind, id, document, around)
}

fn check_alone(
    kind: Kind,
    id: Option<&str>,
    value: &mut Value,
    around: CheckContext<'_>,
) -> Result<(), String> {
    match kind {
        Kind::Route => route(value, around),
        Kind::Service => service(value, around),
        Kind::Upstream => upstream::check(value, around),
        Kind::Consumer => consumer(id, value, around),
        Kind::Credential => credential(id, value, around),
        Kind::ConsumerGroup | Kind::PluginConfig => {
            shaped(kind, value)?;
            plugins::check(value, around)
        }
        Kind::GlobalRule => global_rule(id, value, around),
        Kind::PluginMetadata => plugins::check_metadata(id, value),
        Kind::Ssl => ssl::check(value),
        Kind::Proto => {
            shaped(kind, value)?;
            let content = value.get("content").and_then(Value::as_str).unwrap_or_default();
            proto::check_content(content)
        }
        Kind::StreamRoute => stream_route(id, value, around),
        Kind::Secret => vault(around.owner, value),
        Kind::CostDecoration => shaped(kind, value),
    }
}

/// Checks the shape and fills in defaults.
fn shaped(kind: Kind, value: &mut Value) -> Result<(), String> {
    match kind.shape() {
        Some(shape) => shape
            .check(value)
            .map_err(|error| format!("invalid configuration: {error}")),
        None => Ok(()),
    }
}

fn route(value: &mut Value, around: CheckContext<'_>) -> Result<(), String> {
    let has = |field: &str| is_given(value.get(field));
    if has("host") && has("hosts") {
        return Err("only one of host or hosts is allowed".to_owned());
    }
    if has("remote_addr") && has("remote_addrs") {
        return Err("only one of remote_addr or remote_addrs is allowed".to_owned());
    }
    shaped(Kind::Route, value)?;
    if let Some(inline) = value.get_mut("upstream") {
        upstream::check(inline, around)?;
    }
    for (field, what, collection) in [
        ("upstream_id", "upstream", "upstreams"),
        ("service_id", "service", "services"),
        ("plugin_config_id", "plugin config", "plugin_configs"),
    ] {
        reference::check(value.get(field), what, collection, around)?;
    }
    plugins::check(value, around)?;
    let conditions = value.get("vars").and_then(Value::as_array);
    if let Some(Err(error)) = conditions.map(|rules| vars::check(rules)) {
        return Err(format!("failed to validate the 'vars' expression: {error}"));
    }
    value
        .get("vars")
        .map_or(Ok(()), json_path::check)
        .map_err(|error| format!("failed to validate the 'vars' expression: {error}"))?;
    if let Some(function) = value.get("filter_func").and_then(Value::as_str)
        && let Some(error) = lua_syntax::error(&format!("return {function}"))
    {
        return Err(format!("failed to load 'filter_func' string: {error}"));
    }
    check_script(value)
}

/// A script must be Lua; what it makes is not looked at.
fn check_script(value: &Value) -> Result<(), String> {
    match value
        .get("script")
        .and_then(Value::as_str)
        .and_then(lua_syntax::error)
    {
        Some(error) => Err(format!("failed to load 'script' string: {error}")),
        None => Ok(()),
    }
}

fn service(value: &mut Value, around: CheckContext<'_>) -> Result<(), String> {
    shaped(Kind::Service, value)?;
    if let Some(inline) = value.get_mut("upstream") {
        upstream::check(inline, around)?;
    }
    reference::check(value.get("upstream_id"), "upstream", "upstreams", around)?;
    plugins::check(value, around)?;
    check_script(value)
}

fn consumer(name: Option<&str>, value: &mut Value, around: CheckContext<'_>) -> Result<(), String> {
    shaped(Kind::Consumer, value)?;
    let username = value.get("username").and_then(Value::as_str).unwrap_or_default();
    if name.is_some_and(|name| name != username) {
        return Err("wrong username".to_owned());
    }
    let username = username.to_owned();
    plugins::check_of_consumer(value, around)?;
    plugins::check_identities(value, &username, None, around)?;
    reference::check(value.get("group_id"), "consumer group", "consumer_groups", around)
}

fn credential(id: Option<&str>, value: &mut Value, around: CheckContext<'_>) -> Result<(), String> {
    shaped(Kind::Credential, value)?;
    plugins::check_of_consumer(value, around)?;
    plugins::check_authenticate(value)?;
    match around.owner {
        Some(consumer) => plugins::check_identities(value, consumer, id, around),
        None => Ok(()),
    }
}

fn global_rule(id: Option<&str>, value: &mut Value, around: CheckContext<'_>) -> Result<(), String> {
    shaped(Kind::GlobalRule, value)?;
    plugins::check(value, around)?;
    let own = value.get("plugins").and_then(Value::as_object);
    let own: Vec<&String> = own.into_iter().flat_map(Map::keys).collect();
    let others = around
        .state
        .into_iter()
        .flat_map(|state| state.of_kind(Kind::GlobalRule));
    for other in others.filter(|other| Some(other.id()) != id) {
        let plugins = other.value.get("plugins");
        let clash = own
            .iter()
            .find(|name| plugins.is_some_and(|plugins| is_given(plugins.get(name.as_str()))));
        if let Some(name) = clash {
            return Err(format!(
                "plugin '{name}' already exists in global rule with id '{}'",
                other.id()
            ));
        }
    }
    Ok(())
}

fn stream_route(id: Option<&str>, value: &mut Value, around: CheckContext<'_>) -> Result<(), String> {
    const PROTOCOLS: [&str; 2] = ["redis", "dubbo"];
    shaped(Kind::StreamRoute, value)?;
    reference::check(value.get("upstream_id"), "upstream", "upstreams", around)?;
    reference::check(value.get("service_id"), "service", "services", around)?;
    let protocol = value.get("protocol");
    let name = |of: Option<&Value>| Some(of?.get("name")?.as_str()?.to_owned());
    let superior = protocol.and_then(|protocol| id_text(protocol.get("superior_id")?));
    if let (Some(superior), Some(state)) = (superior, around.state) {
        if id == Some(superior.as_str()) {
            return Err("stream route can not set itself as superior_id".to_owned());
        }
        let Some(above) = state.get(&format!("stream_routes/{superior}")) else {
            return Err(format!(
                "failed to fetch stream routes[{superior}], response code: 404"
            ));
        };
        let (own, theirs) = (name(protocol), name(above.value.get("protocol")));
        if let (Some(own), Some(theirs)) = (own, theirs)
            && own != theirs
        {
            return Err(format!(
                "protocol mismatch: subordinate protocol [{own}] does not match superior protocol [{theirs}]"
            ));
        }
    }
    plugins::check_stream(value)?;
    match name(protocol) {
        Some(name) if !PROTOCOLS.contains(&name.as_str()) => Err(format!("unknown protocol [{name}]")),
        _ => Ok(()),
    }
}

fn vault(manager: Option<&str>, value: &mut Value) -> Result<(), String> {
    let manager = manager.ok_or("missing secret type")?;
    let shape = secret::shape(manager).ok_or_else(|| format!("invalid secret manager: {manager}"))?;
    shape
        .check(value)
        .map_err(|error| format!("invalid configuration: {error}"))
}

/// Whether a field has a value. In APISIX's scripting language `false` counts as no value, but `null` of JSON as one.
pub fn is_given(value: Option<&Value>) -> bool {
    !matches!(value, None | Some(Value::Bool(false)))
}
