//! Weir's plugin catalogue: one module a plugin, one line in [`registry()`] for each.
//!
//! Every plugin has a typed `Config`, from which its JSON Schema and its documentation derive. Whatever Kong's and
//! Apache APISIX's spellings of one plugin differ in (names of headers, words, defaults, order of places to look in)
//! is data of that configuration: the front doors fill it in, the algorithm stands here once.
//!
//! **What it is not**: it reads no store, opens no socket and knows no front door.

pub mod cors;
pub mod header_steps;
pub mod identity;
pub mod jwt;
pub mod key_auth;
pub mod rate_limit;
pub mod request_id;
pub mod request_rewrite;
pub mod request_termination;
pub mod response_rewrite;

mod body_fields;
mod captures;
mod patterns;
mod query;
mod registry;
#[cfg(test)]
mod testkit;

pub use registry::registry;

/// Default of options that are on unless turned off.
pub(crate) fn yes() -> bool {
    true
}
