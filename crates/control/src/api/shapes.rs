//! The answers of calls, as types: the OpenAPI document is made of them, and a test reads real answers as these.

pub mod lifecycle;

use crate::access::{AuditedChange, RoleAssignment};
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
    /// The fault, and the remedy.
    pub detail: String,
    /// The faults of a document, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<DocumentError>,
    /// The last change, if another version is there than the one that `If-Match` names (412), and if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<super::problem::LastChange>,
}

/// A fault in a document.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DocumentError {
    /// Where, such as `routes[0].paths`.
    pub path: String,
    /// The message, with the expected value.
    pub message: String,
}

/// A list.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct List<T> {
    /// Its items.
    pub items: Vec<T>,
}

/// A native resource, as in a `weir.yaml`.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Resource(pub Map<String, Value>);

/// A page of native resources.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ResourcePage {
    /// The resources, by name.
    pub items: Vec<Resource>,
    /// The `after` of the next page; `null`: this is the last one.
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
    /// The reason.
    pub note: String,
    /// The documents that it changed.
    pub changes: Vec<CommitChange>,
}

/// The change of a document in a commit.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CommitChange {
    /// The document's key.
    pub document: String,
    /// The kind of the change.
    pub change: ChangeKind,
}

/// The change of a document.
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
    /// The value before; `null`: it was not there.
    pub before: Value,
    /// The value after; `null`: it is gone.
    pub after: Value,
}

/// The outcome of a roll back, or of a dry run of it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RollbackResult {
    /// The store's revision.
    pub revision: u64,
    /// The changes.
    pub changes: Vec<DocumentChange>,
}

/// The outcome of an import, or of a dry run of it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ImportResult {
    /// The service's name.
    pub service: String,
    /// Whether there was none.
    pub is_new: bool,
    /// Its routes.
    pub routes: ImportedRoutes,
    /// Operations without routes, such as `TRACE /pets`: the gateway answers their methods itself.
    pub skipped: Vec<String>,
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
    /// The user's rights.
    pub rights: Vec<RoleAssignment>,
    /// Since when there is this user, in seconds since the Unix epoch.
    pub created: u64,
    /// Whether the user has a token.
    pub has_token: bool,
    /// Whether the user can log in with a password.
    pub has_password: bool,
    /// The version, as `If-Match` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// A user who has logged in.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LoggedIn {
    /// The user's name.
    pub name: String,
    /// The user's rights.
    pub rights: Vec<RoleAssignment>,
    /// When the session ends at the latest, in seconds since the Unix epoch.
    pub ends: u64,
}

/// A user who has logged out.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LoggedOut {
    /// The address for logging out of the identity provider as well; `null`: it has none.
    pub provider: Option<String>,
}

/// How people may log in.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LoginOptions {
    /// Whether there are users. Without users, callers of this machine may do everything.
    pub has_users: bool,
    /// Whether a user can log in with a password.
    pub password: bool,
    /// The identity providers.
    pub providers: Vec<LoginProvider>,
}

/// An identity provider to log in with.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LoginProvider {
    /// Its name in paths.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
}

/// An identity provider, without its secret.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct IdentityProvider {
    /// Its name in paths.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Its issuer.
    pub issuer: String,
    /// The id of this Weir at the provider.
    pub client_id: String,
    /// Whether there is a secret for it.
    pub has_client_secret: bool,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The address of this Weir for browsers; `null`: as the browser says.
    pub base_url: Option<String>,
    /// The claim that holds the name of the user.
    pub name_claim: String,
    /// The claim that holds the groups.
    pub groups_claim: String,
    /// The rights of members of groups.
    pub mappings: Vec<GroupRoles>,
    /// The version, as `If-Match` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// The rights of members of a group.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct GroupRoles {
    /// The group.
    pub group: String,
    /// The rights.
    pub rights: Vec<RoleAssignment>,
}

/// The caller.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CurrentUser {
    /// The name under which changes are recorded.
    pub name: String,
    /// How the caller shows who it is: `none` (there are no users), `key`, `token`, `personal-token`, `password`, or
    /// `openid:PROVIDER`.
    pub method: String,
    /// The caller's rights; `null`: everything, since there are no users.
    pub rights: Option<Vec<RoleAssignment>>,
    /// Whether the user can log in with a password.
    pub has_password: bool,
    /// Whether the user is kept here, and not by an identity provider.
    pub is_stored: bool,
    /// The session; `null`: the call shows none.
    pub session: Option<SessionState>,
}

