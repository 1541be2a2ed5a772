//! `prometheus`: metrics of routes, which Weir always counts and tells under names of its own. The plugin is accepted
//! and does nothing: a `response-rewrite` of the catalogue that rewrites nothing.

use super::{Mapping, Notes, Phases, Surroundings, meta};
use crate::schema::{Shape, boolean, object};
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::response_rewrite::Config;

/// The plugin.
pub struct Prometheus;

impl Mapping for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn priority(&self) -> i64 {
        500
    }

    fn phases(&self) -> Phases {
        Phases {
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Shape {
        static SHAPE: LazyLock<Shape> =
            LazyLock::new(|| object([("prefer_name", boolean().or(false)), ("_meta", meta::shape())]));
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "response-rewrite"
    }

    fn translate(
        &self,
        _: &Value,
        _: &Surroundings<'_>,
        notes: &mut Notes,
    ) -> Result<Value, serde_json::Error> {
        notes.warn(
            "prefer_name",
            "metrics are told under Weir's own names (weir_route_requests_total and others) on the status listener",
        );
        serde_json::to_value(Config::default())
    }
}
