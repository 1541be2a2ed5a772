//! `request-termination`: answers calls itself.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record, text};
use serde::Deserialize;
use serde_json::{Value, json};
use weir_plugins::request_termination::Config;

/// The definition of `request-termination`.
pub const DEFINITION: Definition = Definition {
    name: "request-termination",
    priority: 2,
    config: Record {
        fields: FIELDS,
        checks: &[EntityCheck::Test(check)],
    },
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "request-termination",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("status_code", Kind::Integer)
        .required()
        .or(Default::Integer(503))
        .check(&[Check::Between(100, 599)]),
    Field::new("message", Kind::String),
    Field::new("content_type", Kind::String),
    Field::new("body", Kind::String),
    Field::new("echo", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("trigger", Kind::String).check(&[Check::Text(text::header_name)]),
];

fn check(config: &Fields) -> Result<(), String> {
    let has = |field: &str| config.get(field).is_some_and(|value| !value.is_null());
    if has("message") && (has("content_type") || has("body")) {
        return Err("message cannot be used with content_type or body".to_owned());
    }
    if has("content_type") && !has("body") {
        return Err("content_type requires a body".to_owned());
    }
    if config.get("echo") == Some(&Value::Bool(true)) && (has("content_type") || has("body")) {
        return Err("echo cannot be used with content_type and body".to_owned());
    }
    Ok(())
}

#[derive(Deserialize)]
struct RequestTermination {
    status_code: u16,
    message: Option<String>,
    content_type: Option<String>,
    body: Option<String>,
    echo: bool,
    trigger: Option<String>,
}

const JSON: &str = "application/json; charset=utf-8";

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: RequestTermination = typed(config)?;
    let mut made = Config {
        status: config.status_code,
        trigger: config.trigger,
        echo: config.echo,
        ..Config::default()
    };
    if config.echo {
        made.message = config.message;
    } else if let Some(body) = config.body {
        made.body = Some(body);
        made.content_type = Some(config.content_type.unwrap_or_else(|| JSON.to_owned()));
    } else {
        let message = config
            .message
            .or_else(|| standard_message(config.status_code).map(str::to_owned));
        if let Some(message) = message {
            made.body = Some(json!({ "message": message }).to_string());
            made.content_type = Some(JSON.to_owned());
        }
    }
    Ok(untyped(made))
}

/// The original's message if none is configured.
fn standard_message(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("Unauthorized"),
        404 => Some("Not found"),
        405 => Some("Method not allowed"),
        500 => Some("An unexpected error occurred"),
        502 => Some("Bad Gateway"),
        503 => Some("Service unavailable"),
        _ => None,
    }
}
