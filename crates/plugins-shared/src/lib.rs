//! What plugins of several families share: conditions and expressions, text templates, edits of headers and of fields,
//! JSON Schema, checks of configurations.
//!
//! **What it is not**: a plugin. It reads no store, opens no socket and knows no dialect.

pub mod config_checks;
pub mod consumer_labels;
pub mod cookie;
pub mod expression;
pub mod field_edits;
pub mod graphql;
pub mod header_edits;
pub mod http_request;
pub mod json_schema;
pub mod json_text;
pub mod kafka_target;
pub mod lenient_json;
pub mod lua_syntax;
pub mod path_captures;
pub mod random;
pub mod redis;
pub mod redis_values;
pub mod regex_list;
pub mod request_uri;
pub mod sealed;
pub mod text_template;

/// The label of routes with the id of their service, for dialects whose services have other names than their ids.
pub const SERVICE_LABEL: &str = "service_id";

/// The label of a route with what is written about it, as JSON, for plugins that tell others of it.
pub const ROUTE_DOCUMENT_LABEL: &str = "route_document";

/// The same about its service.
pub const SERVICE_DOCUMENT_LABEL: &str = "service_document";

/// Default of options that are on unless turned off.
pub fn yes() -> bool {
    true
}
