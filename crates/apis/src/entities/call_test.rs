//! Tests of an API version: a call, and its expected outcome. They are kept with the version and are no part of a
//! revision, so a new test is asked of every publish that follows, and changes no hash.

use super::is_default;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A test of a version.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallTest {
    /// Its name.
    pub name: String,
    /// Its description.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// The environments that it is for; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub environments: Vec<String>,
    /// The call.
    pub request: TestRequest,
    /// The expected outcome. Missing fields are not checked.
    pub expected: Expected,
}

/// The call of a test.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TestRequest {
    /// The method; empty: GET.
    #[serde(skip_serializing_if = "is_default")]
    pub method: String,
    /// The path and query after the base path of the publication, such as `/pets?limit=10`.
    pub path: String,
    /// The host; empty: the first of the publication.
    #[serde(skip_serializing_if = "is_default")]
    pub host: String,
    /// Headers. Keys do not belong here: a test is kept as plain text.
    #[serde(skip_serializing_if = "is_default")]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(skip_serializing_if = "is_default")]
    pub body: String,
    /// The client's address; left out: 127.0.0.1.
    #[serde(skip_serializing_if = "is_default")]
    pub client: Option<IpAddr>,
    /// The call counts as one of this application, by its subscription in the environment.
    #[serde(skip_serializing_if = "is_default")]
    pub application: Option<String>,
    /// The call is taken for one of this consumer: an id or a user name.
    #[serde(skip_serializing_if = "is_default")]
    pub consumer: Option<String>,
}

/// The expected outcome of a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expected {
    /// The operation that takes it; empty: none of this API.
    #[serde(skip_serializing_if = "is_default")]
    pub operation: Option<String>,
    /// The consumer that it is taken for; empty: none.
    #[serde(skip_serializing_if = "is_default")]
    pub consumer: Option<String>,
    /// The application that it is taken for; empty: none.
    #[serde(skip_serializing_if = "is_default")]
    pub application: Option<String>,
    /// `forwarded`, `answered`, or `unknown` if it depends on another server.
    #[serde(skip_serializing_if = "is_default")]
    pub end: Option<String>,
    /// The status that the gateway answers with.
    #[serde(skip_serializing_if = "is_default")]
    pub status: Option<u16>,
    /// The plugin that refuses or answers the call; empty: none.
    #[serde(skip_serializing_if = "is_default")]
    pub plugin: Option<String>,
    /// The verdicts of plugins about the call, by their names, in the words of explanations, such as `continues`.
    #[serde(skip_serializing_if = "is_default")]
    pub verdicts: BTreeMap<String, String>,
    /// A server that it may go to, as `host:port`.
    #[serde(skip_serializing_if = "is_default")]
    pub target: Option<String>,
}
