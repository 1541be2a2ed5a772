//! `file-log`: a line of JSON for every call to a file.

use super::shared::CUSTOM_FIELDS_BY_LUA;
use super::{Definition, passing};
use crate::schema::{Check, Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("file-log", 9, CONFIG);

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
    if text.contains(['*', '&', '%', '\\', '`']) {
        Err("not a valid filename".to_owned())
    } else {
        Ok(())
    }
}
