//! `file-logger`: appends entries to a file.

use super::{base, common, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, any, array, object, text};
use crate::settings::Settings;
use crate::translate::vars;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_model::Predicate;
use weir_plugins::logger::target::{FileTarget, Target};
use weir_plugins::logger::{Batch, Config, is_good_path};

/// APISIX's message if neither a configuration nor the plugin's metadata names a file.
pub const NO_PATH: &str = "property \"path\" is not set in either the plugin conf or the metadata";

/// The plugin `file-logger`.
pub struct FileLogger;

#[derive(Deserialize)]
struct Options {
    path: Option<String>,
    r#match: Option<Vec<Vec<Value>>>,
}

impl PluginAdapter for FileLogger {
    common!("file-logger", 399);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let rules = array(array(any())).max_items(20);
            with_entry(object([("path", text()), ("match", rules)]))
        });
        &SHAPE
    }

    fn check_by(&self, config: &Map<String, Value>, _: &Settings) -> Result<(), String> {
        // APISIX takes names that lead elsewhere, too.
        match config.get("path").and_then(Value::as_str) {
            Some(path) if !is_good_path(path) => Err(
                "property \"path\" validation failed: no \"..\", control characters or hidden names"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let of_all = context.metadata.get(self.name());
        let of_all = of_all.and_then(|metadata| metadata["path"].as_str());
        let Some(path) = options.path.or_else(|| of_all.map(str::to_owned)) else {
            notes.error("path", NO_PATH);
            return Ok(Value::Null);
        };
        let rules = options.r#match.filter(|rules| !rules.is_empty());
        let when = rules.map(|rules| any_of(&rules, notes));
        serde_json::to_value(Config {
            when,
            target: Target::File(FileTarget { path, reopen: true }),
            // The original writes each entry at once.
            batch: Batch {
                delay_ms: 0,
                ..Batch::default()
            },
            ..base(self.name(), config, context, notes)?
        })
    }
}

/// That one of several lists of rules holds.
fn any_of(lists: &[Vec<Value>], notes: &mut Warnings) -> Predicate {
    let mut any = Vec::with_capacity(lists.len());
    for rules in lists {
        match vars::compile(rules) {
            Ok(condition) => any.push(condition.unwrap_or(Predicate::All(Vec::new()))),
            Err(fault) => notes.error("match", fault.to_string()),
        }
    }
    Predicate::Any(any)
}
