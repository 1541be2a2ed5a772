//! What calls of API management answer, if it is more or less than the stored document: computed fields are added, secrets
//! are left out. Calls that answer a document as it is stored have its type (`weir_apis::entities`).

use crate::api::apis::conflicts::Conflict;
use crate::api::fleet::Rollout;
use crate::api::shapes::{DocumentChange, ProblemShape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weir_apis::Level;
use weir_apis::call_tests::TestReport;
use weir_apis::diff::{OperationChange, PlanChange};
use weir_apis::entities::{
    Approval, CredentialKind, DraftState, LineState, LintSummary, Publication, PublicationState, Review,
    Runtime, Subscription, TokenKey, Version,
};

/// A version, in a list of the versions of all APIs.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct VersionSummary {
    /// The API.
    pub api: String,
    /// The version's text, such as `1.2.0`.
    pub version: String,
    /// Its name for people.
    pub display_name: String,
    /// How far its life has come.
    pub line: LineState,
    /// The working copy.
    pub draft: DraftSummary,
    /// The number of its newest revision; 0: none.
    pub last_revision: u32,
    /// Seconds since 1970.
    pub created: u64,
    /// Seconds since 1970.
    pub modified: u64,
}

/// The working copy of a version, without its content.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DraftSummary {
    /// Its result.
    pub state: DraftState,
    /// SHA-256 of its content.
    pub hash: String,
    /// The last review; `null`: there was none.
    pub review: Option<Review>,
}

/// A version with the operations and lint findings of its draft.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct VersionResponse {
    /// The version.
    #[serde(flatten)]
    pub version: Version,
    /// SHA-256 of the draft's content.
    pub hash: String,
    /// The format of the document, such as `OpenAPI 3.1`.
    pub format: String,
    /// The operations of the draft.
    pub operations: Vec<OperationResponse>,
    /// The lint findings with its own severities.
    pub findings: Vec<FindingResponse>,
}

/// A version whose draft was changed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DraftResponse {
    /// The version as it is now.
    #[serde(flatten)]
    pub version: VersionResponse,
    /// What changed.
    pub diff: DiffResponse,
    /// Ids of operations with settings that a new document no longer has. The settings come back with the operation.
    pub gone: Vec<String>,
}

/// A version that was made of routes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AdoptionResponse {
    /// The version.
    #[serde(flatten)]
    pub version: VersionResponse,
    /// The runtime with which a publication sends the same calls to the same backend.
    pub runtime: Runtime,
    /// The names of the routes.
    pub routes: Vec<String>,
    /// Differences between the publication and the routes.
    pub notes: Vec<String>,
}

/// An operation of a draft.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct OperationResponse {
    /// Its id.
    pub id: String,
    /// Its method, in capital letters.
    pub method: String,
    /// Its path, as the document has it.
    pub path: String,
    /// What it does.
    pub summary: Option<String>,
    /// Whether the document calls it deprecated.
    pub deprecated: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// The component that it belongs to.
    pub component: Option<String>,
    /// Whether portals do not show it.
    pub hidden: bool,
}

/// A finding of lint.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FindingResponse {
    /// The rule.
    pub rule: String,
    /// How much it matters.
    pub level: Level,
    /// The fault and the expected value.
    pub message: String,
    /// The place in the document, such as `paths./pets.get`.
    pub path: String,
    /// The line in the uploaded text, from 1; `null`: there is none.
    pub line: Option<usize>,
    /// The column in that line, from 1.
    pub column: Option<usize>,
}

/// The lint findings.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LintResponse {
    /// How many findings there are of each level.
    pub summary: LintSummary,
    /// The findings.
    pub findings: Vec<FindingResponse>,
}

/// The changes between two documents.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DiffResponse {
    /// Whether a change breaks callers.
    pub breaking: bool,
    /// The changed operations.
    pub operations: Vec<OperationChange>,
    /// All of it, in lines for people.
    pub text: String,
}

/// The review state and the reviews of a draft.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ReviewResponse {
    /// Its result.
    pub state: DraftState,
    /// SHA-256 of its content.
    pub hash: String,
    /// The users who changed it since the last revision.
    pub authors: BTreeSet<String>,
    /// The last review, as long as the draft has not changed since.
    pub review: Option<Review>,
}

