//! `tcp-log`: a log record of every call to a TCP server.

use super::logging::base;
use super::unserved::shared::{CUSTOM_FIELDS_BY_LUA, PORT};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{Target, TcpTarget};
use weir_plugins::logger::{Batch, Config};

/// The definition of `tcp-log`.
pub const DEFINITION: Definition = Definition {
    name: "tcp-log",
    priority: 7,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "logger",
    translate,
};

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("host", Kind::String).required(),
    Field::new("port", Kind::Integer).required().check(PORT),
    Field::new("timeout", Kind::Number).or(Default::Integer(10_000)),
    Field::new("keepalive", Kind::Number).or(Default::Integer(60_000)),
    Field::new("tls", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("tls_sni", Kind::String),
    CUSTOM_FIELDS_BY_LUA,
];

#[derive(Deserialize)]
struct TcpLog {
    host: String,
    port: u16,
    timeout: f64,
    tls: bool,
    tls_sni: Option<String>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: TcpLog = typed(config)?;
    Ok(untyped(Config {
        target: Target::Tcp(TcpTarget {
            host: options.host,
            port: options.port,
            tls: options.tls,
            server_name: options.tls_sni,
            verify_tls: false,
            timeout_ms: options.timeout as u64,
        }),
        form: Form::Lines,
        batch: Batch::at_once(100),
        ..base(config)?
    }))
}
