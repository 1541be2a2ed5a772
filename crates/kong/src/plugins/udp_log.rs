//! `udp-log`: a log record of every call to a UDP server.

use super::logging::base;
use super::unserved::shared::{CUSTOM_FIELDS_BY_LUA, PORT};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{Target, UdpTarget};
use weir_plugins::logger::{Batch, Config};

/// The definition of `udp-log`.
pub const DEFINITION: Definition = Definition {
    name: "udp-log",
    priority: 8,
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
    CUSTOM_FIELDS_BY_LUA,
];

#[derive(Deserialize)]
struct UdpLog {
    host: String,
    port: u16,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: UdpLog = typed(config)?;
    Ok(untyped(Config {
        target: Target::Udp(UdpTarget {
            host: options.host,
            port: options.port,
            line_bytes: None,
        }),
        form: Form::Bare,
        batch: Batch::at_once(1),
        ..base(config)?
    }))
}
