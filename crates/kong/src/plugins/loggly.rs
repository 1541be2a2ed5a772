//! `loggly`: a log record of every call to Loggly.

use super::logging::{base, severity};
use super::unserved::shared::{CUSTOM_FIELDS_BY_LUA, PORT};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::form::{Form, StructuredSyslog};
use weir_plugins::logger::target::{Target, UdpTarget};
use weir_plugins::logger::{Batch, Config};

/// The definition of `loggly`.
pub const DEFINITION: Definition = Definition {
    name: "loggly",
    priority: 6,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "logger",
    translate,
};

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

#[derive(Deserialize)]
struct Loggly {
    host: String,
    port: u16,
    key: String,
    tags: Vec<String>,
    log_level: String,
    successful_severity: String,
    client_errors_severity: String,
    server_errors_severity: String,
}

/// Loggly's number among those that have structured data of their own (RFC 5424, 7.2.2).
const ENTERPRISE: u32 = 41_058;

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Loggly = typed(config)?;
    let tags = options.tags.iter().map(|tag| ("tag".to_owned(), tag.clone()));
    Ok(untyped(Config {
        target: Target::Udp(UdpTarget {
            host: options.host,
            port: options.port,
            line_bytes: None,
        }),
        form: Form::StructuredSyslog(StructuredSyslog {
            name: "kong".to_owned(),
            success: severity(&options.successful_severity),
            client_error: severity(&options.client_errors_severity),
            server_error: severity(&options.server_errors_severity),
            least: severity(&options.log_level),
            data_id: format!("{}@{ENTERPRISE}", options.key),
            data: tags.collect(),
            ..StructuredSyslog::default()
        }),
        batch: Batch::at_once(1),
        ..base(config)?
    }))
}
