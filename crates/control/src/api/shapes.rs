//! What calls answer, as types: the OpenAPI document is made of them, and a test reads real answers as these.

use crate::access::WrittenRight;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A refusal (RFC 9457). `type` is stable, `detail` is for people.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemShape {
    /// `urn:weir:problem:…`.
    pub r#type: String,
    /// The status in words.
    pub title: String,
    /// The status.
    pub status: u16,
    /// What is wrong, and what to do.
    pub detail: String,
    /// What is wrong in a document, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
}

/// What is wrong in a document.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// Where, such as `routes[0].paths`.
    pub path: String,
    /// What was expected.
    pub message: String,
}

/// A list.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct List<T> {
    /// Its items.
    pub items: Vec<T>,
}

/// A native resource: what stands in a `weir.yaml` for it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Resource(pub Map<String, Value>);

/// A page of native resources.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ResourcePage {
    /// The resources, by name.
    pub items: Vec<Resource>,
    /// What `after` is to be for the next page; `null`: this is the last one.
    pub next: Option<String>,
}

/// A commit.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Commit {
    /// The store's revision that it made.
    pub revision: u64,
    /// When, in seconds since the Unix epoch.
    pub time: u64,
    /// Who.
    pub author: String,
    /// What for.
    pub note: String,
    /// The documents that it changed.
    pub changes: Vec<CommitChange>,
}

/// What a commit did to a document.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CommitChange {
    /// The document's key.
    pub document: String,
    /// What was done.
    pub change: ChangeKind,
}

/// What was done to a document.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It was another one.
    Changed,
    /// It is gone.
    Removed,
}

/// A document before and after.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DocumentChange {
    /// The document's key.
    pub document: String,
    /// What it was; `null`: it was not there.
    pub before: Value,
    /// What it is; `null`: it is gone.
    pub after: Value,
}

/// What a roll back did, or would do.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RollbackResult {
    /// The store's revision.
    pub revision: u64,
    /// What was changed.
    pub changes: Vec<DocumentChange>,
}

/// What an import did, or would do.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportResult {
    /// The service's name.
    pub service: String,
    /// Whether there was none.
    pub is_new: bool,
    /// Its routes.
    pub routes: ImportedRoutes,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// Names of routes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportedRoutes {
    /// Those that were not there.
    pub created: Vec<String>,
    /// Those that were others.
    pub changed: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
}

/// A user.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "User")]
pub struct ListedUser {
    /// The name under which changes are recorded.
    pub name: String,
    /// What the user may do.
    pub rights: Vec<WrittenRight>,
    /// Since when there is this user, in seconds since the Unix epoch.
    pub created: u64,
}

/// A user who was made.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewUser {
    /// The name.
    pub name: String,
    /// What the user may do.
    pub rights: Vec<WrittenRight>,
    /// The token. It is shown this once; a dry run makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A line of the audit log.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// When, in milliseconds since the Unix epoch.
    pub time: u64,
    /// Who: a user's name, `anonymous` or `unknown`.
    pub who: String,
    /// From which address.
    pub from: String,
    /// Through which API.
    pub dialect: String,
    /// What: method and path.
    pub what: String,
    /// The status of the answer.
    pub status: u16,
}

/// The gateways, and what the newest configuration is.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct GatewayList {
    /// The newest revision.
    pub revision: u64,
    /// The hash of the configuration.
    pub hash: String,
    /// The gateways.
    pub items: Vec<GatewayState>,
}

/// How it stands with a gateway.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct GatewayState {
    /// Its name.
    pub name: String,
    /// Where it takes calls.
    pub address: String,
    /// The version of its program.
    pub version: String,
    /// `serving`, `last-known-good`, `store-away`, `draining` or `away`.
    pub state: String,
    /// The revision that it serves.
    pub revision: u64,
    /// The hash of what it serves.
    pub hash: String,
    /// How many documents it had to leave out.
    pub left_out: u64,
    /// How many commits it is behind.
    pub lag_revisions: u64,
    /// How long it is behind, in milliseconds.
    pub lag_ms: u64,
    /// When it was last heard of, in seconds since the Unix epoch.
    pub last_seen: u64,
    /// For how long nothing was heard of it, in milliseconds.
    pub silent_ms: u64,
}
