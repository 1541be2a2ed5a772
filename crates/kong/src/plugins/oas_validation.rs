//! `oas-validation`: checks calls and responses against an OpenAPI document.

use super::enterprise_fields::{base_path, flag};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, EntityCheck, Field, Fields, Kind, Record};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::openapi_validation::{Action, Config, Unknown, check_spec};

/// The definition of `oas-validation`.
pub const DEFINITION: Definition = Definition {
    name: "oas-validation",
    priority: 850,
    config: Record::of(&[
        Field::new("api_spec", Kind::String).required(),
        flag("api_spec_encoded", true),
        flag("verbose_response", false),
        flag("validate_request_body", true),
        flag("notify_only_request_validation_failure", false),
        flag("validate_request_header_params", true),
        flag("validate_request_query_params", true),
        flag("validate_request_uri_params", true),
        flag("validate_response_body", false),
        flag("notify_only_response_body_validation_failure", false),
        flag("query_parameter_check", false),
        flag("header_parameter_check", false),
        Field::new("allowed_header_parameters", Kind::String).or(Default::Text(
            "Host,Content-Type,User-Agent,Accept,Content-Length",
        )),
        flag("include_base_path", false),
        Field::new("custom_base_path", Kind::String),
    ]),
    checks: &[EntityCheck::Fields(check)],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "openapi-validation",
    translate,
};

#[derive(Deserialize)]
struct Options {
    api_spec: String,
    api_spec_encoded: bool,
    verbose_response: bool,
    validate_request_body: bool,
    notify_only_request_validation_failure: bool,
    validate_request_header_params: bool,
    validate_request_query_params: bool,
    validate_request_uri_params: bool,
    validate_response_body: bool,
    notify_only_response_body_validation_failure: bool,
    query_parameter_check: bool,
    header_parameter_check: bool,
    allowed_header_parameters: Option<String>,
}

/// The document's text. It may be percent-encoded, as forms of clients send it.
pub(super) fn spec(text: &str, is_encoded: bool) -> String {
    let looks_encoded = !text.trim_start().starts_with(['{', '[']) && !text.contains('\n');
    match is_encoded && looks_encoded {
        true => percent_decode_str(text).decode_utf8_lossy().into_owned(),
        false => text.to_owned(),
    }
}

fn check(instance: &Fields) -> Vec<(&'static str, String)> {
    let Some(config) = instance.get("config") else {
        return Vec::new();
    };
    let Some(text) = config["api_spec"].as_str() else {
        return Vec::new();
    };
    let is_encoded = config["api_spec_encoded"] != Value::Bool(false);
    match check_spec(&spec(text, is_encoded)) {
        Ok(()) => Vec::new(),
        Err(message) => vec![(
            "config.api_spec",
            format!("api specification is neither valid json nor valid yaml, or cannot be used: {message}"),
        )],
    }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let action = |only_tells: bool| match only_tells {
        true => Action::Log,
        false => Action::Refuse,
    };
    let unknown = |is_checked: bool| match is_checked {
        true => Unknown::Refuse,
        false => Unknown::Allow,
    };
    let allowed = options.allowed_header_parameters.unwrap_or_default();
    let allowed = allowed.split(',').map(str::trim).filter(|name| !name.is_empty());
    Ok(untyped(Config {
        spec: Some(spec(&options.api_spec, options.api_spec_encoded)),
        base_path: base_path(config),
        check_path: options.validate_request_uri_params,
        check_query: options.validate_request_query_params,
        check_headers: options.validate_request_header_params,
        check_body: options.validate_request_body,
        check_response: options.validate_response_body,
        unknown_headers: unknown(options.header_parameter_check),
        allowed_headers: allowed.map(str::to_owned).collect(),
        unknown_query: unknown(options.query_parameter_check),
        max_body_bytes: 8 << 20,
        action: action(options.notify_only_request_validation_failure),
        response_action: action(options.notify_only_response_body_validation_failure),
        status: 400,
        response_status: 406,
        verbose: options.verbose_response,
        verbose_replaces: true,
        message: "request doesn't conform to schema".to_owned(),
        response_message: "response doesn't conform to schema".to_owned(),
        ..Config::default()
    }))
}