/// A publication, and how far it has come.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PublicationResponse {
    /// The publication.
    #[serde(flatten)]
    pub publication: Publication,
    /// Whether the draft differs from the published revision.
    pub differs_from_draft: bool,
    /// The gateways that serve it.
    pub rollout: Rollout,
}

/// A publication after a step of its life.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct StepResponse {
    /// The publication.
    #[serde(flatten)]
    pub publication: Publication,
    /// `true`: all was as it should be already, and nothing was committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<bool>,
}

/// The result of a publish, a promotion or a rollback, real or in a dry run.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PublishResponse {
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    pub publication: String,
    /// The revision that is served.
    pub revision: u32,
    /// Its hash.
    pub hash: String,
    /// Whether it is served.
    pub state: PublicationState,
    /// The revision of the store that it made; `null`: nothing was changed, as by a dry run.
    pub commit: Option<u64>,
    /// `true`: a rollback to the published revision, which makes no commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<bool>,
    /// Whether a change breaks callers.
    pub breaking: bool,
    /// The changes, in lines for people.
    pub text: String,
    /// What changes.
    pub diff: PublishDiff,
    /// Calls that routes of others take as well.
    pub conflicts: Vec<Conflict>,
    /// How the document was linted.
    pub lint: PublishLint,
    /// Refusals that were overridden with `force`.
    pub forced: Vec<String>,
    /// The result of the version's tests; `null`: it has none.
    pub tests: Option<TestReport>,
}

/// A refused publish. A dry run also lists the changes if it could compute them.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PublishRefusal {
    /// What refuses it first.
    #[serde(flatten)]
    pub problem: ProblemShape,
    /// The outcome, if it were not refused; absent: it is no dry run, or a step before refuses it.
    #[serde(flatten)]
    pub outcome: Option<PublishResponse>,
    /// All that refuses it, in the order of the steps; the first is this problem.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<ProblemShape>,
}

/// The changes of a publish.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PublishDiff {
    /// Operations.
    pub operations: Vec<OperationChange>,
    /// Documents of gateways, each with its key and its change.
    pub documents: Vec<DocumentChange>,
    /// Plans that open something else.
    pub plans: Vec<PlanChange>,
}

/// How many findings a publish goes past.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PublishLint {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
}

/// A new subscription.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SubscriptionResponse {
    /// The subscription.
    #[serde(flatten)]
    pub subscription: Subscription,
    /// Its credential with its secret: only if it is accepted immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialResponse>,
}

/// A credential, without the fields that only gateways need.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CredentialResponse {
    /// Its name.
    pub id: String,
    /// The subscription.
    pub subscription: String,
    /// What kind it is.
    pub kind: CredentialKind,
    /// Its identity in calls: a user name, a client id, or the SHA-256 of a certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first characters of the key, to recognise it.
    pub prefix: String,
    /// The public key, for tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt: Option<TokenKey>,
    /// Seconds since 1970; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// When it was revoked, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
    /// Whether it is a trial key, which expires soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<bool>,
    /// The credential that it takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Seconds since 1970.
    pub created: u64,
    /// The day of its last use, in seconds since 1970; only in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<u64>,
    /// Its secret: only in the answer that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A server that gets events.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct HookResponse {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its URL.
    pub url: String,
    /// The secret that calls are signed with.
    pub secret: HookSecret,
    /// The kinds of events, such as `publication.published` or `subscription.*`; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Only events about these APIs; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apis: Option<Vec<String>>,
    /// It gets nothing for the time being.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// The application that it belongs to; absent: it is the operators'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
}

/// The secret of a hook in the answer that made it; afterwards only whether there is one.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HookSecret {
    /// The secret.
    Shown(String),
    /// Whether there is one.
    IsSet(bool),
}

/// An approval in a list.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResponse {
    /// The approval.
    #[serde(flatten)]
    pub approval: Approval,
    /// Whether the draft has changed since.
    pub differs_from_draft: bool,
}
