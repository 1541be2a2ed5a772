//! The answers of the catalogue's calls, as types: the OpenAPI document is made of them.

use crate::catalogue::Hit;
use crate::markdown::Node;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct List<T> {
    /// Its items.
    pub items: Vec<T>,
}

/// A link.
#[derive(Serialize, JsonSchema)]
pub struct TitledLink {
    /// Its text.
    pub title: String,
    /// Its target.
    pub to: String,
}

/// The portal.
#[derive(Serialize, JsonSchema)]
pub struct PortalInfo {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The address of its logo.
    pub logo: Option<String>,
    /// Its URL.
    pub url: String,
    /// The text of its first page.
    pub home: Vec<Node>,
    /// APIs that the first page names.
    pub featured: Vec<Card>,
    /// Pages that the menu names.
    pub menu: Vec<TitledLink>,
    /// Links at the end of each page.
    pub footer: Vec<TitledLink>,
    /// `open`, `invited` or `closed`.
    pub sign_up: String,
    /// Identity providers for signing in.
    pub providers: Vec<ProviderLine>,
}

/// An identity provider for signing in.
#[derive(Serialize, JsonSchema)]
pub struct ProviderLine {
    /// Its name in paths.
    pub name: String,
    /// Its name for people.
    pub title: String,
}

/// An API in the catalogue.
#[derive(Serialize, JsonSchema)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// A line about it.
    pub summary: String,
    /// The address of its logo.
    pub logo: Option<String>,
    /// Its newest version.
    pub version: String,
    /// How many versions there are.
    pub versions: usize,
    /// Its category.
    pub category: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// How callers are recognised: `keyless`, `key`, …
    pub security: Vec<String>,
    /// Whether the newest version is to go.
    pub is_deprecated: bool,
    /// How many operations it has.
    pub operations: usize,
}

/// The catalogue and its filters.
#[derive(Serialize, JsonSchema)]
pub struct Cards {
    /// The APIs.
    pub items: Vec<Card>,
    /// All categories.
    pub categories: Vec<String>,
    /// All labels, as `key:value`.
    pub labels: Vec<String>,
    /// All kinds of security.
    pub security: Vec<String>,
}

/// The results of a search.
#[derive(Serialize, JsonSchema)]
pub struct SearchResponse {
    /// The hits, the best first.
    pub items: Vec<Hit>,
}

/// An API.
#[derive(Serialize, JsonSchema)]
pub struct ApiDetail {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: Vec<Node>,
    /// The address of its logo.
    pub logo: Option<String>,
    /// Its category.
    pub category: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Links.
    pub links: Vec<TitledLink>,
    /// Whom to ask.
    pub contacts: Vec<String>,
    /// Its pages.
    pub pages: Vec<TitledLink>,
    /// Its versions, the newest first.
    pub versions: Vec<VersionLine>,
}

/// A version in a list.
#[derive(Serialize, JsonSchema)]
pub struct VersionLine {
    /// The version.
    pub version: String,
    /// `published` or `deprecated`.
    pub state: String,
    /// Seconds since 1970.
    pub created: u64,
}

/// A version with its operations.
#[derive(Serialize, JsonSchema)]
pub struct VersionDetail {
    /// The API's name.
    pub api: String,
    /// The version.
    pub version: String,
    /// The title of the document.
    pub title: String,
    /// `published` or `deprecated`.
    pub state: String,
    /// The document's description.
    pub description: Vec<Node>,
    /// The news about it.
    pub news: Vec<Node>,
    /// The environments in which it is published.
    pub places: Vec<DeploymentLine>,
    /// Its plans.
    pub plans: Vec<PlanCard>,
    /// Tags in the order of the document.
    pub tags: Vec<TagLine>,
    /// Its operations.
    pub operations: Vec<OperationLine>,
}

