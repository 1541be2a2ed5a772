//! Weir's plugin catalogue: one module a plugin, one line in [`registry()`] for each.
//!
//! Every plugin has a typed `Config`, from which its JSON Schema and its documentation derive. Whatever Kong's and
//! Apache APISIX's spellings of one plugin differ in (names of headers, words, defaults, order of places to look in)
//! is data of that configuration: the dialects  fill it in, the algorithm stands here once.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect .

pub mod acl;
pub mod basic_auth;
pub mod body_transform;
pub mod circuit_breaker;
pub mod compression;
pub mod concurrency_limit;
pub mod consumer_headers;
pub mod cors;
pub mod csrf;
pub mod degraphql;
pub mod error_page;
pub mod fault_injection;
pub mod forward_auth;
pub mod graphql_limit;
pub mod grpc_transcode;
pub mod grpc_web;
pub mod header_edits;
pub mod hmac_auth;
pub mod identity;
pub mod ip_restriction;
pub mod jwe_decrypt;
pub mod jwt;
pub mod key_auth;
pub mod lenient_json;
pub mod logger;
pub mod lua_syntax;
pub mod mirror;
pub mod mocking;
pub mod multi_auth;
pub mod prometheus;
pub mod protobuf;
pub mod proxy_cache;
pub mod rate_key;
pub mod rate_limit;
pub mod real_ip;
pub mod redirect;
pub mod redis;
pub mod referer_restriction;
pub mod request_buffering;
pub mod request_id;
pub mod request_rewrite;
pub mod request_size_limit;
pub mod request_termination;
pub mod request_uri;
pub mod request_validation;
pub mod response_rate_limit;
pub mod response_rewrite;
pub mod statsd;
pub mod throttle;
pub mod tracing;
pub mod traffic_label;
pub mod traffic_split;
pub mod uri_restriction;
pub mod user_agent_restriction;
pub mod webhook_signature;
pub mod workflow;

mod body_fields;
mod buffered_body;
mod config_checks;
mod consumer_labels;
mod expression;
pub mod field_edits;
mod graphql;
mod grpc_frames;
mod grpc_status;
mod json_schema;
mod networks;
mod path_captures;
mod query;
mod regex_list;
mod registry;
#[cfg(test)]
mod testkit;
mod text_template;
mod weighted_rules;
mod weights;
#[cfg(test)]
mod work_tests;

pub use registry::{registry, registry_on, registry_with};

/// Default of options that are on unless turned off.
pub(crate) fn yes() -> bool {
    true
}
