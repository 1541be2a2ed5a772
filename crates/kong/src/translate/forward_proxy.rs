//! The effects of `forward-proxy` on the services that its instances are for, as far as people should know. What it is
//! in the catalogue is in [`crate::plugins`].

use crate::document::{Document, Plugin, Service};
use serde_json::Value;

/// The plugin.
const NAME: &str = "forward-proxy";

/// The warning that names the services that lose the check of their certificates by an instance.
pub fn warning(plugin: &Plugin, config: &Value, document: &Document) -> Option<String> {
    if plugin.name != NAME || config["https_verify"] != Value::Bool(false) {
        return None;
    }
    let of_route = plugin.route.map(|id| {
        let mut routes = document.routes.iter().map(|it| &it.value);
        routes
            .find(|route| route.id == id)
            .and_then(|route| route.service)
    });
    let is_reached = |service: &Service| {
        plugin.service.is_none_or(|id| id == service.id) && of_route.is_none_or(|id| id == Some(service.id))
    };
    let services = document.services.iter().map(|it| &it.value);
    let names: Vec<String> = services
        .filter(|service| service.enabled && service.tls_verify == Some(true) && is_reached(service))
        .map(|service| format!("'{}'", super::service::name(service)))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "turns off 'tls_verify' of {}: behind the proxy their certificates are not checked; set 'https_verify: true' to check them",
            names.join(", ")
        )
    })
}
