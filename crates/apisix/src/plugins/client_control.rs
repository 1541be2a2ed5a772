//! `client-control`: `request-size-limit` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, integer, object};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::request_size_limit::Config;

/// The plugin `client-control`.
pub struct ClientControl;

#[derive(Deserialize)]
struct Options {
    max_body_size: Option<u64>,
}

impl PluginAdapter for ClientControl {
    fn name(&self) -> &'static str {
        "client-control"
    }

    fn priority(&self) -> i64 {
        22_000
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> =
            LazyLock::new(|| object([("max_body_size", integer().at_least(0)), ("_meta", meta::shape())]));
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "request-size-limit"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            max_bytes: options.max_body_size.filter(|size| *size > 0),
            expect_status: 413,
            ..Config::default()
        })
    }
}
