//! Weir's model: what a gateway must do, as plain validated values with the field's standard names.
//!
//! A dialect (the files of an original, or `weir.yaml`) translates its documents into a [`Model`];
//! `weir-snapshot` compiles a [`Model`] into what the data plane serves. `weir.yaml` is the model's own
//! text form, so converting any document to native is translate and print.
//!
//! **What it is not**: it holds no foreign vocabulary, no compiled form, no I/O, no clock and no async code.
//! All rules of order or precedence that depend on a dialect are resolved before a value arrives here.

pub mod diagnostic;
pub mod document;
pub mod json_path_cost;
pub mod ocsp;
pub mod overview;
pub mod secrets;
pub mod unix_time;
pub mod x509;
pub mod x509_crl;
pub mod x509_details;
pub mod x509_version_1;

mod acme;
mod certificate;
mod chain;
mod common_path;
mod consumer;
mod dialect_name;
mod dialect_settings;
mod health;
mod overlap;
mod path;
mod precedence;
mod predicate;
mod refusal;
mod route;
mod service;
mod stream;
mod traffic;
mod upstream;
mod validate;
mod within;

pub use acme::{Acme, AcmeChallenge, AcmeKey, ExternalAccount};
pub use certificate::{Certificate, ClientCertificate, KeyPair, OcspStapling, TlsVersion, UpstreamTls};
pub use chain::{ChainStep, ConsumerTable, PluginInstance, PluginRef, RefusalOverride};
pub use consumer::{Consumer, Credential};
pub use diagnostic::{Diagnostic, DocPath, Severity};
pub use dialect_name::DialectName;
pub use dialect_settings::{DefaultCharset, DialectSettings, RealIp};
pub use health::{
    ActiveChecks, ActiveHealthy, ActiveUnhealthy, HealthChecks, NoneHealthy, PassiveChecks, PassiveHealthy,
    PassiveUnhealthy, ProbeKind, RetryBudget,
};
pub use overlap::server_names_may_overlap;
pub use path::{HostPattern, InvalidPattern, PathPattern, TemplatePart};
pub use predicate::{Comparison, Operator, Predicate};
pub use refusal::{UnservablePlugins, remove_steps};
pub use route::{
    ForwardedHeaders, GatewayHeader, GatewayHeaderValue, HeaderMatch, PathJoin, PathRewrite, Respond, Route,
    RouteMatch, RouteTarget, UpstreamHost,
};
pub use service::{Service, Timeouts};
pub use stream::{Endpoint, MqttConnect, ProxyProtocol, StreamProtocol, StreamRoute};
pub use traffic::{
    AdaptiveConcurrency, Bandwidth, Hedge, Priority, SlowStart, StickySessions, ZoneAwareness,
};
pub use upstream::{BalancingAlgorithm, HashOn, KeepalivePool, Scheme, Target, Upstream};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Everything one gateway serves. Lists keep the order of the document that they came from. What there may be very
/// many of is shared between a model and the next one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Version of the text form; `1`.
    #[serde(default = "text_form_version")]
    pub weir: u32,
    /// The dialect of responses to calls that match no route.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialect: DialectName,
    /// APIs that calls are forwarded to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Arc<Service>>,
    /// Which calls go to which service, and what happens to them on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Arc<Route>>,
    /// Which connections and datagrams below HTTP go to which service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream_routes: Vec<StreamRoute>,
    /// Groups of targets that share the calls of a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<Arc<Upstream>>,
    /// Those who call, with their credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<Consumer>,
    /// Plugin instances that several chains use by `id`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<PluginInstance>,
    /// Plugin instances that replace a chain step's own for some consumers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumer_tables: Vec<ConsumerTable>,
    /// The chain for calls that match no route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<ChainStep>,
    /// What clients are shown over TLS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<Certificate>,
    /// Certificates that an authority signs on demand (RFC 8555).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acme: Vec<Acme>,
    /// What clients are shown that check over TLS whose a name is (RFC 8737). No document says so: they come and go
    /// while a certificate is being signed.
    #[serde(skip)]
    pub tls_challenges: Vec<Certificate>,
    /// Settings that hold for all routes of a dialect; at most one entry for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dialect_settings: Vec<DialectSettings>,
}

fn text_form_version() -> u32 {
    1
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Model {
    /// The settings of a dialect; `None`: the defaults.
    pub fn settings_of(&self, dialect: DialectName) -> Option<&DialectSettings> {
        self.dialect_settings.iter().find(|it| it.dialect == dialect)
    }

    /// Each instance of a plugin: the named ones, and those written in routes of both kinds.
    pub fn plugin_instances(&self) -> impl Iterator<Item = &PluginInstance> {
        let routes = self.routes.iter().flat_map(|route| &route.plugins);
        let streams = self.stream_routes.iter().flat_map(|route| &route.plugins);
        let inline = routes.chain(streams).filter_map(|step| match &step.plugin {
            Some(PluginRef::Inline(instance)) => Some(&**instance),
            _ => None,
        });
        self.plugins.iter().chain(inline)
    }

    /// Puts the resources of `other` behind those of `self`, as when several files are served at once.
    /// `self` keeps its dialect and its chain for unmatched calls unless it is empty.
    pub fn merge(&mut self, other: Model) {
        if self.routes.is_empty() && self.services.is_empty() && self.unmatched.is_empty() {
            self.dialect = other.dialect;
            self.unmatched = other.unmatched;
        }
        self.services.extend(other.services);
        self.routes.extend(other.routes);
        self.stream_routes.extend(other.stream_routes);
        self.upstreams.extend(other.upstreams);
        self.consumers.extend(other.consumers);
        self.plugins.extend(other.plugins);
        self.consumer_tables.extend(other.consumer_tables);
        self.certificates.extend(other.certificates);
        self.acme.extend(other.acme);
        self.tls_challenges.extend(other.tls_challenges);
        for table in other.dialect_settings {
            match self
                .dialect_settings
                .iter_mut()
                .find(|it| it.dialect == table.dialect)
            {
                Some(known) => known.add(table),
                None => self.dialect_settings.push(table),
            }
        }
    }
}
