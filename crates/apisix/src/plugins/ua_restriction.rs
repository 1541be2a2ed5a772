//! `ua-restriction`: `user-agent-restriction` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read, regexes};
use crate::schema::{Schema, array, boolean, having, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::user_agent_restriction::Config;

/// The plugin `ua-restriction`.
pub struct UaRestriction;

#[derive(Deserialize)]
struct Options {
    bypass_missing: bool,
    #[serde(default)]
    allowlist: Vec<String>,
    #[serde(default)]
    denylist: Vec<String>,
    message: String,
}

impl PluginAdapter for UaRestriction {
    fn name(&self) -> &'static str {
        "ua-restriction"
    }

    fn priority(&self) -> i64 {
        2999
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let list = || array(text().longer(1)).min_items(1);
            object([
                ("bypass_missing", boolean().or(false)),
                ("allowlist", list()),
                ("denylist", list()),
                ("message", text().length(1, 1024).or("Not allowed")),
                ("_meta", meta::shape()),
            ])
            .one_of([having(["allowlist"]), having(["denylist"])])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let lists = ["allowlist", "denylist"];
        let lists = lists
            .into_iter()
            .filter_map(|field| config.get(field)?.as_array());
        regexes::check_all(lists.flatten().filter_map(Value::as_str))
    }

    fn plugin(&self) -> &'static str {
        "user-agent-restriction"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        for (field, list) in [("allowlist", &options.allowlist), ("denylist", &options.denylist)] {
            if let Some(what) = regexes::unserved(list.iter().map(String::as_str)) {
                notes.not_available(field, what);
            }
        }
        serde_json::to_value(Config {
            allow: options.allowlist,
            deny: options.denylist,
            allow_missing: options.bypass_missing,
            allow_multiple: true,
            message: Some(options.message),
            ..Config::default()
        })
    }
}
