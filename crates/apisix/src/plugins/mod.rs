//! APISIX's plugins: which there are, how their configuration is checked, and what each is in Weir's catalogue.
//!
//! A plugin that Weir has is a [`Mapping`]: its name, place and shape in APISIX and a translation of its
//! configuration. One file each; no algorithm stands here, only spellings.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
mod acl;
mod api_breaker;
mod attach_consumer_label;
mod basic_auth;
mod batch_requests;
mod body_transformer;
mod captured;
mod catalogue;
mod check;
mod client_control;
mod compression;
mod consumer_restriction;
mod cors;
mod csrf;
mod data_mask;
mod degraphql;
mod echo;
mod error_page;
mod fault_injection;
mod forward_auth;
mod functions;
mod graphql_limit_count;
mod grpc_transcode;
mod grpc_web;
mod headers;
mod hmac_auth;
mod idle;
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
mod multi_auth;
pub mod names;
mod oas_validator;
mod opa;
mod openid_connect;
mod opentelemetry;
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
mod traffic_label;
mod traffic_split;
mod ua_restriction;
mod unserved;
mod uri_blocker;
mod workflow;
mod zipkin;
// End of the modules.

pub use catalogue::{is_known, mapping, spellings};
pub use check::{Checker, PluginLocation};
pub use meta::{Meta, shape as meta_shape};
pub use names::NAMES;
pub use unserved::unserved;

use crate::schema::Schema;
use crate::settings::Settings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_model::Severity;

/// A plugin of APISIX that Weir's catalogue has.
pub trait PluginAdapter: Sync {
    /// Its name in APISIX.
    fn name(&self) -> &'static str;

    /// Its priority in APISIX: of the plugins of one phase, the higher works first.
    fn priority(&self) -> i64;

    /// The phases of APISIX in which it works.
    fn phases(&self) -> Phases;

    /// Whether that of a global rule does nothing on calls of routes that have one of their own.
    fn yields_to_route(&self) -> bool {
        false
    }

    /// What its configuration must look like.
    fn shape(&self) -> &'static Schema;

    /// What its metadata must look like; `None`: Weir uses none.
    fn metadata_shape(&self) -> Option<&'static Schema> {
        None
    }

    /// The words for a violation of the shape, where the plugin has better ones.
    fn explain(&self, config: &Value, error: String) -> String {
        let _ = config;
        error
    }

    /// Checks what a shape cannot say.
    ///
    /// # Errors
    /// In APISIX's words.
    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let _ = config;
        Ok(())
    }

    /// Checks what depends on APISIX's `config.yaml`.
    ///
    /// # Errors
    /// In APISIX's words.
    fn check_by(&self, config: &Map<String, Value>, settings: &Settings) -> Result<(), String> {
        let _ = (config, settings);
        Ok(())
    }

    /// How consumers are recognised by it, where it authenticates.
    fn credentials(&self) -> Option<&dyn CredentialAdapter> {
        None
    }

    /// Whether it finds out who calls.
    fn authenticates(&self) -> bool {
        self.credentials().is_some()
    }

    /// Its name in Weir's catalogue.
    fn plugin(&self) -> &'static str;

    /// The upstreams that its configuration brings or names, by the names that its translation gives their services.
    fn upstreams(&self, config: &Value) -> Vec<(String, PluginUpstreamRef)> {
        let _ = config;
        Vec::new()
    }

    /// Its configuration in Weir's catalogue, of one that has been checked. What is served in another way than
    /// APISIX would, or cannot be, is told in `notes`.
    ///
    /// # Errors
    /// When the configuration is not what its shape promises.
    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error>;
}

/// An upstream to which a plugin sends calls.
#[derive(Debug)]
pub enum PluginUpstreamRef {
    /// The resource with this id.
    Known(String),
    /// One that stands in the plugin's configuration.
    Own(Box<crate::document::Upstream>),
}

/// The consumers' side of a plugin that authenticates.
pub trait CredentialAdapter: Sync {
    /// What a consumer's configuration must look like.
    fn shape(&self) -> &'static Schema;

    /// Checks what a shape cannot say.
    ///
    /// # Errors
    /// In APISIX's words.
    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let _ = config;
        Ok(())
    }

    /// What is dangerous in a configuration that is served all the same: the field, and why.
    fn warning(&self, config: &Value) -> Option<(&'static str, &'static str)> {
        let _ = config;
        None
    }

    /// The credential in Weir's catalogue.
    ///
    /// # Errors
    /// When the configuration is not what its shape promises.
    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error>;
}

/// The phases of APISIX in which a plugin works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// On the request, before any plugin's access phase. Authentication and rewrites work here.
    pub rewrite: bool,
    /// On the request, once it is known who calls.
    pub access: bool,
    /// On the response.
    pub response: bool,
    /// Its work comes after that of all others: on the request, what is sent is copied; on the response, it is coded.
    pub last: bool,
}

/// What a translation may know of its context.
#[derive(Debug)]
pub struct PluginContext<'s> {
    /// The id of the instance; its counters belong to it.
    pub instance: &'s str,
    /// Metadata of plugins, by plugin name.
    pub metadata: &'s Map<String, Value>,
    /// The upstreams that stand by themselves.
    pub upstreams: &'s [crate::document::Item<crate::document::Upstream>],
    /// Protocol Buffers definitions, by id.
    pub protos: &'s BTreeMap<String, String>,
    /// Whether the router takes a `/` off the end of paths.
    pub drops_tail_slash: bool,
    /// APISIX's `config.yaml`.
    pub settings: &'static Settings,
}

/// Remarks about a configuration.
#[derive(Debug, Default)]
pub struct Warnings(pub Vec<Note>);

/// A remark about a field of a configuration.
#[derive(Debug)]
pub struct Note {
    /// How bad it is.
    pub severity: Severity,
    /// The field.
    pub field: &'static str,
    /// What is to be said.
    pub message: String,
}

impl Warnings {
    /// The field is served in another way than in APISIX.
    pub fn warn(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push(Note {
            severity: Severity::Warning,
            field,
            message: message.into(),
        });
    }

    /// The field is wrong.
    pub fn error(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push(Note {
            severity: Severity::Error,
            field,
            message: message.into(),
        });
    }

    /// The field cannot be served.
    pub fn not_available(&mut self, field: &'static str, what: &str) {
        self.error(field, format!("{what} is not available in this version of Weir"));
    }
}

/// The shape of a plugin whose schemas are kept as APISIX prints them; `which` is `schema`, `consumer_schema` or
/// `metadata_schema`.
fn printed_shape(text: &'static str, which: &str) -> Schema {
    let schemas: Value = serde_json::from_str(text).unwrap_or_default();
    // Shapes live as long as the process.
    let schema: &'static Value = Box::leak(Box::new(schemas[which].clone()));
    let shape = Schema::from_json_schema(schema);
    match which {
        "schema" => shape.field("_meta", meta::shape()),
        _ => shape,
    }
}

/// Reads a configuration that has been checked.
fn read<T: DeserializeOwned>(config: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(config)
}

/// Whether a regular expression can be used. `Err(None)`: it is wrong in any dialect; `Err(Some(what))`: it uses
/// what only APISIX's dialect has.
pub fn check_regex(pattern: &str) -> Result<(), Option<&'static str>> {
    match regex::Regex::new(pattern) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            if text.contains("look-around") {
                Err(Some("look-around in a regular expression"))
            } else if text.contains("backreference") {
                Err(Some("a backreference in a regular expression"))
            } else {
                Err(None)
            }
        }
    }
}
