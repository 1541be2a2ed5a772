//! An entry of the audit log: a call, and what it has changed. How entries are gathered and kept is not here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When, in milliseconds since the Unix epoch.
    pub time: u64,
    /// Who: a user's name, or `anonymous`.
    pub who: String,
    /// From which address; in a portal also by which personal token.
    pub from: String,
    /// Through which dialect.
    #[serde(alias = "door")]
    pub dialect: String,
    /// What: method and path.
    pub what: String,
    /// The status of the answer.
    pub status: u16,
    /// The revisions that the call has made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<u64>,
    /// Its changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// The change of a document by a call: only changed fields, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The document's key.
    pub document: String,
    /// The value before; `null`: it was not there.
    pub before: Value,
    /// The value after; `null`: it was removed.
    pub after: Value,
    /// It is too large to be recorded here; the history has it.
    #[serde(default, alias = "is_left_out", skip_serializing_if = "std::ops::Not::not")]
    pub is_omitted: bool,
}
