//! What a dialect is.
//!
//! A dialect is a crate for one configuration language. It implements [`Dialect`]: it recognises and translates files,
//! makes a model of a store's documents ([`IncrementalModel`]), renders errors, knows how its documents refer to secrets
//! ([`SecretSyntax`]), says how clients of its Admin API show who they are ([`AdminAccess`]), opens that API, describes
//! its original's plugins ([`plugin_fields`]), and writes metrics of the process ([`NodeMetrics`]). All Admin APIs over a
//! store work with one engine ([`Replica`]). The program hands a [`DialectSet`] to the parts that serve, check or follow
//! documents. Nothing above this crate, but the program's list and its flags, names a dialect.
//!
//! **What it is not**: it knows no single dialect, and it serves no calls.

mod access;
mod admin;
mod contract;
mod declared;
mod file;
mod http_client;
mod incremental;
mod node;
mod node_metrics;
mod plugin_check;
pub mod plugin_fields;
mod plugin_support;
mod replica;
mod routes;
mod secrets;
mod set;
mod warning;

pub use access::{AccessError, AdminAccess, KeyRole, RefusedReply, Rights, Scope, bearer};
pub use admin::{AdminApi, AdminContext, AdminOpening, Revisions, ThroughOwnApi};
pub use contract::Dialect;
pub use declared::{FileBacking, FileGuard};
pub use file::{FileForm, PreparedText, Purpose};
pub use http_client::{HttpAnswer, HttpCall, HttpClient};
pub use incremental::{IncrementalModel, SkippedDocument};
pub use node::{
    AddressHealth, CheckCounts, Counts, HealthSource, HealthState, Listener, Node, Statistics, TargetHealth,
    UpstreamHealth,
};
pub use node_metrics::{Exposition, NodeMetrics, WaitingEntries};
pub use plugin_check::PluginCheck;
pub use plugin_support::{PluginName, Support};
pub use replica::{
    ATTEMPTS, Replica, ReplicaState, StateRef, Version, WriteError, WriteFailure, WriteGuard, WriteOutcome,
    WritePlan, Writer,
};
pub use routes::{ForeignRoutes, RouteOwner};
pub use secrets::{SecretLocation, SecretStore, SecretSyntax, SecretTarget};
pub use set::{DEFAULT_ENVIRONMENT, DialectSet, ENVIRONMENTS};
pub use warning::warning;
pub use weir_model::DialectName;

/// The workspace of resources that name none.
pub const DEFAULT_WORKSPACE: &str = "default";
/// Stands for all workspaces.
pub const EVERYWHERE: &str = "*";
/// The prefix of documents that tell gateways to purge their caches: each is a
/// [`Purge`](weir_plugins::proxy_cache::Purge) as JSON, and is removed soon.
pub const PURGES: &str = "weir/purges/";
