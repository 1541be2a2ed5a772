//! The headers by which a gateway believes who calls, as its configuration says: `real_ip` of a dialect, and plugins that
//! take an address or a certificate from a header. Which peers it believes is not looked at here.

use std::collections::BTreeSet;
use weir_model::{ChainStep, Model, PluginInstance, PluginRef};

/// Takes the client's address from a variable.
const ADDRESS: &str = "real-ip";
/// Takes the client's certificate from a header, if it is told so.
const CERTIFICATE: &str = "mtls-auth";

/// Their names, in small letters.
pub fn of(model: &Model) -> BTreeSet<String> {
    let settings = model.dialect_settings.iter();
    let of_dialects = settings.filter_map(|it| Some(it.real_ip.as_ref()?.header.to_ascii_lowercase()));
    let chains = model.routes.iter().map(|it| &it.plugins);
    let steps = chains.chain([&model.unmatched]).flatten();
    let of_plugins = steps.filter_map(inline).chain(&model.plugins).filter_map(header);
    of_dialects.chain(of_plugins).collect()
}

/// The instance that is written in a step.
fn inline(step: &ChainStep) -> Option<&PluginInstance> {
    match step.plugin.as_ref()? {
        PluginRef::Inline(instance) => Some(&**instance),
        PluginRef::Shared(_) => None,
    }
}

/// The header that a plugin believes; `None`: it believes none.
fn header(plugin: &PluginInstance) -> Option<String> {
    let text = |place: &str| Some(plugin.config.pointer(place)?.as_str()?.to_ascii_lowercase());
    match plugin.name.as_str() {
        // Other variables are other parts of the call.
        ADDRESS => Some(text("/from")?.strip_prefix("http_")?.replace('_', "-")),
        CERTIFICATE => text("/source/header/name"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_and_plugins_name_headers() {
        let plugin = |name: &str, config: serde_json::Value| json!({"name": name, "config": config});
        let model = json!({
            "dialect_settings": [{"real_ip": {"header": "X-From-The-Edge", "trusted": ["127.0.0.1/32"]}}],
            "plugins": [
                {"id": "shared", "name": "real-ip", "config": {"from": "http_X_Client_Address"}},
                {"id": "other", "name": "key-auth", "config": {"from": "http_x_no"}},
            ],
            "unmatched": [
                {"use": plugin("mtls-auth", json!({"source": {"header": {"name": "X-Client-Cert"}}}))},
                {"use": plugin("mtls-auth", json!({}))},
                {"use": plugin("real-ip", json!({"from": "arg_ip"}))},
                {"use": "shared"},
            ],
        });
        let model: Model = serde_json::from_value(model).expect("a model");
        let found: Vec<String> = of(&model).into_iter().collect();
        assert_eq!(found, ["x-client-address", "x-client-cert", "x-from-the-edge"]);
    }
}
