//! APISIX's plugins: which there are, how their configuration is checked, and what each is in Weir's catalogue.
//!
//! A plugin that Weir has is a [`PluginAdapter`]: its name, place and schema in APISIX and a translation of its
//! configuration. One file each; there are no algorithms here, only spellings.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
mod acl;
mod adapter;
mod api_breaker;
mod app_login;
mod attach_consumer_label;
mod authz_casbin;
mod authz_casdoor;
mod authz_keycloak;
mod basic_auth;
mod batch_requests;
mod body_transformer;
mod cas_auth;
mod catalogue;
mod chaitin_waf;
mod check;
mod client_control;
mod compression;
mod consumer_restriction;
mod cors;
mod csrf;
mod data_mask;
mod degraphql;
mod dingtalk_auth;
mod echo;
pub mod error_log_logger;
mod error_page;
mod fault_injection;
mod feishu_auth;
mod forward_auth;
mod functions;
mod graphql_limit_count;
mod grpc_transcode;
mod grpc_web;
mod headers;
mod hmac_auth;
mod http_dubbo;
mod ip_restriction;
mod jwe_decrypt;
mod jwt_auth;
mod key_auth;
mod ldap_auth;
mod ldap_auth_advanced;
mod limit_conn;
pub(crate) mod limit_count;
mod limit_req;
pub mod loggers;
mod meta;
mod mocking;
pub mod mqtt_proxy;
mod multi_auth;
pub mod names;
mod no_op;
mod oas_validator;
mod opa;
mod openid_connect;
mod opentelemetry;
mod printed_schemas;
mod prometheus;
mod proxy_cache;
mod proxy_control;
mod proxy_mirror;
mod proxy_rewrite;
mod public_api;
mod real_ip;
mod redirect;
mod redis;
mod referer_restriction;
mod regexes;
mod request_id;
mod request_validation;
mod response_rewrite;
mod saml_auth;
mod schemas;
mod skippable;
pub mod skywalking;
mod traffic_label;
mod traffic_split;
mod ua_restriction;
mod unserved;
mod uri_blocker;
mod wolf_rbac;
mod workflow;
mod zipkin;
// End of the modules.

pub use adapter::{
    AgentDocuments, CredentialAdapter, FieldRemark, Phases, PluginAdapter, PluginContext, PluginLocation,
    PluginUpstreamRef, Warnings,
};
pub use catalogue::{is_known, mapping, spellings};
pub use check::Checker;
pub use meta::{Meta, shape as meta_shape};
pub use names::NAMES;
pub use prometheus::{Prometheus, text_label};
pub use regexes::check_regex;
pub use traffic_split::TrafficSplit;
pub use unserved::unserved;

pub(crate) use schemas::{printed_shape, read};
pub(crate) use skippable::{is_skippable, serves_without};
