//! `file-log`: a line of JSON for every call to a file.

use super::logging::base;
use super::unserved::shared::CUSTOM_FIELDS_BY_LUA;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::target::{FileTarget, Target};
use weir_plugins::logger::{Batch, Config, is_good_path};

/// The definition of `file-log`.
pub const DEFINITION: Definition = Definition {
    name: "file-log",
    priority: 9,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "logger",
    translate,
};

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("path", Kind::String)
        .required()
        .check(&[Check::Text(check_path)]),
    Field::new("reopen", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    CUSTOM_FIELDS_BY_LUA,
];

fn check_path(text: &str) -> Result<(), String> {
    // The original takes names that lead elsewhere, too.
    if text.contains(['*', '&', '%', '\\', '`']) || !is_good_path(text) {
        Err("not a valid filename".to_owned())
    } else {
        Ok(())
    }
}

#[derive(Deserialize)]
struct FileLog {
    path: String,
    reopen: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: FileLog = typed(config)?;
    Ok(untyped(Config {
        target: Target::File(FileTarget {
            path: options.path,
            reopen: options.reopen,
        }),
        batch: Batch::at_once(1_000),
        ..base(config)?
    }))
}
