//! Kong's plugins: their names, their order, the fields of their `config`, and what each is in Weir's catalogue.
//!
//! One file a plugin. A plugin's algorithm is in the catalogue; here is only how Kong spells it.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
mod acl;
pub mod acme;
mod advanced_limits;
mod aws_lambda;
mod azure_functions;
mod basic_auth;
mod bot_detection;
mod canary;
mod confluent;
mod confluent_consume;
mod consume_fields;
mod correlation_id;
mod cors;
mod datadog;
mod datakit;
mod degraphql;
mod enterprise_fields;
mod file_log;
mod forward_proxy;
mod graphql_proxy_cache_advanced;
mod graphql_rate_limiting_advanced;
mod grpc_gateway;
mod grpc_web;
mod header_cert_auth;
mod header_edits;
mod hmac_auth;
mod http_log;
mod injection_protection;
mod ip_restriction;
mod jq;
mod json_threat_protection;
mod json_types;
mod jwe_decrypt;
mod jwt;
pub mod jwt_signer;
mod kafka_consume;
mod kafka_fields;
mod kafka_log;
mod kafka_upstream;
mod key_auth;
mod key_auth_enc;
mod ldap_auth;
mod ldap_auth_advanced;
mod logging;
mod loggly;
mod mocking;
mod mtls_auth;
pub mod names;
mod oas_validation;
mod oauth2;
mod oauth2_introspection;
mod opa;
mod openid_connect;
mod opentelemetry;
pub mod prometheus;
mod proxy_cache;
mod proxy_cache_advanced;
mod rate_limiting;
mod rate_limiting_advanced;
mod redirect;
pub mod redis;
mod request_callout;
mod request_size_limiting;
mod request_termination;
mod request_transformer;
mod request_transformer_advanced;
mod request_validator;
mod response_ratelimiting;
mod response_transformer;
mod response_transformer_advanced;
mod route_by_header;
mod route_transformer_advanced;
mod saml;
mod scope;
mod service_protection;
mod session;
mod session_options;
mod shorthand;
mod standard_webhooks;
mod statsd;
mod statsd_advanced;
mod syslog;
mod tcp_log;
mod tls_handshake_modifier;
mod tls_metadata_headers;
mod tracing;
mod udp_log;
pub mod unreadable;
pub mod unserved;
mod upstream_oauth;
mod upstream_timeout;
mod vault_auth;
mod websocket_size_limit;
mod websocket_validator;
mod xml_threat_protection;
mod zipkin;
// End of the modules.

use crate::schema::{EntityCheck, Record};
use crate::translate::graphql::GraphqlService;
pub use acl::GROUPS;
pub use datakit::reads_documents;
pub use names::NAMES;
pub use oauth2::CATALOGUE_NAME as OAUTH2;
pub use opa::CATALOGUE_NAME as OPA;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
pub use shorthand::Shorthand;
use unserved::DESCRIBED;
use weir_dialect::Support;
use weir_model::DocPath;
use weir_plugins::identity;
use weir_plugins::private_key::PrivateKey;
use weir_plugins::vault_auth::VaultServer;

/// A plugin that Kong has and Weir too.
pub struct Definition {
    /// Kong's name for it.
    pub name: &'static str,
    /// Plugins with a higher one run first.
    pub priority: i32,
    /// The fields of `config`.
    pub config: Record,
    /// Checks on the whole instance; fields of the configuration are named `config.…`.
    pub checks: &'static [EntityCheck],
    /// Former names of fields.
    pub shorthands: &'static [Shorthand],
    /// Whether an instance may name a consumer.
    pub on_consumers: bool,
    /// The name in Weir's catalogue.
    pub catalogue_name: &'static str,
    /// Makes the catalogue's configuration of `config`, which has all its defaults.
    pub translate: fn(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption>,
}

/// A plugin of the catalogue, with its configuration. Not `Debug`: that may hold secrets.
#[derive(Clone)]
pub struct CataloguePlugin {
    /// Its name.
    pub name: &'static str,
    /// Its configuration.
    pub config: Value,
}

/// An option of a configuration that Weir's plugin cannot do yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is not available in this version of Weir")]
pub struct UnsupportedOption {
    /// The field of `config`; empty: the whole.
    pub field: &'static str,
    /// The option.
    pub what: String,
}

impl UnsupportedOption {
    /// Its place in the document, if the instance stands at `instance`.
    pub fn place(&self, instance: &DocPath) -> DocPath {
        match self.field {
            "" => instance.field("config"),
            field => instance.field("config").field(field),
        }
    }
}

/// The entities that a configuration may refer to.
#[derive(Clone, Copy)]
pub struct Consumers<'c> {
    /// Finds the id of a consumer by its name or its id.
    pub find: &'c dyn Fn(&str) -> Option<String>,
    /// Finds the certificate of an authority, in PEM, by its id.
    pub authority: &'c dyn Fn(&str) -> Option<String>,
    /// Finds the private keys of a set by its name or its id.
    pub key_set: &'c dyn Fn(&str) -> Option<Vec<PrivateKey>>,
    /// Finds the keys to sign with of a name: those of a set, else those that the gateway has made.
    pub signing_keys: &'c dyn Fn(&str) -> Option<Vec<PrivateKey>>,
    /// Finds a connection to a vault by its name or its id.
    pub vault: &'c dyn Fn(&str) -> Option<VaultServer>,
    /// Returns what entities say about the GraphQL of the services that the instance can meet.
    pub graphql: &'c dyn Fn() -> Vec<GraphqlService>,
}

