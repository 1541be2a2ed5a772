//! `aws-lambda`: calls a function of AWS instead of an upstream.

use super::shared::{PORT, URL};
use super::{Definition, refusing};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record, text};

/// The plugin.
pub const DEFINITION: Definition = refusing("aws-lambda", 750, CONFIG).with_checks(&[
    EntityCheck::MutuallyRequired(&["config.aws_key", "config.aws_secret"]),
    EntityCheck::Test(check_proxy),
]);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    milliseconds("timeout"),
    milliseconds("keepalive"),
    Field::new("aws_key", Kind::String),
    Field::new("aws_secret", Kind::String),
    Field::new("aws_assume_role_arn", Kind::String),
    Field::new("aws_role_session_name", Kind::String).or(Default::Text("kong")),
    Field::new("aws_sts_endpoint_url", Kind::String).check(URL),
    Field::new("aws_region", Kind::String).check(&[Check::Text(text::host)]),
    Field::new("function_name", Kind::String),
    Field::new("qualifier", Kind::String),
    word("invocation_type", "RequestResponse", INVOCATIONS),
    word("log_type", "Tail", LOGS),
    Field::new("host", Kind::String).check(&[Check::Text(text::host)]),
    Field::new("port", Kind::Integer)
        .or(Default::Integer(443))
        .check(PORT),
    flag("disable_https", false),
    Field::new("unhandled_status", Kind::Integer).check(&[Check::Between(100, 999)]),
    flag("forward_request_method", false),
    flag("forward_request_uri", false),
    flag("forward_request_headers", false),
    flag("forward_request_body", false),
    flag("is_proxy_integration", false),
    flag("awsgateway_compatible", false),
    Field::new("proxy_url", Kind::String).check(URL),
    flag("skip_large_bodies", true),
    flag("base64_encode_body", true),
    word("aws_imds_protocol_version", "v1", VERSIONS),
    word("empty_arrays_mode", "legacy", ARRAYS),
];

const fn milliseconds(name: &'static str) -> Field {
    Field::new(name, Kind::Number)
        .required()
        .or(Default::Integer(60_000))
}

const fn flag(name: &'static str, default: bool) -> Field {
    Field::new(name, Kind::Boolean).or(Default::Boolean(default))
}

const INVOCATIONS: &[Check] = &[Check::OneOf(&["RequestResponse", "Event", "DryRun"])];
const LOGS: &[Check] = &[Check::OneOf(&["Tail", "None"])];
const VERSIONS: &[Check] = &[Check::OneOf(&["v1", "v2"])];
const ARRAYS: &[Check] = &[Check::OneOf(&["legacy", "correct"])];

const fn word(name: &'static str, default: &'static str, words: &'static [Check]) -> Field {
    Field::new(name, Kind::String)
        .required()
        .or(Default::Text(default))
        .check(words)
}

fn check_proxy(instance: &Fields) -> Result<(), String> {
    let proxy = instance
        .get("config")
        .and_then(|config| config["proxy_url"].as_str());
    match proxy.and_then(|proxy| proxy.split_once("://")) {
        Some((scheme, _)) if scheme != "http" => Err("proxy_url scheme must be http".to_owned()),
        _ => Ok(()),
    }
}
