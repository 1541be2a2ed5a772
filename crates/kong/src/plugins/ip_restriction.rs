//! `ip-restriction`: lets calls pass by the client's address.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use std::net::IpAddr;
use weir_plugins::ip_restriction::Config;

/// The definition of `ip-restriction`.
pub const DEFINITION: Definition = Definition {
    name: "ip-restriction",
    priority: 990,
    config: Record::of(&[
        Field::new("allow", NETWORKS),
        Field::new("deny", NETWORKS),
        Field::new("status", Kind::Number),
        Field::new("message", Kind::String),
    ]),
    checks: &[EntityCheck::AtLeastOneOf(&["config.allow", "config.deny"])],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "ip-restriction",
    translate,
};

const NETWORKS: Kind = Kind::Array(&Field::element(Kind::String).check(&[Check::Text(check_network)]));

fn check_network(text: &str) -> Result<(), String> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let fits = address.parse::<IpAddr>().is_ok_and(|address| {
        let most = if address.is_ipv4() { 32 } else { 128 };
        bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
    });
    match fits {
        true => Ok(()),
        false => Err(format!("invalid ip or cidr range: '{text}'")),
    }
}

#[derive(Deserialize)]
struct IpRestriction {
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    status: Option<f64>,
    message: Option<String>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: IpRestriction = typed(config)?;
    // The original takes any number, and fails when it is to answer with one that is no status.
    let status = match config.status.map(|status| status as u16) {
        None => 403,
        Some(status @ 200..=599) => status,
        Some(_) => 500,
    };
    Ok(untyped(Config {
        allow: config.allow.unwrap_or_default(),
        deny: config.deny.unwrap_or_default(),
        status,
        message: config.message,
    }))
}
