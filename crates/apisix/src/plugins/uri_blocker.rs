//! `uri-blocker`: `uri-restriction` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read, regexes};
use crate::schema::{Schema, array, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::uri_restriction::Config;

/// The plugin `uri-blocker`.
pub struct UriBlocker;

#[derive(Deserialize)]
struct Options {
    block_rules: Vec<String>,
    rejected_code: u64,
    rejected_msg: Option<String>,
    case_insensitive: bool,
}

impl PluginAdapter for UriBlocker {
    fn name(&self) -> &'static str {
        "uri-blocker"
    }

    fn priority(&self) -> i64 {
        2900
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
                ("block_rules", array(text().length(1, 4096)).unique()),
                ("rejected_code", integer().at_least(200).or(403)),
                ("rejected_msg", text().longer(1)),
                ("case_insensitive", boolean().or(false)),
                ("_meta", meta::shape()),
            ])
            .required(["block_rules"])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let rules = config.get("block_rules").and_then(Value::as_array);
        regexes::check_all(rules.into_iter().flatten().filter_map(Value::as_str))
    }

    fn plugin(&self) -> &'static str {
        "uri-restriction"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        if let Some(what) = regexes::unserved(options.block_rules.iter().map(String::as_str)) {
            notes.not_available("block_rules", what);
        }
        serde_json::to_value(Config {
            deny: options.block_rules,
            ignore_case: options.case_insensitive,
            status: answerable(options.rejected_code),
            message: options.rejected_msg,
            ..Config::default()
        })
    }
}

/// The status itself if it is valid; the original takes any number and fails with others.
pub fn answerable(status: u64) -> u16 {
    let status = u16::try_from(status).ok();
    status
        .filter(|status| (200..=599).contains(status))
        .unwrap_or(500)
}
