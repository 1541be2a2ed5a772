//! `syslog`: a log record of every call to the system log.

use super::logging::{base, severity};
use super::unserved::shared::CUSTOM_FIELDS_BY_LUA;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::form::{Form, LocalSyslog};
use weir_plugins::logger::target::{LocalTarget, Target};
use weir_plugins::logger::{Batch, Config};

/// The definition of `syslog`.
pub const DEFINITION: Definition = Definition {
    name: "syslog",
    priority: 4,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "logger",
    translate,
};

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

#[derive(Deserialize)]
struct Syslog {
    log_level: String,
    successful_severity: String,
    client_errors_severity: String,
    server_errors_severity: String,
    facility: String,
}

/// The numbers of RFC 5424.
fn facility(name: &str) -> u8 {
    let names = [
        "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    ];
    match name
        .strip_prefix("local")
        .and_then(|number| number.parse::<u8>().ok())
    {
        Some(number) => 16 + number.min(7),
        None => names
            .iter()
            .position(|it| *it == name)
            .map_or(1, |place| place as u8),
    }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Syslog = typed(config)?;
    Ok(untyped(Config {
        target: Target::Local(LocalTarget::default()),
        form: Form::LocalSyslog(LocalSyslog {
            name: "kong".to_owned(),
            facility: facility(&options.facility),
            success: severity(&options.successful_severity),
            client_error: severity(&options.client_errors_severity),
            server_error: severity(&options.server_errors_severity),
            least: severity(&options.log_level),
        }),
        batch: Batch::at_once(100),
        ..base(config)?
    }))
}
