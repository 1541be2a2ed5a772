//! Approvals: the agreement of a second person to one exact content.

use super::{Runtime, is_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The step that needs an agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalKind {
    /// A publish of a revision.
    #[default]
    Publish,
    /// A revision's way into the next environment.
    Promotion,
}

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalState {
    /// It is not decided.
    #[default]
    Open,
    /// Granted.
    Granted,
    /// Refused.
    Refused,
    /// The person who requested it has withdrawn it.
    Withdrawn,
    /// The content has changed since the request.
    Outdated,
}

/// A person's agreement to one exact content.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Approval {
    /// Its name; made by the gateway's API.
    pub id: String,
    /// Its subject.
    pub kind: ApprovalKind,
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    pub publication: String,
    /// The hash that it is for.
    pub hash: String,
    /// The runtime that it is for; absent: the one that the publication has.
    #[serde(skip_serializing_if = "is_default")]
    pub runtime: Option<Runtime>,
    /// Its state.
    pub state: ApprovalState,
    /// The requesting user.
    pub requested_by: String,
    /// The authors of the content: of all changes since the revision that is published there.
    #[serde(skip_serializing_if = "is_default")]
    pub authors: BTreeSet<String>,
    /// Why.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// The user who decided.
    #[serde(skip_serializing_if = "is_default")]
    pub decided_by: String,
    /// Why so.
    #[serde(skip_serializing_if = "is_default")]
    pub decision: String,
    /// When something was published with it, in seconds since 1970: that is once.
    #[serde(skip_serializing_if = "is_default")]
    pub used: Option<u64>,
    /// The changes that it would make.
    #[serde(skip_serializing_if = "is_default")]
    pub diff: Option<Value>,
    /// Seconds since 1970.
    pub created: u64,
}
