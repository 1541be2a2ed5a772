//! `echo`: `response-rewrite` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, headers, meta, read};
use crate::schema::{Schema, having, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::response_rewrite::Config;

/// The plugin `echo`.
pub struct Echo;

#[derive(Deserialize)]
struct Options {
    before_body: Option<String>,
    body: Option<String>,
    after_body: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
}

impl PluginAdapter for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn priority(&self) -> i64 {
        412
    }

    fn phases(&self) -> Phases {
        Phases {
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("before_body", text()),
                ("body", text()),
                ("after_body", text()),
                ("headers", object([]).min_fields(1)),
                ("_meta", meta::shape()),
            ])
            .min_fields(1)
            .any_of([having(["before_body"]), having(["body"]), having(["after_body"])])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "response-rewrite"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            before: options.before_body,
            body: options.body,
            after: options.after_body,
            headers: headers::set_steps(&options.headers),
            variables: false,
            ..Config::default()
        })
    }
}
