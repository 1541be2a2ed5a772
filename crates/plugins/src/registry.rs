//! The list of plugins: one line each.

use weir_plugin::Registry;

/// All plugins of the catalogue. State that outlives a reload begins here, so make one registry a process.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add(crate::cors::Cors);
    registry.add(crate::jwt::Jwt);
    registry.add(crate::key_auth::KeyAuth);
    registry.add(crate::rate_limit::RateLimit::default());
    registry.add(crate::request_id::RequestId::default());
    registry.add(crate::request_rewrite::RequestRewrite);
    registry.add(crate::request_termination::RequestTermination);
    registry.add(crate::response_rewrite::ResponseRewrite);
    registry
}
