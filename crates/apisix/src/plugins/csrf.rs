//! `csrf`: APISIX's fields and defaults for `csrf` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::csrf::Config;

/// The plugin `csrf`.
pub struct Csrf;

#[derive(Deserialize)]
struct Options {
    key: String,
    expires: i64,
    name: String,
}

impl PluginAdapter for Csrf {
    fn name(&self) -> &'static str {
        "csrf"
    }

    fn priority(&self) -> i64 {
        2980
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("key", text()),
                ("expires", integer().or(7200)),
                ("name", text().or("apisix-csrf-token")),
                ("_meta", meta::shape()),
            ])
            .required(["key"])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "csrf"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            key: options.key,
            expires_seconds: options.expires,
            name: options.name,
        })
    }
}
