//! `public-api`: makes an internal interface public: the metrics, batches of calls, the node's status, purges of
//! `graphql-proxy-cache`, and the logins of `wolf-rbac`. All are `metrics-endpoint` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::errors;
use crate::metrics::{EXPOSITION, STATUS_EXPOSITION};
use crate::schema::{Schema, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::batch_requests;
use weir_plugins::prometheus::{EndpointConfig, EndpointText};
use weir_plugins::wolf_rbac::{Endpoint, EndpointKind};

/// The plugin `public-api`.
pub struct PublicApi;

/// The path for purging `graphql-proxy-cache`.
const PURGES: &str = "/apisix/plugin/graphql-proxy-cache/";

/// The path of the node's status.
const STATUS: &str = "/apisix/status";

/// The paths for users of wolf servers.
const WOLF: [(&str, EndpointKind); 3] = [
    ("/apisix/plugin/wolf-rbac/login", EndpointKind::Login),
    ("/apisix/plugin/wolf-rbac/user_info", EndpointKind::UserInfo),
    (
        "/apisix/plugin/wolf-rbac/change_pwd",
        EndpointKind::ChangePassword,
    ),
];

/// The metadata of `batch-requests`.
#[derive(Deserialize)]
#[serde(default)]
struct Limits {
    max_body_size: usize,
    max_pipeline_items: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_size: 1 << 20,
            max_pipeline_items: 1000,
        }
    }
}

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
        let uri = config.get("uri").and_then(Value::as_str);
        if let Some(uri) = uri.filter(|uri| uri.starts_with(PURGES)) {
            notes.not_available("uri", &format!("the internal interface \"{uri}\""));
        }
        // With `uri`, all calls of the route are for that interface; without, each is for the one of its own path.
        let is_it = |path: &str| uri.is_none_or(|uri| uri == path);
        let path = match (uri, is_it(metrics)) {
            (Some(_), true) => None,
            (None, true) => Some(metrics.to_owned()),
            // No call has this path.
            (_, false) => Some(String::new()),
        };
        let batches_uri = context.settings.batches_uri.as_str();
        let limits: Limits = context
            .metadata
            .get("batch-requests")
            .map_or_else(|| Ok(Limits::default()), read)?;
        let batches = batch_requests::Config {
            path: uri.is_none().then(|| batches_uri.to_owned()),
            max_body_bytes: limits.max_body_size.min(32 << 20),
            max_items: limits.max_pipeline_items,
            ..batch_requests::Config::default()
        };
        let texts = is_it(STATUS).then(|| EndpointText {
            path: uri.is_none().then(|| STATUS.to_owned()),
            exposition: STATUS_EXPOSITION.to_owned(),
            content_type: "text/plain; charset=utf-8".to_owned(),
        });
        let wolf = WOLF.into_iter().filter(|(path, _)| is_it(path));
        serde_json::to_value(EndpointConfig {
            wolf: wolf
                .map(|(path, serves)| Endpoint {
                    serves,
                    path: uri.is_none().then(|| path.to_owned()),
                })
                .collect(),
            exposition: EXPOSITION.to_owned(),
            path,
            batches: is_it(batches_uri).then_some(batches),
            texts: texts.into_iter().collect(),
            purge_below: config.get("uri").is_none().then(|| PURGES.to_owned()),
            not_found_body: errors::page(404),
            not_found_content_type: errors::HTML.to_owned(),
        })
    }
}
