//! Products: chosen operations of several publications, with plans of their own.

use super::{Labels, is_default};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a product is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProductState {
    /// It is not: its subscribers are not known to gateways.
    #[default]
    Unpublished,
    /// It is.
    Published,
}

/// Chosen operations of several publications, with plans of their own. A subscription to a product has one key for all of
/// them, and one set of limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Product {
    /// Its name.
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
    /// The publications, as `API/VERSION/ENVIRONMENT`, each with the ids of the chosen operations; an empty list: all.
    pub publications: BTreeMap<String, Vec<String>>,
    /// Whether it is offered.
    pub state: ProductState,
}

impl Product {
    /// The `owned_by` of documents that belong to it, and its name among things to render.
    pub fn id(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// The environments that it has publications in.
    pub fn environments(&self) -> std::collections::BTreeSet<String> {
        let names = self.publications.keys().filter_map(|it| it.rsplit('/').next());
        names.map(str::to_owned).collect()
    }
}

/// The prefix of the names of products among things to render.
pub const PREFIX: &str = "products/";
