//! The rules for the plugins of a document.

use super::CheckContext;
use crate::admin::references::identities_of;
use crate::plugins::loggers::NO_PATH;
use crate::plugins::{Checker, PluginLocation, is_known, mapping, mqtt_proxy, unserved};
use serde_json::{Map, Value};

/// The plugins of connections.
pub const STREAM_PLUGINS: [&str; 6] = [
    "ip-restriction",
    "limit-conn",
    mqtt_proxy::NAME,
    "prometheus",
    "syslog",
    "traffic-split",
];

/// Of them those whose configuration is the same as that of the plugin of calls.
const CHECKED_ON_STREAMS: [&str; 5] = [
    "ip-restriction",
    "limit-conn",
    "prometheus",
    "syslog",
    "traffic-split",
];

/// The plugins by which consumers are recognised.
pub const AUTHENTICATING: [&str; 9] = [
    "basic-auth",
    "hmac-auth",
    "jwe-decrypt",
    "jwt-auth",
    "key-auth",
    "ldap-auth",
    "ldap-auth-advanced",
    "multi-auth",
    "wolf-rbac",
];

fn plugins(document: &Value) -> Option<&Map<String, Value>> {
    document.get("plugins").and_then(Value::as_object)
}

/// Checks the plugins of a route or of what is merged with it.
///
/// # Errors
/// In APISIX's words.
pub fn check(document: &Value, around: CheckContext<'_>) -> Result<(), String> {
    each(document, PluginLocation::Request, around)
}

/// Checks the plugins of a consumer or credential.
///
/// # Errors
/// In APISIX's words.
pub fn check_of_consumer(document: &Value, around: CheckContext<'_>) -> Result<(), String> {
    each(document, PluginLocation::Consumer, around)
        .map_err(|error| format!("invalid plugins configuration: {error}"))
}

fn each(document: &Value, side: PluginLocation, around: CheckContext<'_>) -> Result<(), String> {
    let mut checker = Checker::of_written(around.settings);
    for (name, config) in plugins(document).into_iter().flatten() {
        has_parts(name, config)?;
        if !is_completed(name, config, around) {
            checker.check(name, &mut config.clone(), side)?;
            check_path(name, config, around)?;
        }
    }
    Ok(())
}

/// Whether what a plugin lacks is in its metadata.
fn is_completed(name: &str, config: &Value, around: CheckContext<'_>) -> bool {
    let may_be = || Some(mapping(name)?.is_completed_by_metadata(config.as_object()?));
    let metadata = || around.state?.get(&format!("plugin_metadata/{name}"));
    may_be() == Some(true) && metadata().is_some()
}

/// `file-logger` needs a file, named by itself or by its metadata.
fn check_path(name: &str, config: &Value, around: CheckContext<'_>) -> Result<(), String> {
    let Some(state) = around.state.filter(|_| name == "file-logger") else {
        return Ok(());
    };
    let metadata = || state.get("plugin_metadata/file-logger")?.value.get("path");
    let is_disabled = config.pointer("/_meta/disable") == Some(&Value::Bool(true));
    match is_disabled || config.get("path").is_some() || metadata().is_some() {
        true => Ok(()),
        false => Err(format!(
            "failed to check the configuration of plugin {name} err: {NO_PATH}"
        )),
    }
}

fn has_parts(name: &str, config: &Value) -> Result<(), String> {
    match config {
        Value::Object(_) | Value::Array(_) => Ok(()),
        _ => Err(format!("invalid plugin conf {config} for plugin [{name}]")),
    }
}

/// Checks the plugins of a stream route.
///
/// # Errors
/// In APISIX's words.
pub fn check_stream(document: &Value) -> Result<(), String> {
    for (name, config) in plugins(document).into_iter().flatten() {
        has_parts(name, config)?;
        if !STREAM_PLUGINS.contains(&name.as_str()) {
            return Err(format!("unknown plugin [{name}]"));
        }
        if name == mqtt_proxy::NAME {
            mqtt_proxy::translate(config)?;
        }
        if CHECKED_ON_STREAMS.contains(&name.as_str())
            && let Some(mapping) = mapping(name)
        {
            mapping.shape().check(&mut config.clone()).map_err(|error| {
                format!("failed to check the configuration of stream plugin [{name}]: {error}")
            })?;
        }
    }
    Ok(())
}

/// Checks that all plugins are such that recognise consumers.
///
/// # Errors
/// In APISIX's words.
pub fn check_authenticate(document: &Value) -> Result<(), String> {
    let mut names = plugins(document).into_iter().flat_map(Map::keys);
    match names.all(|name| AUTHENTICATING.contains(&name.as_str())) {
        true => Ok(()),
        false => Err("only supports auth type plugins in consumer credential".to_owned()),
    }
}

/// Checks that no other consumer is recognised by the same value as this one, or its credential of an id.
///
/// # Errors
/// In APISIX's words.
pub fn check_identities(
    document: &Value,
    consumer: &str,
    credential: Option<&str>,
    around: CheckContext<'_>,
) -> Result<(), String> {
    let (Some(state), Some(plugins)) = (around.state, document.get("plugins")) else {
        return Ok(());
    };
    for (plugin, field, identity) in identities_of(plugins) {
        for owner in state.owners(plugin, identity) {
            let mut segments = owner.split('/').skip(1);
            let name = segments.next().unwrap_or_default();
            let id = segments.nth(1);
            let is_self = match credential {
                Some(_) => name == consumer && id == credential,
                None => name == consumer,
            };
            if !is_self {
                let subject = match id {
                    Some(id) => format!("credential: {id} of consumer: {name}"),
                    None => format!("consumer: {name}"),
                };
                return Err(format!(
                    "duplicate {field} of plugin {plugin} found with {subject}"
                ));
            }
        }
    }
    Ok(())
}

/// Checks the metadata of a plugin.
///
/// # Errors
/// In APISIX's words.
pub fn check_metadata(name: Option<&str>, metadata: &mut Value) -> Result<(), String> {
    let name = name.ok_or("missing plugin name")?;
    if !is_known(name) && !STREAM_PLUGINS.contains(&name) {
        return Err("invalid plugin name".to_owned());
    }
    let shape = match mapping(name) {
        Some(mapping) => mapping.metadata_shape(),
        None => unserved(name).and_then(|plugin| plugin.metadata_shape()),
    };
    let checked = match shape {
        Some(shape) => shape.check(metadata),
        None => crate::schema::object([]).check(metadata),
    };
    checked.map_err(|error| format!("invalid configuration: {error}"))
}
