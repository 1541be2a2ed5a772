//! `request-validation`: `request-validation` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read, regexes};
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
        let mut schemas = schemas.iter().filter_map(|field| config.get(*field));
        schemas.try_for_each(|schema| {
            let mut schema = schema.clone();
            take_unserved(&mut schema);
            check_schema(&schema).map_err(in_the_originals_words)
        })
    }

    fn plugin(&self) -> &'static str {
        "request-validation"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        for field in ["header_schema", "body_schema"] {
            let schema = config.get(field).cloned();
            if let Some(what) = schema.and_then(|mut schema| take_unserved(&mut schema)) {
                notes.not_available(field, what);
            }
        }
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

/// Takes the regular expressions out of a schema that are right and that Weir cannot serve. Returns what the first of them
/// uses; `None`: there is none.
fn take_unserved(schema: &mut Value) -> Option<&'static str> {
    match schema {
        Value::Object(fields) => {
            let pattern = fields.get("pattern").and_then(Value::as_str);
            let mut found = regexes::unserved(pattern);
            if found.is_some() {
                fields.remove("pattern");
            }
            if let Some(Value::Object(by_pattern)) = fields.get_mut("patternProperties") {
                by_pattern.retain(|pattern, _| {
                    let what = regexes::unserved([pattern.as_str()]);
                    found = found.or(what);
                    what.is_none()
                });
            }
            let below = fields.values_mut().map(take_unserved);
            below.fold(found, Option::or)
        }
        Value::Array(items) => items.iter_mut().map(take_unserved).fold(None, Option::or),
        _ => None,
    }
}

/// If a list is expected, the original's users find the words that they know.
fn in_the_originals_words(message: String) -> String {
    match message.starts_with("expected a list") {
        true => format!("{message}: table expected, got string"),
        false => message,
    }
}
