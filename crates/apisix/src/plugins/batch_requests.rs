//! `batch-requests`: `public-api` makes batches public; on a route by itself the plugin does nothing. Its metadata has the
//! limits.

use super::{Phases, PluginAdapter, PluginContext, Warnings, printed_shape};
use crate::schema::Schema;
use serde_json::Value;
use std::sync::LazyLock;

/// The plugin.
pub struct BatchRequests;

const SCHEMAS: &str = include_str!("schemas/batch-requests.json");

impl PluginAdapter for BatchRequests {
    fn name(&self) -> &'static str {
        "batch-requests"
    }

    fn priority(&self) -> i64 {
        4010
    }

    fn phases(&self) -> Phases {
        Phases::default()
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| printed_shape(SCHEMAS, "schema"));
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| printed_shape(SCHEMAS, "metadata_schema"));
        Some(&SHAPE)
    }

    fn plugin(&self) -> &'static str {
        ""
    }

    fn translate(
        &self,
        _: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        Ok(Value::Null)
    }
}
