//! `public-api`: `request-termination` of the catalogue, as there are no internal interfaces to be made public yet.

use super::{Mapping, Notes, Phases, Surroundings, meta};
use crate::schema::{Shape, object, text};
use crate::voice;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::request_termination::Config;

/// The plugin.
pub struct PublicApi;

/// The internal interfaces of the original.
const INTERNAL: [&str; 4] = [
    "/apisix/batch-requests",
    "/apisix/prometheus/metrics",
    "/apisix/status",
    "/apisix/plugin/",
];

impl Mapping for PublicApi {
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

    fn shape(&self) -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(|| object([("uri", text()), ("_meta", meta::shape())]));
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "request-termination"
    }

    fn translate(
        &self,
        config: &Value,
        _: &Surroundings<'_>,
        notes: &mut Notes,
    ) -> Result<Value, serde_json::Error> {
        match config.get("uri").and_then(Value::as_str) {
            Some(uri) if INTERNAL.iter().any(|internal| uri.starts_with(internal)) => {
                notes.not_available("uri", &format!("the internal interface \"{uri}\""));
            }
            Some(_) => {}
            None => notes.warn(
                "uri",
                "there is no internal interface yet: calls are answered with 404",
            ),
        }
        serde_json::to_value(Config {
            status: 404,
            body: Some(voice::page(404)),
            content_type: Some(voice::HTML.to_owned()),
            ..Config::default()
        })
    }
}
