//! Shapes of plugins that are read from the JSON Schemas that APISIX itself prints, in `schemas/`.

use super::meta;
use crate::schema::Schema;
use serde_json::Value;
use std::sync::OnceLock;

/// The schemas of one plugin.
pub(super) struct PrintedSchemas {
    text: &'static str,
    schemas: OnceLock<Value>,
    request: OnceLock<Schema>,
    consumer: OnceLock<Schema>,
}

impl PrintedSchemas {
    /// Schemas that are read when they are first needed.
    pub(super) const fn new(text: &'static str) -> Self {
        Self {
            text,
            schemas: OnceLock::new(),
            request: OnceLock::new(),
            consumer: OnceLock::new(),
        }
    }

    fn schema(&'static self, which: &str) -> Schema {
        let schemas = self.schemas.get_or_init(|| {
            serde_json::from_str(self.text).expect("invariant: the schemas are JSON, which a test holds")
        });
        schemas
            .get(which)
            .map(Schema::from_json_schema)
            .unwrap_or_default()
    }

    /// The shape on routes and what is merged with them.
    pub(super) fn request(&'static self) -> &'static Schema {
        self.request
            .get_or_init(|| self.schema("schema").field("_meta", meta::shape()))
    }

    /// The shape on consumers.
    pub(super) fn consumer(&'static self) -> &'static Schema {
        self.consumer.get_or_init(|| self.schema("consumer_schema"))
    }
}
