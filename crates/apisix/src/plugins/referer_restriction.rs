//! `referer-restriction`: `referer-restriction` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, boolean, having, host, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::referer_restriction::Config;

/// The plugin `referer-restriction`.
pub struct RefererRestriction;

#[derive(Deserialize)]
struct Options {
    bypass_missing: bool,
    #[serde(default)]
    whitelist: Vec<String>,
    #[serde(default)]
    blacklist: Vec<String>,
    message: String,
}

impl PluginAdapter for RefererRestriction {
    fn name(&self) -> &'static str {
        "referer-restriction"
    }

    fn priority(&self) -> i64 {
        2990
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
                ("bypass_missing", boolean().or(false)),
                ("whitelist", array(host()).min_items(1)),
                ("blacklist", array(host()).min_items(1)),
                (
                    "message",
                    text().length(1, 1024).or("Your referer host is not allowed"),
                ),
                ("_meta", meta::shape()),
            ])
            .one_of([having(["whitelist"]), having(["blacklist"])])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "referer-restriction"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            allow: options.whitelist,
            deny: options.blacklist,
            allow_missing: options.bypass_missing,
            message: Some(options.message),
            ..Config::default()
        })
    }
}