/// Whether the caller may make a call.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PermittedOperation {
    /// The call's `operationId`.
    pub operation: String,
    /// The right that it requires.
    pub action: String,
    /// Whether the caller may make it somewhere.
    pub allowed: bool,
    /// Where: `everything`, or a kind and a name such as `environment:test`.
    pub scopes: Vec<String>,
    /// Why the caller may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A session of the caller.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SessionState {
    /// Its id.
    pub id: String,
    /// How the user has logged in.
    pub method: String,
    /// When it was begun, in seconds since the Unix epoch.
    pub created: u64,
    /// When it was last used, to the minute.
    pub last_used: u64,
    /// When it ends if it is not used any more.
    pub ends: u64,
    /// From which address it was begun.
    pub address: String,
    /// With which program.
    pub agent: String,
    /// Whether this call shows it.
    pub is_own: bool,
}

/// A personal token of the caller.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TokenState {
    /// Its id.
    pub id: String,
    /// Its purpose.
    pub name: String,
    /// The limit of its rights; `null`: all that its user may.
    pub rights: Option<Vec<RoleAssignment>>,
    /// When it was made, in seconds since the Unix epoch.
    pub created: u64,
    /// When it was last used, to the hour; `null`: never.
    pub last_used: Option<u64>,
    /// When it ends.
    pub ends: u64,
}

/// A personal token that was made.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewToken {
    /// The resource itself.
    #[serde(flatten)]
    pub state: TokenState,
    /// The token. It is shown this once.
    pub token: IssuedToken,
}

/// A secret that is shown once.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct IssuedToken(pub String);

/// A user who was made.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NewUser {
    /// The name.
    pub name: String,
    /// The user's rights.
    pub rights: Vec<RoleAssignment>,
    /// The token. It is shown only once; a dry run creates none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A line of the audit log.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// When, in milliseconds since the Unix epoch.
    pub time: u64,
    /// The user's name, `anonymous` or `unknown`.
    pub who: String,
    /// From which address.
    pub from: String,
    /// Through which API.
    pub dialect: String,
    /// What: method and path.
    pub what: String,
    /// The status of the answer.
    pub status: u16,
    /// The revisions of the store that the call has made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<u64>,
    /// Its changes, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<AuditedChange>,
}

/// The gateways and the newest configuration.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct GatewayList {
    /// The newest revision.
    pub revision: u64,
    /// The hash of the configuration.
    pub hash: String,
    /// The gateways.
    pub items: Vec<GatewayState>,
}

/// The state of a gateway.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct GatewayState {
    /// Its name.
    pub name: String,
    /// The address for calls to it.
    pub address: String,
    /// The version of its program.
    pub version: String,
    /// `serving`, `last-known-good`, `store-unreachable` or `offline`.
    pub state: String,
    /// Whether it is to be drained: it drains after its next report.
    pub drain: bool,
    /// Whether it drains, by its last report: then it is not ready.
    pub draining: bool,
    /// The revision that it serves.
    pub revision: u64,
    /// The hash of the configuration that it serves.
    pub hash: String,
    /// How many documents it had to leave out.
    pub skipped: u64,
    /// The environments whose documents it serves.
    pub environments: Vec<String>,
    /// Its lag in commits.
    pub lag_revisions: u64,
    /// Its lag in milliseconds.
    pub lag_ms: u64,
    /// How long it has been running, in seconds; `null`: it does not say.
    pub uptime_s: Option<u64>,
    /// Its processor time between its last two reports, in thousandths of a core; `null`: it does not say.
    pub cpu_permille: Option<u64>,
    /// The memory that it holds, in bytes; `null`: it does not say.
    pub memory_bytes: Option<u64>,
    /// When its last report arrived, in seconds since the Unix epoch.
    pub last_seen: u64,
    /// Milliseconds since its last report.
    pub silent_ms: u64,
}

#[cfg(test)]
mod tests;
