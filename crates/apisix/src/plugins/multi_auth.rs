//! `multi-auth`: `multi-auth` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, is_known, mapping, meta};
use crate::schema::{Schema, any, array, object};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::multi_auth::Config;

/// The plugin `multi-auth`.
pub struct MultiAuth;

impl PluginAdapter for MultiAuth {
    fn name(&self) -> &'static str {
        "multi-auth"
    }

    fn priority(&self) -> i64 {
        2600
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("auth_plugins", array(any()).min_items(2)),
                ("_meta", meta::shape()),
            ])
            .required(["auth_plugins"])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        for (name, config) in ways(config) {
            if !is_known(name) {
                return Err(format!("{name} plugin did not found"));
            }
            let Some(mapping) = mapping(name) else {
                return Err(format!(
                    "plugin \"{name}\" is not available in this version of Weir"
                ));
            };
            if mapping.credentials().is_none() {
                return Err(format!("{name} plugin is not supported"));
            }
            complete(mapping, config)
                .map_err(|error| format!("plugin {name} check schema failed: {error}"))?;
        }
        Ok(())
    }

    fn authenticates(&self) -> bool {
        true
    }

    fn plugin(&self) -> &'static str {
        "multi-auth"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let mut any_of = Vec::new();
        for (name, config) in config.as_object().into_iter().flat_map(ways) {
            let Some((mapping, config)) =
                mapping(name).and_then(|mapping| Some((mapping, complete(mapping, config).ok()?)))
            else {
                continue;
            };
            let way = mapping.translate(&config, context, notes)?;
            any_of.push(BTreeMap::from([(mapping.plugin().to_owned(), way)]));
        }
        serde_json::to_value(Config {
            any_of,
            report_failures: true,
        })
    }
}

/// The plugins that are tried, with their configurations.
fn ways(config: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let list = config.get("auth_plugins").and_then(Value::as_array);
    let maps = list.into_iter().flatten().filter_map(Value::as_object);
    maps.flatten().map(|(name, config)| (name.as_str(), config))
}

/// A configuration with its defaults.
fn complete(mapping: &dyn PluginAdapter, config: &Value) -> Result<Value, String> {
    let mut config = config.clone();
    if matches!(&config, Value::Array(items) if items.is_empty()) {
        config = Value::Object(Map::new());
    }
    mapping.shape().check(&mut config)?;
    if let Some(config) = config.as_object() {
        mapping.check(config)?;
    }
    Ok(config)
}
