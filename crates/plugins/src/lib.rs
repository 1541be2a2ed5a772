//! Weir's plugin catalogue: the crates of all families under one name, and one line a plugin in [`registry()`].
//!
//! Every plugin has a typed `Config`; its JSON Schema and its documentation are made of that type. What Kong and Apache
//! APISIX spell differently in one plugin (names of headers, messages, defaults, order of places to look in) is data of
//! that configuration: a dialect fills it in, and the algorithm exists once.
//!
//! **What it is not**: a plugin, or an algorithm. A change to a plugin compiles its family and this list.

mod registry;
mod skippable;
#[cfg(test)]
mod work_tests;

pub use registry::{registry, registry_on, registry_with};
pub use skippable::is_skippable;
pub use weir_plugins_authentication::*;
pub use weir_plugins_caching::*;
pub use weir_plugins_observability::*;
pub use weir_plugins_shared::{
    ROUTE_DOCUMENT_LABEL, SERVICE_DOCUMENT_LABEL, SERVICE_LABEL, cookie, field_edits, header_edits,
    http_request::HttpServer, lenient_json, lua_syntax, request_uri,
};
pub use weir_plugins_traffic::*;
pub use weir_plugins_transformation::*;
pub use weir_plugins_validation::*;