/// An environment in which a version is published.
#[derive(Serialize, JsonSchema)]
pub struct DeploymentLine {
    /// `API/VERSION/ENVIRONMENT`.
    pub publication: String,
    /// The environment.
    pub environment: String,
    /// Its title.
    pub title: String,
    /// Whether customers call it.
    pub is_production: bool,
    /// The address for calls; `null`: it is unknown.
    pub base_url: Option<String>,
    /// The path that comes before those of all operations; it is in `base_url`, too.
    pub base_path: String,
    /// The portal's notice about its end.
    pub deprecation: Option<DeprecationNotice>,
}

/// The portal's notice about the end of a version.
#[derive(Serialize, JsonSchema)]
pub struct DeprecationNotice {
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// When it ends.
    pub sunset: Option<u64>,
    /// A page about it.
    pub link: Option<String>,
    /// Its successor.
    pub successor: Option<String>,
}

/// A plan.
#[derive(Serialize, JsonSchema)]
pub struct PlanCard {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: Vec<Node>,
    /// How callers are recognised.
    pub security: String,
    /// Limits.
    pub limits: Vec<PlanLimit>,
    /// The operations that it opens; empty: all.
    pub operations: Vec<String>,
    /// Whether subscriptions need approval.
    pub needs_approval: bool,
    /// Whether subscribers give a reason: `none`, `asked` or `required`.
    pub comment: String,
    /// Questions that subscribers answer, as a JSON Schema of a map; `null`: there are none.
    pub form: Option<serde_json::Value>,
    /// The conditions to agree to.
    pub conditions: Vec<Node>,
    /// Their revision.
    pub conditions_revision: u32,
    /// Its price, in words.
    pub price: String,
    /// Why one cannot subscribe; `null`: one can.
    pub refused: Option<String>,
}

/// How many calls a subscriber may make.
#[derive(Serialize, JsonSchema)]
pub struct PlanLimit {
    /// Calls.
    pub count: u64,
    /// `second`, `minute`, `hour`, `day`, `week` or `month`.
    pub per: String,
}

/// A tag of a document.
#[derive(Serialize, JsonSchema)]
pub struct TagLine {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
}

/// An operation in a list.
#[derive(Serialize, JsonSchema)]
pub struct OperationLine {
    /// Its id.
    pub id: String,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// A line about it.
    pub summary: String,
    /// Its first tag.
    pub tag: String,
    /// Whether it is to go.
    pub is_deprecated: bool,
}

/// An operation, in the form of OpenAPI 3.1, with the schemas that it names.
#[derive(Serialize, JsonSchema)]
pub struct OperationDetail {
    /// Its id.
    pub id: String,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// A line about it.
    pub summary: String,
    /// Whether it is to go.
    pub is_deprecated: bool,
    /// Its description.
    pub description: Vec<Node>,
    /// Parameters, body, answers, callbacks.
    pub value: Map<String, Value>,
    /// The schemas that it names; others can be requested by name.
    pub schemas: Map<String, Value>,
}

/// A schema, with those that it names.
#[derive(Serialize, JsonSchema)]
pub struct Schemas {
    /// By name.
    pub schemas: Map<String, Value>,
}

/// A page.
#[derive(Serialize, JsonSchema)]
pub struct PageDetail {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: Vec<Node>,
    /// The API that it belongs to.
    pub api: Option<String>,
}

/// The differences between two versions.
#[derive(Serialize, JsonSchema)]
pub struct VersionChanges {
    /// The older version.
    pub from: String,
    /// The newer one.
    pub to: String,
    /// By operation.
    pub operations: Vec<ChangedOperation>,
}

/// The differences of an operation.
#[derive(Serialize, JsonSchema)]
pub struct ChangedOperation {
    /// Method and path.
    pub operation: String,
    /// In words.
    pub changes: Vec<ChangeLine>,
}

/// A difference.
#[derive(Serialize, JsonSchema)]
pub struct ChangeLine {
    /// In words.
    pub text: String,
    /// Whether callers have to change something.
    pub is_breaking: bool,
}
