//! Environments: where publications go, and which gateways serve them.

use super::{Labels, is_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The purpose of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnvironmentKind {
    /// Customers call it.
    Production,
    /// Everything else.
    #[default]
    NonProduction,
}

/// An environment. Gateways that say its name serve its documents.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// Its name, in keys and in the names of documents.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "is_default")]
    pub display_name: String,
    /// Its description.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Free labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Whether customers call it.
    pub kind: EnvironmentKind,
    /// Its place in the promotion path, lowest first.
    pub order: u32,
    /// The URLs that callers see, without the base path of an API.
    #[serde(skip_serializing_if = "is_default")]
    pub base_urls: Vec<String>,
    /// A publish needs an approval.
    #[serde(skip_serializing_if = "is_default")]
    pub protected: bool,
    /// Plugins before every API's own, as chains of a `weir.yaml` have them.
    #[serde(skip_serializing_if = "is_default")]
    pub chain: Vec<Value>,
    /// Values of `${NAME}` in backends.
    #[serde(skip_serializing_if = "is_default")]
    pub variables: BTreeMap<String, String>,
    /// The text of a severities file for lint.
    #[serde(skip_serializing_if = "is_default")]
    pub lint_rules: Option<String>,
    /// Findings of this level and above refuse a publish; absent: errors.
    #[serde(skip_serializing_if = "is_default")]
    pub lint_blocks: Option<crate::Level>,
}
