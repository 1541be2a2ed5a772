//! `authz-keycloak`: the plugin of the same name of the catalogue.

use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::authz_keycloak::Config;
use weir_plugins::http_rules::HttpRules;

/// The plugin `authz-keycloak`.
pub struct AuthzKeycloak;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/authz-keycloak.json"));

#[derive(Deserialize)]
struct Options {
    discovery: Option<String>,
    token_endpoint: Option<String>,
    resource_registration_endpoint: Option<String>,
    client_id: String,
    client_secret: Option<String>,
    policy_enforcement_mode: String,
    /// A list; by default an empty map, which is an empty list in Lua.
    permissions: Value,
    lazy_load_paths: bool,
    http_method_as_scope: bool,
    timeout: u64,
    ssl_verify: bool,
    cache_ttl_seconds: u64,
    keepalive: bool,
    keepalive_timeout: u64,
    keepalive_pool: u32,
    access_denied_redirect_uri: Option<String>,
    access_token_expires_in: u64,
    access_token_expires_leeway: u64,
    password_grant_token_generation_incoming_uri: Option<String>,
    max_req_body_size: usize,
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

impl PluginAdapter for AuthzKeycloak {
    fn name(&self) -> &'static str {
        "authz-keycloak"
    }

    fn priority(&self) -> i64 {
        2000
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        SCHEMAS.request()
    }

    fn plugin(&self) -> &'static str {
        "authz-keycloak"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            discovery: options.discovery,
            token_endpoint: options.token_endpoint,
            resource_endpoint: options.resource_registration_endpoint,
            client_id: options.client_id,
            client_secret: options.client_secret,
            enforcing: options.policy_enforcement_mode == "ENFORCING",
            permissions: texts(&options.permissions),
            by_path: options.lazy_load_paths,
            method_as_scope: options.http_method_as_scope,
            denied_redirect: options.access_denied_redirect_uri,
            password_path: options.password_grant_token_generation_incoming_uri,
            max_body_bytes: options.max_req_body_size,
            cache_seconds: options.cache_ttl_seconds,
            token_seconds: options.access_token_expires_in,
            refresh_leeway_seconds: options.access_token_expires_leeway,
            http: HttpRules {
                timeout_ms: options.timeout,
                verify_tls: options.ssl_verify,
                pool_size: if options.keepalive {
                    options.keepalive_pool
                } else {
                    0
                },
                pool_idle_timeout_ms: options.keepalive_timeout,
                ..HttpRules::default()
            },
        })
    }
}
