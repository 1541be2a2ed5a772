//! `azure-functions`: a function of Azure answers instead of an upstream.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::errors::FUNCTION_VIA;
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::remote_function::Config;

/// The definition of `azure-functions`.
pub const DEFINITION: Definition = Definition {
    name: "azure-functions",
    priority: 749,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "remote-function",
    translate,
};

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("timeout", Kind::Number).or(Default::Integer(600_000)),
    Field::new("keepalive", Kind::Number).or(Default::Integer(60_000)),
    Field::new("https", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("https_verify", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("apikey", Kind::String),
    Field::new("clientid", Kind::String),
    Field::new("appname", Kind::String).required(),
    Field::new("hostdomain", Kind::String)
        .required()
        .or(Default::Text("azurewebsites.net")),
    Field::new("routeprefix", Kind::String).or(Default::Text("api")),
    Field::new("functionname", Kind::String).required(),
];

#[derive(Deserialize)]
struct Options {
    timeout: f64,
    keepalive: f64,
    https: bool,
    https_verify: bool,
    apikey: Option<String>,
    clientid: Option<String>,
    appname: String,
    hostdomain: String,
    routeprefix: Option<String>,
    functionname: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let prefix = options.routeprefix.unwrap_or_default();
    let parts = [prefix.trim_matches('/'), options.functionname.trim_matches('/')];
    let path: String = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| format!("/{part}"))
        .collect();
    let scheme = if options.https { "https" } else { "http" };
    let url = format!("{scheme}://{}.{}{path}", options.appname, options.hostdomain);
    let keys = [
        ("x-functions-key", options.apikey),
        ("x-functions-clientid", options.clientid),
    ];
    Ok(untyped(Config {
        headers: keys
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect(),
        verify_tls: options.https_verify,
        timeout_ms: options.timeout.max(1.0) as u64,
        pool_idle_timeout_ms: options.keepalive.max(0.0) as u64,
        max_body_bytes: 8 << 20,
        failure_status: 500,
        via: Some(FUNCTION_VIA.to_owned()),
        ..Config::new(url)
    }))
}
