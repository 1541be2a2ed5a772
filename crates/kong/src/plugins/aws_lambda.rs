//! `aws-lambda`: a function of AWS answers instead of an upstream.

use super::unserved::shared::{PORT, URL};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::errors::FUNCTION_VIA;
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record, text};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::remote_function::{
    AwsSignature, Config, FunctionAnswer, FunctionPayload, Payload, RequestForm,
};

/// The definition of `aws-lambda`.
pub const DEFINITION: Definition = Definition {
    name: "aws-lambda",
    priority: 750,
    config: CONFIG,
    checks: &[
        EntityCheck::MutuallyRequired(&["config.aws_key", "config.aws_secret"]),
        EntityCheck::Test(check_proxy),
    ],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "remote-function",
    translate,
};

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

#[derive(Deserialize)]
struct Options {
    timeout: f64,
    keepalive: f64,
    aws_key: Option<String>,
    aws_secret: Option<String>,
    aws_assume_role_arn: Option<String>,
    aws_region: Option<String>,
    function_name: Option<String>,
    qualifier: Option<String>,
    invocation_type: String,
    log_type: String,
    host: Option<String>,
    port: u16,
    disable_https: bool,
    unhandled_status: Option<u16>,
    forward_request_method: bool,
    forward_request_uri: bool,
    forward_request_headers: bool,
    forward_request_body: bool,
    is_proxy_integration: bool,
    awsgateway_compatible: bool,
    proxy_url: Option<String>,
    base64_encode_body: bool,
    empty_arrays_mode: String,
}

fn unfit(field: &'static str, what: &str) -> UnsupportedOption {
    UnsupportedOption {
        field,
        what: what.to_owned(),
    }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    if options.aws_assume_role_arn.is_some() {
        return Err(unfit("aws_assume_role_arn", "another role of AWS"));
    }
    let Some((access_key, secret_key)) = options.aws_key.zip(options.aws_secret) else {
        return Err(unfit("aws_key", "a key of AWS from the environment"));
    };
    let Some(region) = options.aws_region else {
        return Err(unfit("aws_region", "a region from the environment"));
    };
    let function = options.function_name.unwrap_or_default();
    let host = options
        .host
        .unwrap_or_else(|| format!("lambda.{region}.amazonaws.com"));
    let (scheme, standard) = match options.disable_https {
        true => ("http", 80),
        false => ("https", 443),
    };
    let port = match options.port == standard {
        true => String::new(),
        false => format!(":{}", options.port),
    };
    let qualifier = options
        .qualifier
        .map(|qualifier| format!("?Qualifier={}", escaped(&qualifier)));
    let url = format!(
        "{scheme}://{host}{port}/2015-03-31/functions/{}/invocations{}",
        escaped(&function),
        qualifier.unwrap_or_default()
    );
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Amz-Invocation-Type", options.invocation_type.as_str()),
        ("X-Amz-Log-Type", options.log_type.as_str()),
    ];
    let parts = [
        options.forward_request_method,
        options.forward_request_headers,
        options.forward_request_uri,
        options.forward_request_body,
    ];
    let form = match (options.awsgateway_compatible, parts) {
        (true, _) => FunctionPayload::ApiGateway,
        (false, [false, false, false, false]) => FunctionPayload::Arguments,
        (false, [method, headers, uri, body]) => FunctionPayload::Parts {
            method,
            headers,
            uri,
            body,
        },
    };
    Ok(untyped(Config {
        request: RequestForm::Invoke(Payload {
            form,
            base64_body: options.base64_encode_body,
        }),
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        sign: Some(AwsSignature {
            access_key,
            secret_key,
            session_token: None,
            region,
            service: "lambda".to_owned(),
        }),
        answer: FunctionAnswer::Lambda {
            proxy: options.is_proxy_integration,
            unhandled_status: options.unhandled_status,
            empty_lists_as_objects: options.empty_arrays_mode == "legacy",
        },
        proxy: options.proxy_url,
        // The original does not look at certificates.
        verify_tls: false,
        timeout_ms: options.timeout.max(1.0) as u64,
        pool_idle_timeout_ms: options.keepalive.max(0.0) as u64,
        max_body_bytes: 8 << 20,
        failure_status: 500,
        via: Some(FUNCTION_VIA.to_owned()),
        ..Config::new(url)
    }))
}

/// A part of a path or a query.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match is_plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
