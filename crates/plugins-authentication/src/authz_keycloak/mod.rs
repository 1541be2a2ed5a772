//! `authz-keycloak`: asks Keycloak whether the holder of a token may make a call (User-Managed Access).
//!
//! ```yaml
//! token_endpoint: https://id.example.com/realms/shop/protocol/openid-connect/token
//! client_id: orders
//! permissions: [orders#view]
//! ```
//!
//! Keycloak decides by the permissions that the call needs: those of the configuration, or with `by_path` those of the resources
//! that it knows for the path. For these it is asked with a token of the client's own, which serves all calls.
//!
//! Security: calls are refused while Keycloak gives no answer, and when no permission is needed unless `enforcing` is false. The
//! caller's token is only sent to Keycloak.

mod filter;
mod server;
#[cfg(test)]
mod tests;

use crate::http_rules::HttpRules;
use filter::PermissionFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use server::{Endpoints, Keycloak};
use std::sync::Arc;
use weir_flow::expiring::ExpiringMap;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::HttpServer;

/// Configuration of `authz-keycloak`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The address of the discovery document, which names the endpoints that are not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<String>,
    /// The token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// The endpoint with the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_endpoint: Option<String>,
    /// The client whose permissions are checked.
    pub client_id: String,
    /// Its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// Whether calls that need no permission are refused.
    #[serde(default = "weir_plugins_shared::yes")]
    pub enforcing: bool,
    /// The permissions that calls need: `resource#scope`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// Whether the permissions are those of the resources that Keycloak knows for the path.
    #[serde(default)]
    pub by_path: bool,
    /// Whether the method is the scope.
    #[serde(default)]
    pub method_as_scope: bool,
    /// The address to which browsers are sent if their calls are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_redirect: Option<String>,
    /// The path at which a form with `username` and `password` is exchanged for tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_path: Option<String>,
    /// The most bytes of such a form.
    #[serde(default = "sixty_four_kib")]
    pub max_body_bytes: usize,
    /// How long the discovery document is used, in seconds.
    #[serde(default = "one_day")]
    pub cache_seconds: u64,
    /// How long a token of the client is used that does not say it, in seconds.
    #[serde(default = "five_minutes")]
    pub token_seconds: u64,
    /// So long before it expires, a token of the client is not used any more, in seconds.
    #[serde(default)]
    pub refresh_leeway_seconds: u64,
    /// The HTTP settings for calls to Keycloak.
    #[serde(default)]
    pub http: HttpRules,
}

/// Secrets are left out.
impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Config")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

fn sixty_four_kib() -> usize {
    64 << 10
}

fn one_day() -> u64 {
    86_400
}

fn five_minutes() -> u64 {
    300
}

const NAME: &str = "authz-keycloak";
const CACHE_BYTES: usize = 16 << 20;

/// The plugin `authz-keycloak`.
pub struct AuthzKeycloak {
    documents: Arc<ExpiringMap<Arc<Endpoints>>>,
    tokens: Arc<ExpiringMap<Arc<str>>>,
}

impl Default for AuthzKeycloak {
    fn default() -> Self {
        Self {
            documents: ExpiringMap::new(CACHE_BYTES),
            tokens: ExpiringMap::new(CACHE_BYTES),
        }
    }
}

impl Plugin for AuthzKeycloak {
    fn name(&self) -> &'static str {
        "authz-keycloak"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        for (field, url) in [
            ("discovery", &config.discovery),
            ("token_endpoint", &config.token_endpoint),
            ("resource_endpoint", &config.resource_endpoint),
        ] {
            if url.as_ref().is_some_and(|url| HttpServer::parse(url).is_none()) {
                faults.add(field, "expected an address that begins with http:// or https://");
            }
        }
        if config.discovery.is_none() && config.token_endpoint.is_none() {
            faults.add(
                "token_endpoint",
                "expected a token endpoint, or a discovery document",
            );
        }
        if config.by_path && config.discovery.is_none() && config.resource_endpoint.is_none() {
            faults.add(
                "resource_endpoint",
                "expected an endpoint with resources, or a discovery document",
            );
        }
        faults.check_value("denied_redirect", config.denied_redirect.as_ref());
        config.http.check(&mut faults);
        faults.done()?;
        Ok(Arc::new(PermissionFilter {
            keycloak: Keycloak {
                rules: config.http.rules(),
                documents: Arc::clone(&self.documents),
                tokens: Arc::clone(&self.tokens),
                config,
            },
        }))
    }
}
