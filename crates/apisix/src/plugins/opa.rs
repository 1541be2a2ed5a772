//! `opa`: APISIX's fields and defaults for `opa` of the catalogue.

use super::printed_schemas::PrintedSchemas;
use super::{AgentDocuments, Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::opa::Config;

/// The plugin `opa`.
pub struct Opa;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/opa.json"));

#[derive(Deserialize)]
struct Options {
    host: String,
    policy: String,
    ssl_verify: bool,
    timeout: u64,
    keepalive: bool,
    keepalive_timeout: u64,
    keepalive_pool: u32,
    #[serde(default)]
    send_headers_upstream: Vec<String>,
    with_route: bool,
    with_service: bool,
    with_consumer: bool,
    /// The data about the route and its service; no document has these.
    #[serde(default, rename = "$route")]
    route: Option<Value>,
    #[serde(default, rename = "$service")]
    service: Option<Value>,
}

impl PluginAdapter for Opa {
    fn name(&self) -> &'static str {
        "opa"
    }

    fn priority(&self) -> i64 {
        2001
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        SCHEMAS.request()
    }

    fn plugin(&self) -> &'static str {
        "opa"
    }

    fn of_route(&self, config: &Value, documents: &dyn Fn() -> AgentDocuments) -> Option<Value> {
        let asks = |field: &str| config.get(field) == Some(&Value::Bool(true));
        let (with_route, with_service) = (asks("with_route"), asks("with_service"));
        if !with_route && !with_service {
            return None;
        }
        let documents = documents();
        let mut config = config.clone();
        if with_route {
            config["$route"] = documents.route;
        }
        if with_service {
            config["with_service"] = documents.service.is_some().into();
            config["$service"] = documents.service.unwrap_or_default();
        }
        Some(config)
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let host = options.host.trim_end_matches('/');
        serde_json::to_value(Config {
            route: options.with_route,
            service: options.with_service,
            route_document: options.route.filter(|_| options.with_route),
            service_document: options.service.filter(|_| options.with_service),
            consumer: options.with_consumer,
            upstream_headers: options.send_headers_upstream,
            failure_status: 403,
            invalid_status: 503,
            http: HttpRules {
                timeout_ms: options.timeout,
                verify_tls: options.ssl_verify,
                pool_size: if options.keepalive {
                    options.keepalive_pool
                } else {
                    0
                },
                pool_idle_timeout_ms: options.keepalive_timeout,
                ..HttpRules::default()
            },
            ..Config::new(format!("{host}/v1/data/{}", options.policy))
        })
    }
}
