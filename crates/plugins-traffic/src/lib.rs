//! Plugins that limit, restrict, answer and steer calls: rate limits, circuit breakers, restrictions by address or path,
//! validation, splits and mirrors.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
pub mod callout;
pub mod canary;
pub mod circuit_breaker;
pub mod concurrency_limit;
pub mod cors;
pub mod fault_injection;
pub mod forward_proxy;
pub mod graphql_cost;
pub mod graphql_limit;
pub mod ip_restriction;
pub mod mirror;
mod networks;
mod persistent_counters;
pub mod rate_key;
pub mod rate_limit;
pub mod real_ip;
pub mod redis;
pub mod referer_restriction;
pub mod request_buffering;
pub mod request_size_limit;
pub mod request_termination;
pub mod request_validation;
pub mod response_rate_limit;
pub mod route_by_header;
mod shared_limits;
pub mod throttle;
pub mod traffic_label;
pub mod traffic_split;
pub mod upstream_address;
pub mod upstream_timeout;
pub mod uri_restriction;
pub mod user_agent_restriction;
mod weighted_rules;
mod weights;
pub mod workflow;
// End of the modules.
