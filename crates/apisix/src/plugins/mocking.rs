//! `mocking`: APISIX's fields and defaults for `mocking` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, headers, meta, read};
use crate::schema::{Schema, boolean, having, integer, number, object, one_of, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::header_edits::HeaderEdit;
use weir_plugins::mocking::Config;

/// The plugin `mocking`.
pub struct Mocking;

#[derive(Deserialize)]
struct Options {
    delay: i64,
    response_status: u64,
    content_type: String,
    response_example: Option<String>,
    response_schema: Option<Value>,
    #[serde(default)]
    response_headers: Map<String, Value>,
    with_mock_header: bool,
}

impl PluginAdapter for Mocking {
    fn name(&self) -> &'static str {
        "mocking"
    }

    fn priority(&self) -> i64 {
        10_900
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let values = object([]).each_field("^[^:]+$", one_of([text(), number()]));
            object([
                ("delay", integer().or(0)),
                ("response_status", integer().at_least(100).or(200)),
                ("content_type", text().or("application/json;charset=utf8")),
                ("response_example", text()),
                ("response_schema", object([])),
                ("with_mock_header", boolean().or(true)),
                ("response_headers", values.min_fields(1)),
                ("_meta", meta::shape()),
            ])
            .any_of([having(["response_example"]), having(["response_schema"])])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        const KNOWN: [&str; 5] = [
            "application/xml",
            "application/json",
            "text/plain",
            "text/html",
            "text/xml",
        ];
        let content_type = config
            .get("content_type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        match KNOWN.contains(&media_type) {
            true => Ok(()),
            false => Err("unsupported content type!".to_owned()),
        }
    }

    fn plugin(&self) -> &'static str {
        "mocking"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let mut steps = headers::set_steps(&options.response_headers);
        if options.with_mock_header {
            let header = ("x-mock-by".to_owned(), crate::errors::SERVER.to_owned());
            steps.push(HeaderEdit::Set(BTreeMap::from([header])));
        }
        serde_json::to_value(Config {
            status: super::uri_blocker::answerable(options.response_status),
            content_type: options.content_type,
            headers: steps,
            example: options.response_example,
            schema: options.response_schema,
            delay_seconds: options.delay.clamp(0, 3600) as u32,
        })
    }
}
