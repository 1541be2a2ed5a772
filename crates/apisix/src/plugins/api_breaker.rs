//! `api-breaker`: `circuit-breaker` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::errors::TEXT;
use crate::schema::{Schema, array, integer, object, text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;
use weir_plugins::circuit_breaker::{BreakerScope, Config};

/// The plugin `api-breaker`.
pub struct ApiBreaker;

#[derive(Deserialize)]
struct Options {
    break_response_code: u16,
    break_response_body: Option<String>,
    #[serde(default)]
    break_response_headers: Vec<HeaderLine>,
    max_breaker_sec: u64,
    unhealthy: Unhealthy,
    healthy: Healthy,
}

#[derive(Deserialize)]
struct HeaderLine {
    key: String,
    value: String,
}

#[derive(Deserialize)]
struct Unhealthy {
    http_statuses: Vec<u16>,
    failures: u32,
}

#[derive(Deserialize)]
struct Healthy {
    http_statuses: Vec<u16>,
    successes: u32,
}

impl PluginAdapter for ApiBreaker {
    fn name(&self) -> &'static str {
        "api-breaker"
    }

    fn priority(&self) -> i64 {
        1005
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let statuses = |least: u32, most: u32, default: i64| {
                let status = integer().at_least(least).at_most(most);
                array(status).min_items(1).unique().or(vec![default])
            };
            let header = object([("key", text().longer(1)), ("value", text().longer(1))]);
            object([
                ("break_response_code", integer().at_least(200).at_most(599)),
                ("break_response_body", text()),
                ("break_response_headers", array(header.required(["key", "value"]))),
                ("max_breaker_sec", integer().at_least(3).or(300)),
                (
                    "unhealthy",
                    object([
                        ("http_statuses", statuses(500, 599, 500)),
                        ("failures", integer().at_least(1).or(3)),
                    ])
                    .or(json!({"http_statuses": [500], "failures": 3})),
                ),
                (
                    "healthy",
                    object([
                        ("http_statuses", statuses(200, 499, 200)),
                        ("successes", integer().at_least(1).or(3)),
                    ])
                    .or(json!({"http_statuses": [200], "successes": 3})),
                ),
                ("_meta", meta::shape()),
            ])
            .required(["break_response_code"])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "circuit-breaker"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        // Without a body the original leaves the headers out as well.
        let has_body = options.break_response_body.is_some();
        let (types, headers): (Vec<_>, Vec<_>) = options
            .break_response_headers
            .into_iter()
            .filter(|_| has_body)
            .partition(|line| line.key.eq_ignore_ascii_case("content-type"));
        serde_json::to_value(Config {
            failures: options.unhealthy.failures,
            failure_statuses: options.unhealthy.http_statuses,
            successes: options.healthy.successes,
            success_statuses: options.healthy.http_statuses,
            max_open_seconds: options.max_breaker_sec,
            by: BreakerScope::Path,
            status: options.break_response_code,
            body: options.break_response_body,
            content_type: types
                .into_iter()
                .next_back()
                .map_or_else(|| TEXT.to_owned(), |line| line.value),
            headers: headers.into_iter().map(|line| (line.key, line.value)).collect(),
        })
    }
}
