//! `ip-restriction`: `ip-restriction` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, address, array, having, integer, object, text};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;
use weir_plugins::ip_restriction::Config;

/// The plugin `ip-restriction`.
pub struct IpRestriction;

#[derive(Deserialize)]
struct Options {
    #[serde(default)]
    whitelist: Vec<String>,
    #[serde(default)]
    blacklist: Vec<String>,
    message: String,
    response_code: u16,
}

impl PluginAdapter for IpRestriction {
    fn name(&self) -> &'static str {
        "ip-restriction"
    }

    fn priority(&self) -> i64 {
        3000
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                (
                    "message",
                    text().length(1, 1024).or("Your IP address is not allowed"),
                ),
                ("response_code", integer().at_least(403).at_most(404).or(403)),
                ("whitelist", array(address()).min_items(1)),
                ("blacklist", array(address()).min_items(1)),
                ("_meta", meta::shape()),
            ])
            .one_of([having(["whitelist"]), having(["blacklist"])])
        });
        &SHAPE
    }

    fn explain(&self, config: &Value, error: String) -> String {
        explain_addresses(config, &["whitelist", "blacklist"], error)
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        check_addresses(config, &["whitelist", "blacklist"])
    }

    fn plugin(&self) -> &'static str {
        "ip-restriction"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            allow: options.whitelist,
            deny: options.blacklist,
            status: options.response_code,
            message: Some(options.message),
        })
    }
}

/// The message about networks of IPv6 that are wider than an address: their shape is right to the original.
pub fn explain_addresses(config: &Value, fields: &[&str], error: String) -> String {
    let lists = fields.iter().filter_map(|field| config.get(*field)?.as_array());
    let is_wide = |text: &&str| {
        let (address, bits) = text.split_once('/')?;
        let is_number = (1..=3).contains(&bits.len()) && bits.bytes().all(|byte| byte.is_ascii_digit());
        (address.parse::<Ipv6Addr>().is_ok() && is_number).then(|| bits.parse::<u16>().ok())?
    };
    let first = lists
        .flatten()
        .filter_map(Value::as_str)
        .find(|text| text.parse::<IpAddr>().is_err() && text.parse::<IpNet>().is_err());
    match first.filter(|text| is_wide(text).is_some()) {
        Some(text) if error.contains("matches none of the required") => format!("invalid ip address: {text}"),
        _ => error,
    }
}

/// Checks that lists hold addresses and networks; their shape takes some that are none.
pub fn check_addresses(config: &Map<String, Value>, fields: &[&str]) -> Result<(), String> {
    let lists = fields.iter().filter_map(|field| config.get(*field)?.as_array());
    for text in lists.flatten().filter_map(Value::as_str) {
        let is_network = |text: &str| {
            let (address, bits) = text.split_once('/')?;
            let most = if address.parse::<IpAddr>().ok()?.is_ipv4() {
                32
            } else {
                128
            };
            (bits.parse::<u8>().ok()? <= most).then_some(())
        };
        if text.parse::<IpAddr>().is_err() && is_network(text).is_none() {
            return Err(format!("invalid ip address: {text}"));
        }
    }
    Ok(())
}
