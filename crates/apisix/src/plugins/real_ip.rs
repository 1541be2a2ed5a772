//! `real-ip`: APISIX's fields and defaults for `real-ip` of the catalogue.

use super::ip_restriction::{check_addresses, explain_addresses};
use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, address, array, boolean, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::real_ip::Config;

/// The plugin `real-ip`.
pub struct RealIp;

#[derive(Deserialize)]
struct Options {
    source: String,
    #[serde(default)]
    trusted_addresses: Vec<String>,
    recursive: bool,
}

impl PluginAdapter for RealIp {
    fn name(&self) -> &'static str {
        "real-ip"
    }

    fn priority(&self) -> i64 {
        23_000
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
                ("trusted_addresses", array(address()).min_items(1)),
                ("source", text().longer(1)),
                ("recursive", boolean().or(false)),
                ("_meta", meta::shape()),
            ])
            .required(["source"])
        });
        &SHAPE
    }

    fn explain(&self, config: &Value, error: String) -> String {
        explain_addresses(config, &["trusted_addresses"], error)
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        check_addresses(config, &["trusted_addresses"])
    }

    fn plugin(&self) -> &'static str {
        "real-ip"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            from: options.source,
            trusted: options.trusted_addresses,
            recursive: options.recursive,
        })
    }
}
