//! APIs, their versions with a draft, and revisions.

use super::{Labels, is_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Callers that may see that an API exists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Visibility {
    /// All people.
    #[default]
    Public,
    /// Every user who is signed in.
    SignedIn,
    /// Members of these groups.
    Groups(Vec<String>),
}

/// An API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Api {
    /// Its name, in paths and in the names of documents.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "is_default")]
    pub display_name: String,
    /// Its description.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Its logo in portals: the text of an SVG, or a PNG as `data:image/png;base64,…`, at most 64 KiB.
    #[serde(skip_serializing_if = "is_default")]
    pub logo: String,
    /// Free labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// The team that it belongs to.
    #[serde(skip_serializing_if = "is_default")]
    pub owner: String,
    /// The kind of the API.
    #[serde(skip_serializing_if = "is_default")]
    pub category: String,
    /// Callers that may see it.
    pub visibility: Visibility,
    /// Links by their titles.
    #[serde(skip_serializing_if = "is_default")]
    pub links: BTreeMap<String, String>,
    /// Whom to ask.
    #[serde(skip_serializing_if = "is_default")]
    pub contacts: Vec<String>,
}

/// How far a version's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LineState {
    /// Nothing of it is served.
    #[default]
    Draft,
    /// It is served somewhere.
    Published,
    /// It is served, and answers ask callers to leave.
    Deprecated,
    /// It is over: callers get 410.
    Retired,
}

/// The state of the changes of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DraftState {
    /// As the last revision.
    #[default]
    Clean,
    /// Changed since.
    Changed,
    /// A reviewer is to look at it.
    InReview,
    /// A reviewer has looked and wants other changes.
    ChangesAsked,
    /// Valid, for one hash.
    Approved,
}

/// Routes that a version was adopted from. They are as they were until a publication takes them over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// The dialect that they are written in.
    pub dialect: String,
    /// The service that they lead to.
    pub service: String,
    /// The documents in the store that go when they are taken over.
    pub documents: Vec<String>,
    /// The files that contain them; a publication cannot take them over from files.
    #[serde(skip_serializing_if = "is_default")]
    pub files: Vec<String>,
    /// SHA-256 of the documents when they were adopted. If they have changed, they are not taken over.
    #[serde(skip_serializing_if = "is_default")]
    pub hash: String,
    /// When a publication took them over, in seconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub taken_over: Option<u64>,
}

/// A version of an API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Version {
    /// The API.
    pub api: String,
    /// The version's text, such as `1.2.0`.
    pub version: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "is_default")]
    pub display_name: String,
    /// The news about it.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Free labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// How far its life has come.
    pub line: LineState,
    /// The working copy.
    pub draft: Draft,
    /// The routes that it was adopted from.
    #[serde(skip_serializing_if = "is_default")]
    pub source: Option<Source>,
    /// The number of its newest revision; 0: none.
    pub last_revision: u32,
    /// Ids of operations that revisions have and the draft has no longer, the oldest first.
    #[serde(skip_serializing_if = "is_default")]
    pub renames: Vec<Rename>,
    /// Seconds since 1970.
    pub created: u64,
    /// Seconds since 1970.
    pub modified: u64,
}

/// Operations that have another id in the draft than in a revision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rename {
    /// The newest revision that has the former ids.
    pub after: u32,
    /// The old ids, and the new ones that replace them.
    pub ids: BTreeMap<String, String>,
}

/// The working copy of a version: the content of its next revision.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Draft {
    /// SHA-256 of the uploaded text.
    pub spec: String,
    /// Groups of operations with one backend each. The first takes the operations that name none.
    #[serde(skip_serializing_if = "is_default")]
    pub components: Vec<Component>,
    /// The additions of people to operations, by the operations' ids.
    #[serde(skip_serializing_if = "is_default")]
    pub operations: BTreeMap<String, OperationSettings>,
    /// Plugins of all operations, as chains of a `weir.yaml` have them.
    #[serde(skip_serializing_if = "is_default")]
    pub chain: Vec<Value>,
    /// Its state.
    pub state: DraftState,
    /// The users who have changed it since the last revision.
    #[serde(skip_serializing_if = "is_default")]
    pub authors: BTreeSet<String>,
    /// The last review, as long as the draft has not changed since.
    #[serde(skip_serializing_if = "is_default")]
    pub review: Option<Review>,
}

