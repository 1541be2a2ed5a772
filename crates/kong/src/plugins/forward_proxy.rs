//! `forward-proxy` of the paid edition: Kong's fields for `forward-proxy` of the catalogue.

use super::enterprise_fields::flag;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record, text};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::forward_proxy::{Config, ProxyServer, XHeaders};

/// The definition of `forward-proxy`.
pub const DEFINITION: Definition = Definition {
    name: "forward-proxy",
    priority: 50,
    config: Record::of(&[
        Field::new("x_headers", Kind::String)
            .required()
            .or(Default::Text("append"))
            .check(&[Check::OneOf(&["append", "delete", "transparent"])]),
        host("http_proxy_host"),
        port("http_proxy_port"),
        host("https_proxy_host"),
        port("https_proxy_port"),
        Field::new("proxy_scheme", Kind::String)
            .required()
            .or(Default::Text("http"))
            .check(&[Check::OneOf(&["http"])]),
        Field::new("auth_username", Kind::String),
        Field::new("auth_password", Kind::String),
        flag("https_verify", false).required(),
    ]),
    checks: &[
        EntityCheck::AtLeastOneOf(&["config.http_proxy_host", "config.https_proxy_host"]),
        EntityCheck::MutuallyRequired(&["config.http_proxy_host", "config.http_proxy_port"]),
        EntityCheck::MutuallyRequired(&["config.https_proxy_host", "config.https_proxy_port"]),
    ],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "forward-proxy",
    translate,
};

const fn host(name: &'static str) -> Field {
    Field::new(name, Kind::String).check(&[Check::Text(text::host)])
}

const fn port(name: &'static str) -> Field {
    Field::new(name, Kind::Integer).check(&[Check::Between(0, 65_535)])
}

#[derive(Deserialize)]
struct Options {
    x_headers: XHeaders,
    http_proxy_host: Option<String>,
    http_proxy_port: Option<u16>,
    https_proxy_host: Option<String>,
    https_proxy_port: Option<u16>,
    auth_username: Option<String>,
    auth_password: Option<String>,
    https_verify: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let server = |host: Option<String>, port: Option<u16>| {
        let (host, port) = host.zip(port)?;
        Some(ProxyServer { host, port })
    };
    Ok(untyped(Config {
        http: server(options.http_proxy_host, options.http_proxy_port),
        https: server(options.https_proxy_host, options.https_proxy_port),
        username: options.auth_username,
        password: options.auth_password,
        verify_tls: Some(options.https_verify),
        x_headers: options.x_headers,
    }))
}
