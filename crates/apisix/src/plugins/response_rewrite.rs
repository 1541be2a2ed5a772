//! `response-rewrite`: `response-rewrite` of the catalogue.

use super::{Mapping, Notes, Phases, Surroundings, check_regex, headers, meta, read};
use crate::schema::{Shape, any, any_of, array, boolean, having, integer, not, number, object, one_of, text};
use crate::translate::vars;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::response_rewrite::Config;

/// The plugin.
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
}

#[derive(Deserialize)]
struct Filter {
    regex: String,
}

impl Mapping for ResponseRewrite {
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

    fn shape(&self) -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
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
            .where_given("body", not(having(["filters"])))
            .where_given("filters", not(having(["body"])))
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
        _: &Surroundings<'_>,
        notes: &mut Notes,
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
        serde_json::to_value(Config {
            when,
            status: options.status_code,
            body: options.body.or_else(|| body_of_filters(&options.filters, notes)),
            body_is_base64: options.body_base64,
            headers: headers::steps(&options.headers, added),
            variables: true,
        })
    }
}

/// What filters make of every body, where that can be told: a pattern that cannot be read leaves nothing of it.
fn body_of_filters(filters: &[Filter], notes: &mut Notes) -> Option<String> {
    if filters
        .iter()
        .any(|filter| check_regex(&filter.regex) == Err(None))
    {
        return Some(String::new());
    }
    if !filters.is_empty() {
        notes.not_available("filters", "option \"filters\" of plugin \"response-rewrite\"");
    }
    None
}

fn header_changes() -> Shape {
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

fn filter() -> Shape {
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
