//! Whether the catalogue can serve the configuration of a plugin. It is asked at the write: a store with an instance that
//! cannot be served has its calls refused.

use serde_json::Value;
use std::sync::LazyLock;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, EmptyContext, Registry};

/// Its plugins only look at configurations: no call ever comes to them.
static CATALOGUE: LazyLock<Registry> = LazyLock::new(weir_plugins::registry);

/// What is wrong with a configuration of this plugin of the catalogue; empty: nothing, or it refers to a secret, which is
/// not known here.
pub fn faults(plugin: &str, config: &Value) -> Vec<Diagnostic> {
    let Some(plugin) = CATALOGUE.get(plugin).filter(|_| !refers(config)) else {
        return Vec::new();
    };
    let empty = EmptyContext::default();
    let context = BuildContext {
        keys_may_repeat: true,
        consumers_may_be_missing: true,
        ..empty.of("", crate::NAME)
    };
    plugin.build(config, &context).err().unwrap_or_default()
}

/// Whether a configuration refers to a secret of a vault.
fn refers(config: &Value) -> bool {
    match config {
        Value::String(text) => text.contains("{vault://"),
        Value::Array(items) => items.iter().any(refers),
        Value::Object(fields) => fields.values().any(refers),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_catalogue_cannot_serve_is_at_fault() {
        for (plugin, config, expected) in [
            ("key-auth", json!({}), ""),
            ("opa", json!({"url": "http://127.0.0.1/v1/data/d"}), ""),
            ("opa", json!({"url": "nonsense"}), "url"),
            ("opa", json!({"url": "{vault://env/agent}"}), ""),
            ("no-such-plugin", json!({}), ""),
        ] {
            let found = faults(plugin, &config);
            let places: Vec<String> = found.iter().map(|it| it.path.to_string()).collect();
            assert_eq!(places.join(" "), expected, "{plugin} {config}");
        }
    }
}