/// The plugins that ask for that.
pub const GRAPHQL_PLUGINS: &[&str] = &["degraphql", "graphql-rate-limiting-advanced"];

impl Consumers<'_> {
    /// None of anything.
    pub const NONE: Consumers<'static> = Consumers {
        find: &|_| None,
        authority: &|_| None,
        key_set: &|_| None,
        signing_keys: &|_| None,
        vault: &|_| None,
        graphql: &Vec::new,
    };
}

/// A name in a configuration that does not exist. It is refused when it is written; once it is stored, calls are
/// refused.
pub fn missing(name: &str, config: &Value, known: &Consumers<'_>) -> Option<UnsupportedOption> {
    match name {
        "jwt-signer" => jwt_signer::missing(config, known),
        "vault-auth" => vault_auth::missing(config, known),
        _ => None,
    }
}

/// The support of a plugin's name.
pub enum PluginSupport {
    /// It can be used.
    Yes(&'static Definition),
    /// The original or its paid edition has it, Weir does not; the reason.
    Unavailable(&'static str),
    /// Neither has it.
    No,
}

/// Looks a plugin up.
pub fn known(name: &str) -> PluginSupport {
    match all().find(|definition| definition.name == name) {
        Some(definition) => PluginSupport::Yes(definition),
        None => match names::row(name).map(|row| row.support) {
            Some(Support::Refused(reason)) => PluginSupport::Unavailable(reason),
            _ => PluginSupport::No,
        },
    }
}

/// Plugins that are served, and those that are only described.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    let is_served = |name: &str| DEFINITIONS.iter().any(|definition| definition.name == name);
    let only_described = DESCRIBED.iter().filter(move |it| !is_served(it.name));
    DEFINITIONS.iter().chain(only_described)
}

/// All plugins that are served.
pub static DEFINITIONS: &[Definition] = &[
    acl::DEFINITION,
    acme::DEFINITION,
    aws_lambda::DEFINITION,
    azure_functions::DEFINITION,
    basic_auth::DEFINITION,
    bot_detection::DEFINITION,
    canary::DEFINITION,
    confluent::DEFINITION,
    confluent_consume::DEFINITION,
    correlation_id::DEFINITION,
    cors::DEFINITION,
    datadog::DEFINITION,
    datakit::DEFINITION,
    degraphql::DEFINITION,
    file_log::DEFINITION,
    forward_proxy::DEFINITION,
    graphql_proxy_cache_advanced::DEFINITION,
    graphql_rate_limiting_advanced::DEFINITION,
    grpc_gateway::DEFINITION,
    grpc_web::DEFINITION,
    header_cert_auth::DEFINITION,
    hmac_auth::DEFINITION,
    http_log::DEFINITION,
    injection_protection::DEFINITION,
    ip_restriction::DEFINITION,
    jq::DEFINITION,
    json_threat_protection::DEFINITION,
    jwe_decrypt::DEFINITION,
    jwt::DEFINITION,
    jwt_signer::DEFINITION,
    kafka_consume::DEFINITION,
    kafka_log::DEFINITION,
    kafka_upstream::DEFINITION,
    key_auth::DEFINITION,
    key_auth_enc::DEFINITION,
    ldap_auth::DEFINITION,
    ldap_auth_advanced::DEFINITION,
    loggly::DEFINITION,
    mocking::DEFINITION,
    mtls_auth::DEFINITION,
    oas_validation::DEFINITION,
    oauth2::DEFINITION,
    oauth2_introspection::DEFINITION,
    opa::DEFINITION,
    openid_connect::DEFINITION,
    opentelemetry::DEFINITION,
    prometheus::DEFINITION,
    proxy_cache::DEFINITION,
    proxy_cache_advanced::DEFINITION,
    rate_limiting::DEFINITION,
    rate_limiting_advanced::DEFINITION,
    redirect::DEFINITION,
    request_callout::DEFINITION,
    request_size_limiting::DEFINITION,
    request_termination::DEFINITION,
    request_transformer::DEFINITION,
    request_transformer_advanced::DEFINITION,
    request_validator::DEFINITION,
    response_ratelimiting::DEFINITION,
    response_transformer::DEFINITION,
    response_transformer_advanced::DEFINITION,
    route_by_header::DEFINITION,
    route_transformer_advanced::DEFINITION,
    saml::DEFINITION,
    service_protection::DEFINITION,
    session::DEFINITION,
    standard_webhooks::DEFINITION,
    statsd::DEFINITION,
    statsd_advanced::DEFINITION,
    syslog::DEFINITION,
    tcp_log::DEFINITION,
    tls_handshake_modifier::DEFINITION,
    tls_metadata_headers::DEFINITION,
    udp_log::DEFINITION,
    upstream_oauth::DEFINITION,
    upstream_timeout::DEFINITION,
    vault_auth::DEFINITION,
    websocket_size_limit::DEFINITION,
    websocket_validator::DEFINITION,
    xml_threat_protection::DEFINITION,
    zipkin::DEFINITION,
];

impl Definition {
    /// Makes the catalogue's configuration of `config`, which has all its defaults. A description
    /// may allow numbers that a plugin has no room for: the refusal names the field.
    ///
    /// # Errors
    /// An option that Weir's plugin cannot do.
    pub fn translated(&self, config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
        let fault = match (self.translate)(config, consumers) {
            Err(fault) if fault.field.is_empty() => fault,
            made => return made,
        };
        let is_it = |pointer: &String| {
            let mut other = config.clone();
            let Some(number) = other.pointer_mut(pointer).filter(|value| value.is_number()) else {
                return false;
            };
            *number = Value::from(1);
            (self.translate)(&other, consumers) != Err(fault.clone())
        };
        for field in self.config.fields {
            let inner = config.get(field.name).and_then(Value::as_object);
            let inner = inner.into_iter().flat_map(|record| record.keys());
            let inner = inner.map(|name| format!("/{}/{name}", field.name));
            let mut pointers = std::iter::once(format!("/{}", field.name)).chain(inner);
            if let Some(pointer) = pointers.find(is_it) {
                let number = config.pointer(&pointer).cloned().unwrap_or_default();
                let name = pointer[1..].replace('/', ".");
                return Err(UnsupportedOption {
                    field: field.name,
                    what: format!("the number {number} as {name}"),
                });
            }
        }
        Err(fault)
    }
}

/// Reads a configuration that has passed its description. A text in place of a number cannot
/// occur any more.
fn typed<T: DeserializeOwned>(config: &Value) -> Result<T, UnsupportedOption> {
    T::deserialize(config).map_err(|error| UnsupportedOption {
        field: "",
        what: format!("this configuration ({error})"),
    })
}

fn untyped(config: impl Serialize) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

/// The identity headers of the authentication plugins, and the calls that they allow.
fn identity(anonymous: Option<&str>, on_preflight: bool, consumers: &Consumers<'_>) -> identity::Config {
    identity::Config {
        // A consumer that does not exist is found missing when a call needs it, as in the original.
        anonymous: anonymous.map(|name| (consumers.find)(name).unwrap_or_else(|| name.to_owned())),
        skip_authenticated: anonymous.is_some(),
        on_preflight,
        ..identity::Config::default()
    }
}

/// A challenge for `WWW-Authenticate`: the scheme, and the realm if there is one.
fn challenge(scheme: &str, realm: Option<&str>) -> String {
    match realm {
        Some(realm) => format!("{scheme} realm=\"{realm}\""),
        None => scheme.to_owned(),
    }
}
