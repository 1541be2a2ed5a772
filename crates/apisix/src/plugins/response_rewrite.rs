//! `response-rewrite`: `response-rewrite` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, check_regex, headers, meta, read};
use crate::schema::{
    Schema, any, any_of, array, boolean, having, integer, not, number, object, one_of, text,
};
use crate::translate::vars;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::response_rewrite::{Config, OversizePolicy, Replacement};

/// The plugin `response-rewrite`.
pub struct ResponseRewrite;

#[derive(Deserialize)]
struct Options {
    status_code: Option<u16>,
    body: Option<String>,
    body_base64: bool,
    #[serde(default)]
    headers: Map<String, Value>,
    vars: Option<Vec<Value>>,
    #[serde(default)]
    filters: Vec<Filter>,
    max_resp_body_size: u64,
}

#[derive(Deserialize)]
struct Filter {
    regex: String,
    scope: String,
    replace: String,
    options: String,
}

impl PluginAdapter for ResponseRewrite {
    fn name(&self) -> &'static str {
        "response-rewrite"
    }

    fn priority(&self) -> i64 {
        899
    }

    fn phases(&self) -> Phases {
        Phases {
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("headers", header_changes()),
                ("filters", array(filter()).min_items(1)),
                ("body", text()),
                ("body_base64", boolean().or(false)),
                ("status_code", integer().at_least(200).at_most(598)),
                ("vars", array(any())),
                ("max_resp_body_size", integer().at_least(1).or(64 << 20)),
                ("_meta", meta::shape()),
            ])
            .if_present("body", not(having(["filters"])))
            .if_present("filters", not(having(["body"])))
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        if config.get("body_base64") == Some(&Value::Bool(true)) {
            let body = config.get("body").and_then(Value::as_str).unwrap_or_default();
            if body.is_empty() || STANDARD.decode(body).is_err() {
                return Err("invalid base64 content".to_owned());
            }
        }
        if let Some(headers) = config.get("headers").and_then(Value::as_object)
            && !headers::is_by_operation(headers)
        {
            headers.iter().try_for_each(check_header)?;
        }
        let filters = config.get("filters").and_then(Value::as_array);
        filters.into_iter().flatten().try_for_each(check_options)?;
        match config
            .get("vars")
            .and_then(Value::as_array)
            .map(|conditions| vars::check(conditions))
        {
            Some(Err(error)) => Err(format!("failed to validate the 'vars' expression: {error}")),
            _ => Ok(()),
        }
    }

    fn plugin(&self) -> &'static str {
        "response-rewrite"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let when = match options.vars.as_deref().map(vars::compile) {
            Some(Ok(condition)) => condition,
            Some(Err(error)) => {
                notes.error("vars", error.to_string());
                None
            }
            None => None,
        };
        let filters = match options.body.is_some() {
            true => Vec::new(),
            false => replacements(&options.filters, notes),
        };
        serde_json::to_value(Config {
            when,
            status: options.status_code,
            body: options.body.or_else(|| body_of_filters(&options.filters)),
            body_is_base64: options.body_base64,
            headers: headers::steps(&options.headers, added),
            filters,
            max_body_bytes: options.max_resp_body_size.min(64 << 20) as usize,
            excess: OversizePolicy::Cut,
            ..Config::default()
        })
    }
}

fn check_header((name, value): (&String, &Value)) -> Result<(), String> {
    if !(value.is_string() || value.is_number()) {
        return Err("invalid type as header value".to_owned());
    }
    match name.is_empty() {
        true => Err("invalid field length in header".to_owned()),
        false => Ok(()),
    }
}

/// Options of a filter's expression are letters that the original's dialect knows.
fn check_options(filter: &Value) -> Result<(), String> {
    let text = |field: &str| filter.get(field).and_then(Value::as_str).unwrap_or_default();
    match text("options")
        .chars()
        .find(|flag| !"adDijJmosuUx".contains(*flag))
    {
        None => Ok(()),
        Some(flag) => Err(format!(
            "regex \"{}\" validation failed: unknown flag \"{flag}\" (flags \"{}\")",
            text("regex"),
            text("options")
        )),
    }
}

/// The body that filters make of every body if a pattern cannot be read: nothing is left of it.
fn body_of_filters(filters: &[Filter]) -> Option<String> {
    let is_unreadable = |filter: &Filter| check_regex(&filter.regex) == Err(None);
    filters.iter().any(is_unreadable).then(String::new)
}

fn replacements(filters: &[Filter], notes: &mut Warnings) -> Vec<Replacement> {
    let mut replacements = Vec::with_capacity(filters.len());
    for filter in filters {
        match check_regex(&filter.regex) {
            Ok(()) => replacements.push(Replacement {
                pattern: with_options(&filter.regex, &filter.options),
                replacement: filter.replace.clone(),
                all: filter.scope == "global",
            }),
            Err(Some(what)) => notes.not_available("filters", what),
            // Nothing is left of bodies then.
            Err(None) => return Vec::new(),
        }
    }
    replacements
}

/// The expression with the options that change what it finds.
fn with_options(regex: &str, options: &str) -> String {
    let flags: String = options.chars().filter(|flag| "imsx".contains(*flag)).collect();
    match flags.is_empty() {
        true => regex.to_owned(),
        false => format!("(?{flags}){regex}"),
    }
}

fn header_changes() -> Schema {
    let by_name = || {
        object([])
            .each_field("^[^:]+$", one_of([text(), number()]))
            .min_fields(1)
    };
    let operations = object([
        ("add", array(text().pattern("^[^:]+:[^:]*[^/]$")).min_items(1)),
        ("set", by_name()),
        ("remove", array(text().pattern("^[^:]+$")).min_items(1)),
    ]);
    any_of([by_name(), operations])
}

fn filter() -> Schema {
    object([
        ("regex", text().longer(1)),
        ("scope", text().options(["once", "global"]).or("once")),
        ("replace", text()),
        ("options", text().or("jo")),
    ])
    .required(["regex", "replace"])
}

fn added(value: &Value) -> Vec<(String, String)> {
    let lines = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    lines
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}
