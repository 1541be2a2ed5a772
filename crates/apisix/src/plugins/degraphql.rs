//! `degraphql`: `degraphql` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, integer, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugin::graphql::{Document, DocumentError};
use weir_plugins::degraphql::Config;

/// The plugin `degraphql`.
pub struct Degraphql;

#[derive(Deserialize)]
struct Options {
    query: String,
    operation_name: Option<String>,
    #[serde(default)]
    variables: Vec<String>,
    max_req_body_size: u64,
}

impl PluginAdapter for Degraphql {
    fn name(&self) -> &'static str {
        "degraphql"
    }

    fn priority(&self) -> i64 {
        509
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("query", text().length(1, 1024)),
                ("variables", array(text()).min_items(1)),
                ("operation_name", text().length(1, 1024)),
                ("max_req_body_size", integer().at_least(1).or(64 << 20)),
                ("_meta", meta::shape()),
            ])
            .required(["query"])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let query = config.get("query").and_then(Value::as_str).unwrap_or_default();
        match Document::read(query) {
            // APISIX names the line on which it has stopped; the document's last one is never before that.
            Err(DocumentError::Malformed) => Err(format!(
                "failed to parse query: Syntax error near line {}",
                query.lines().count().max(1)
            )),
            Ok(document) if document.operations > 1 && !config.contains_key("operation_name") => {
                Err("operation_name is required if multiple operations are present in the query".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn plugin(&self) -> &'static str {
        "degraphql"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            query: Some(options.query),
            operation_name: options.operation_name,
            variables: options.variables,
            max_body_bytes: options.max_req_body_size.min(64 << 20) as usize,
            ..Config::default()
        })
    }
}
