//! The contract of a plugin's adapter: the trait that each implements, and the inputs and notes of its translation.
//! The list of all adapters is `catalogue.rs`.

use crate::document::{CostDecoration, Item, Service, Upstream};
use crate::schema::Schema;
use crate::settings::Settings;
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

    /// The shape of its configuration.
    fn shape(&self) -> &'static Schema;

    /// The shape of its metadata; `None`: Weir uses none.
    fn metadata_shape(&self) -> Option<&'static Schema> {
        None
    }

    /// Whether what it lacks may stand in the plugin's metadata, which are not at hand when a document is read. Then a
    /// document is not refused for it; calls that cannot be decided are.
    fn is_completed_by_metadata(&self, config: &Map<String, Value>) -> bool {
        let _ = config;
        false
    }

    /// The words for a violation of the shape, if the plugin has better ones.
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

    /// How consumers are recognised by it, if it authenticates.
    fn credentials(&self) -> Option<&dyn CredentialAdapter> {
        None
    }

    /// Whether it finds out who calls.
    fn authenticates(&self) -> bool {
        self.credentials().is_some()
    }

    /// Its name in Weir's catalogue.
    fn plugin(&self) -> &'static str;

    /// Its configuration for a route, if that depends on what is written about the route and its service; `None`: it
    /// does not.
    fn of_route(&self, config: &Value, documents: &dyn Fn() -> AgentDocuments) -> Option<Value> {
        let _ = (config, documents);
        None
    }

    /// The upstreams that its configuration brings or names, by the names that its translation gives their services.
    fn upstreams(&self, config: &Value) -> Vec<(String, PluginUpstreamRef)> {
        let _ = config;
        Vec::new()
    }

    /// Its configuration in Weir's catalogue, of one that has been checked. What is served in another way than
    /// APISIX would, or cannot be, is reported in `notes`.
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

/// The data about a route for policy agents.
#[derive(Debug)]
pub struct AgentDocuments {
    /// The route's document, with the plugins of all resources that it is made of.
    pub route: Value,
    /// The document of its service, if it has one.
    pub service: Option<Value>,
}

/// An upstream to which a plugin sends calls.
#[derive(Debug)]
pub enum PluginUpstreamRef {
    /// The resource with this id.
    Known(String),
    /// One that stands in the plugin's configuration.
    Own(Box<Upstream>),
}

/// The consumers' side of a plugin that authenticates.
pub trait CredentialAdapter: Sync {
    /// The shape of a consumer's configuration.
    fn shape(&self) -> &'static Schema;

    /// Checks what a shape cannot say.
    ///
    /// # Errors
    /// In APISIX's words.
    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let _ = config;
        Ok(())
    }

    /// The danger in a configuration that is served all the same: the field, and why.
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
    /// Its work comes after that of all others: on the request, it copies what is sent; on the response, it encodes the body.
    pub last: bool,
}

/// The context of a translation.
#[derive(Debug)]
pub struct PluginContext<'s> {
    /// The id of the instance; its counters belong to it.
    pub instance: &'s str,
    /// Metadata of plugins, by plugin name.
    pub metadata: &'s Map<String, Value>,
    /// The upstreams that stand by themselves.
    pub upstreams: &'s [Item<Upstream>],
    /// All services.
    pub services: &'s [Item<Service>],
    /// The GraphQL costs of services: decorations by their ids, by the ids of services.
    pub graphql_costs: &'s BTreeMap<String, BTreeMap<String, CostDecoration>>,
    /// Protocol Buffers definitions, by id.
    pub protos: &'s BTreeMap<String, String>,
    /// APISIX's `config.yaml`.
    pub settings: &'static Settings,
}

/// Remarks about a configuration.
#[derive(Debug, Default)]
pub struct Warnings(pub Vec<FieldRemark>);

/// A remark about a field of a configuration.
#[derive(Debug)]
pub struct FieldRemark {
    /// How bad it is.
    pub severity: Severity,
    /// The field.
    pub field: &'static str,
    /// The message.
    pub message: String,
}

impl Warnings {
    /// The field is served in another way than in APISIX.
    pub fn warn(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push(FieldRemark {
            severity: Severity::Warning,
            field,
            message: message.into(),
        });
    }

    /// The field is wrong.
    pub fn error(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push(FieldRemark {
            severity: Severity::Error,
            field,
            message: message.into(),
        });
    }

    /// The plugin is left out for the field: only for plugins that calls may pass without.
    pub fn left_out(&mut self, field: &'static str, what: &str) {
        self.0.push(FieldRemark {
            severity: Severity::Dropped,
            field,
            message: format!("{what} is not available in this version of Weir: calls are served without it"),
        });
    }

    /// The field cannot be served.
    pub fn not_available(&mut self, field: &'static str, what: &str) {
        self.error(field, format!("{what} is not available in this version of Weir"));
    }
}

/// The place of a plugin's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginLocation {
    /// On a route or what is merged with it.
    Request,
    /// On a consumer or credential, in which authentication plugins hold credentials.
    Consumer,
}