/// Another person's look at a draft.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Review {
    /// The hash of the reviewed draft.
    pub hash: String,
    /// The requesting user.
    pub requested_by: String,
    /// The reason.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// When, in seconds since 1970.
    pub requested: u64,
    /// The reviewer.
    #[serde(skip_serializing_if = "is_default")]
    pub decided_by: String,
    /// The reason, or the requested changes.
    #[serde(skip_serializing_if = "is_default")]
    pub decision: String,
    /// When, in seconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub decided: u64,
}

/// A group of operations with one backend and one chain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Component {
    /// Its name, in the names of documents.
    pub name: String,
    /// The name of the backend; its address is the publication's.
    pub backend: String,
    /// Plugins of its operations.
    #[serde(skip_serializing_if = "is_default")]
    pub plugins: Vec<Value>,
    /// One route that takes all paths below this one, in place of one for each operation.
    #[serde(skip_serializing_if = "is_default")]
    pub prefix: Option<String>,
    /// The methods of that route; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub methods: Vec<String>,
    /// How often another try is made.
    #[serde(skip_serializing_if = "is_default")]
    pub retries: Option<u32>,
    /// Time-outs, as a service of a `weir.yaml` has them.
    #[serde(skip_serializing_if = "is_default")]
    pub timeouts: Option<Value>,
}

/// The additions of people to an operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OperationSettings {
    /// The component that it belongs to; absent: the first.
    #[serde(skip_serializing_if = "is_default")]
    pub component: Option<String>,
    /// Its own plugins.
    #[serde(skip_serializing_if = "is_default")]
    pub plugins: Vec<Value>,
    /// It is described, but not served.
    #[serde(skip_serializing_if = "is_default")]
    pub hidden: bool,
    /// The method and path that it had when it was last seen, to find it again when its id has changed.
    #[serde(skip_serializing_if = "is_default")]
    pub known_as: String,
}

/// How a revision was linted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LintSummary {
    /// Findings that are errors.
    pub errors: u32,
    /// Findings that are warnings.
    pub warnings: u32,
    /// All others.
    pub others: u32,
}

/// A snapshot of a version. It never changes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Revision {
    /// The API.
    pub api: String,
    /// The version.
    pub version: String,
    /// 1, 2, …
    pub number: u32,
    /// SHA-256 of its content: specification, components, operations and chain.
    pub hash: String,
    /// SHA-256 of the uploaded text.
    pub spec: String,
    /// As the draft's.
    pub components: Vec<Component>,
    /// As the draft's.
    #[serde(skip_serializing_if = "is_default")]
    pub operations: BTreeMap<String, OperationSettings>,
    /// As the draft's.
    #[serde(skip_serializing_if = "is_default")]
    pub chain: Vec<Value>,
    /// How it was linted.
    pub lint: LintSummary,
    /// The user who created it.
    pub author: String,
    /// The users who changed its draft since the previous revision.
    #[serde(skip_serializing_if = "is_default")]
    pub authors: BTreeSet<String>,
    /// The users who approved its draft in a review.
    #[serde(skip_serializing_if = "is_default")]
    pub reviewed_by: String,
    /// Why.
    #[serde(skip_serializing_if = "is_default")]
    pub note: String,
    /// Seconds since 1970.
    pub created: u64,
}

impl Draft {
    /// Notes that an author has changed it. What was said about it before is no longer about what it holds.
    pub fn changed_by(&mut self, author: &str) {
        self.state = DraftState::Changed;
        self.review = None;
        self.authors.insert(author.to_owned());
    }

    /// Notes that a revision holds what it holds. A review that is under way goes on: its content is the same.
    pub fn frozen(&mut self) {
        self.authors.clear();
        if matches!(self.state, DraftState::Changed | DraftState::Approved) {
            (self.state, self.review) = (DraftState::Clean, None);
        }
    }

    /// SHA-256 of what a revision of this draft would hold.
    pub fn hash(&self) -> String {
        crate::hash::of_value(&serde_json::json!({
            "spec": self.spec,
            "components": self.components,
            "operations": self.operations,
            "chain": self.chain,
        }))
    }

    /// The revision that this draft would become.
    pub fn revision(&self, api: &str, version: &str, number: u32) -> Revision {
        Revision {
            api: api.to_owned(),
            version: version.to_owned(),
            number,
            hash: self.hash(),
            spec: self.spec.clone(),
            components: self.components.clone(),
            operations: self.operations.clone(),
            chain: self.chain.clone(),
            authors: self.authors.clone(),
            reviewed_by: match (self.state, &self.review) {
                (DraftState::Approved, Some(review)) => review.decided_by.clone(),
                _ => String::new(),
            },
            ..Revision::default()
        }
    }
}
