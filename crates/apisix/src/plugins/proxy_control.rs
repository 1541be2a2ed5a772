//! `proxy-control`: `request-buffering` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta};
use crate::schema::{Schema, boolean, object};
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::request_buffering::Config;

/// The plugin `proxy-control`.
pub struct ProxyControl;

impl PluginAdapter for ProxyControl {
    fn name(&self) -> &'static str {
        "proxy-control"
    }

    fn priority(&self) -> i64 {
        21_990
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
                ("request_buffering", boolean().or(true)),
                ("_meta", meta::shape()),
            ])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "request-buffering"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        serde_json::to_value(Config {
            enabled: config["request_buffering"] == Value::Bool(true),
            ..Config::default()
        })
    }
}
