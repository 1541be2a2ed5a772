//! `upstream-timeout` of the paid edition: Kong's fields for `upstream-timeout` of the catalogue.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::upstream_timeout::Config;

/// The definition of `upstream-timeout`.
pub const DEFINITION: Definition = Definition {
    name: "upstream-timeout",
    priority: 400,
    config: Record::of(&[
        time("read_timeout"),
        time("send_timeout"),
        time("connect_timeout"),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "upstream-timeout",
    translate,
};

const fn time(name: &'static str) -> Field {
    Field::new(name, Kind::Integer).check(&[Check::Between(1, 2_147_483_646)])
}

#[derive(Deserialize)]
struct UpstreamTimeout {
    read_timeout: Option<u64>,
    send_timeout: Option<u64>,
    connect_timeout: Option<u64>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: UpstreamTimeout = typed(config)?;
    Ok(untyped(Config {
        connect_ms: config.connect_timeout,
        write_ms: config.send_timeout,
        read_ms: config.read_timeout,
        total_ms: None,
    }))
}
