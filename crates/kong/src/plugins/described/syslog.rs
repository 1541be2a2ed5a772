//! `syslog`: an account of every call to the system log.

use super::shared::CUSTOM_FIELDS_BY_LUA;
use super::{Definition, passing};
use crate::schema::{Check, Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("syslog", 4, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("log_level", Kind::String)
        .required()
        .or(Default::Text("info"))
        .check(&[Check::OneOf(&[
            "debug", "info", "notice", "warning", "err", "crit", "alert", "emerg",
        ])]),
    Field::new("successful_severity", Kind::String)
        .required()
        .or(Default::Text("info"))
        .check(&[Check::OneOf(&[
            "debug", "info", "notice", "warning", "err", "crit", "alert", "emerg",
        ])]),
    Field::new("client_errors_severity", Kind::String)
        .required()
        .or(Default::Text("info"))
        .check(&[Check::OneOf(&[
            "debug", "info", "notice", "warning", "err", "crit", "alert", "emerg",
        ])]),
    Field::new("server_errors_severity", Kind::String)
        .required()
        .or(Default::Text("info"))
        .check(&[Check::OneOf(&[
            "debug", "info", "notice", "warning", "err", "crit", "alert", "emerg",
        ])]),
    CUSTOM_FIELDS_BY_LUA,
    Field::new("facility", Kind::String)
        .required()
        .or(Default::Text("user"))
        .check(&[Check::OneOf(&[
            "auth", "authpriv", "cron", "daemon", "ftp", "kern", "lpr", "mail", "news", "syslog", "user",
            "uucp", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
        ])]),
];
