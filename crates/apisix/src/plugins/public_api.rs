//! `public-api`: makes an internal interface public: the metrics, and purges of `graphql-proxy-cache`. Both are
//! `metrics-endpoint` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta};
use crate::errors;
use crate::metrics::EXPOSITION;
use crate::schema::{Schema, object, text};
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::prometheus::EndpointConfig;

/// The plugin.
pub struct PublicApi;

/// Where `graphql-proxy-cache` is purged.
const PURGES: &str = "/apisix/plugin/graphql-proxy-cache/";

/// The original's others.
const INTERNAL: [&str; 3] = ["/apisix/batch-requests", "/apisix/status", "/apisix/plugin/"];

impl PluginAdapter for PublicApi {
    fn name(&self) -> &'static str {
        "public-api"
    }

    fn priority(&self) -> i64 {
        501
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> =
            LazyLock::new(|| object([("uri", text()), ("_meta", meta::shape())]));
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "metrics-endpoint"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let metrics = context.settings.prometheus.export_uri.as_str();
        let path = match config.get("uri").and_then(Value::as_str) {
            Some(uri) if uri == metrics => None,
            Some(uri) => {
                if INTERNAL.iter().any(|internal| uri.starts_with(internal)) {
                    notes.not_available("uri", &format!("the internal interface \"{uri}\""));
                }
                // No call has this path.
                Some(String::new())
            }
            None => Some(metrics.to_owned()),
        };
        serde_json::to_value(EndpointConfig {
            exposition: EXPOSITION.to_owned(),
            path,
            purge_below: config.get("uri").is_none().then(|| PURGES.to_owned()),
            not_found_body: errors::page(404),
            not_found_content_type: errors::HTML.to_owned(),
        })
    }
}
