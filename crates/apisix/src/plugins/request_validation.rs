//! `request-validation`: `request-validation` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, having, integer, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::request_validation::{Config, check_schema};

/// The plugin `request-validation`.
pub struct RequestValidation;

#[derive(Deserialize)]
struct Options {
    header_schema: Option<Map<String, Value>>,
    body_schema: Option<Map<String, Value>>,
    max_req_body_size: usize,
    rejected_code: u16,
    rejected_msg: Option<String>,
}

impl PluginAdapter for RequestValidation {
    fn name(&self) -> &'static str {
        "request-validation"
    }

    fn priority(&self) -> i64 {
        2800
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
                ("header_schema", object([])),
                ("body_schema", object([])),
                ("max_req_body_size", integer().at_least(1).or(67_108_864)),
                ("rejected_code", integer().at_least(200).at_most(599).or(400)),
                ("rejected_msg", text().length(1, 256)),
                ("_meta", meta::shape()),
            ])
            .any_of([having(["header_schema"]), having(["body_schema"])])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let schemas = ["body_schema", "header_schema"];
        schemas
            .iter()
            .filter_map(|field| config.get(*field))
            .try_for_each(|schema| check_schema(schema).map_err(in_the_originals_words))
    }

    fn plugin(&self) -> &'static str {
        "request-validation"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            header_schema: options.header_schema,
            body_schema: options.body_schema,
            max_body_bytes: options.max_req_body_size,
            status: options.rejected_code,
            message: options.rejected_msg,
        })
    }
}

/// If a list is expected, the original's users find the words that they know.
fn in_the_originals_words(message: String) -> String {
    match message.starts_with("expected a list") {
        true => format!("{message}: table expected, got string"),
        false => message,
    }
}
