//! `loggly`: an account of every call to Loggly.

use super::shared::{CUSTOM_FIELDS_BY_LUA, PORT};
use super::{Definition, passing};
use crate::schema::{Check, Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("loggly", 6, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("host", Kind::String).or(Default::Text("logs-01.loggly.com")),
    Field::new("port", Kind::Integer)
        .or(Default::Integer(514))
        .check(PORT),
    Field::new("key", Kind::String).required(),
    Field::new("tags", Kind::Set(&Field::element(Kind::String))).or(Default::Texts(&["kong"])),
    Field::new("log_level", Kind::String)
        .or(Default::Text("info"))
        .check(&[Check::OneOf(&[
            "debug", "info", "notice", "warning", "err", "crit", "alert", "emerg",
        ])]),
    Field::new("successful_severity", Kind::String)
        .or(Default::Text("info"))
        .check(&[Check::OneOf(&[
            "debug", "info", "notice", "warning", "err", "crit", "alert", "emerg",
        ])]),
    Field::new("client_errors_severity", Kind::String)
        .or(Default::Text("info"))
        .check(&[Check::OneOf(&[
            "debug", "info", "notice", "warning", "err", "crit", "alert", "emerg",
        ])]),
    Field::new("server_errors_severity", Kind::String)
        .or(Default::Text("info"))
        .check(&[Check::OneOf(&[
            "debug", "info", "notice", "warning", "err", "crit", "alert", "emerg",
        ])]),
    Field::new("timeout", Kind::Number).or(Default::Integer(10_000)),
    CUSTOM_FIELDS_BY_LUA,
];
