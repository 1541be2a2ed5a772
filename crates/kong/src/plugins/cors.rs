//! `cors`: announces to browsers which pages of other origins may call.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::cors::{Config, DisallowedOrigin, HeadersOn, Preflight};

const METHODS: &[&str] = &[
    "GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS", "TRACE", "CONNECT",
];

/// The definition of `cors`.
pub const DEFINITION: Definition = Definition {
    name: "cors",
    priority: 2000,
    config: Record::of(&[
        Field::new(
            "origins",
            Kind::Array(&Field::element(Kind::String).check(&[Check::Text(check_origin)])),
        ),
        Field::new("headers", TEXTS),
        Field::new("exposed_headers", TEXTS),
        Field::new(
            "methods",
            Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(METHODS)])),
        )
        .or(Default::Texts(METHODS)),
        Field::new("max_age", Kind::Number),
        Field::new("credentials", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("private_network", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("preflight_continue", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "cors",
    translate,
};

const TEXTS: Kind = Kind::Array(&Field::element(Kind::String));

fn check_origin(text: &str) -> Result<(), String> {
    if text == "*" || Regex::new(text).is_ok() {
        Ok(())
    } else {
        Err(format!("'{text}' is not a valid regex"))
    }
}

#[derive(Deserialize)]
struct Cors {
    origins: Option<Vec<String>>,
    headers: Option<Vec<String>>,
    exposed_headers: Option<Vec<String>>,
    methods: Vec<String>,
    max_age: Option<f64>,
    credentials: bool,
    private_network: bool,
    preflight_continue: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Cors = typed(config)?;
    let mut made = Config {
        normalize_origin: true,
        methods: config.methods,
        headers: config.headers.unwrap_or_default(),
        exposed_headers: config.exposed_headers.unwrap_or_default(),
        credentials: config.credentials,
        credentials_for_any_origin: config.credentials,
        max_age_seconds: config.max_age.map(|seconds| seconds as i64),
        private_network: config.private_network,
        preflight: if config.preflight_continue {
            Preflight::Forward
        } else {
            Preflight::Answer
        },
        preflight_status: 200,
        headers_on: HeadersOn::Split,
        refused: DisallowedOrigin::WithoutOrigin,
        vary: true,
        ..Config::default()
    };
    let origins = config.origins.unwrap_or_default();
    match origins.as_slice() {
        [] => made.origins = vec!["*".to_owned()],
        [only] if only != "*" && is_plain(only) => made.fixed_origin = Some(only.clone()),
        origins => origins.iter().for_each(|origin| allow(&mut made, origin)),
    }
    Ok(untyped(made))
}

/// An origin with any other character in it is a regular expression.
fn is_plain(origin: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'/' | b'-');
    origin.bytes().all(is_fine)
}

fn allow(config: &mut Config, origin: &str) {
    if origin == "*" {
        config.origins.push(origin.to_owned());
    } else if !is_plain(origin) {
        // One without a colon is about hosts.
        let patterns = match origin.contains(':') {
            true => &mut config.origin_patterns,
            false => &mut config.host_patterns,
        };
        patterns.push(format!("^(?:{origin})$"));
    } else if origin.contains("://") {
        config.origins.push(without_standard_port(origin).to_owned());
    } else {
        config.hosts.push(origin.to_owned());
    }
}

fn without_standard_port(origin: &str) -> &str {
    let port = if origin.starts_with("https://") {
        ":443"
    } else {
        ":80"
    };
    origin.strip_suffix(port).unwrap_or(origin)
}
