//! The content of an explanation: values that the API answers with and the command prints.

use super::chain::PluginStep;
use super::verdict::CallEnd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_model::DialectName;
use weir_plugin::AuthFailure;

/// The explanation of a call.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Explanation {
    /// The call: method and URL.
    pub call: String,
    /// The client's address.
    pub client: String,
    /// The route that takes it; `null`: none does.
    pub route: Option<MatchedRoute>,
    /// A status that the gateway answers with before any plugin works, and why.
    pub answer: Option<GatewayResponse>,
    /// Routes that nearly took it, the nearest first.
    pub others: Vec<NearMissRoute>,
    /// The plugins, in the order in which they process the request.
    pub plugins: Vec<PluginStep>,
    /// Positions in `plugins` (from 1), in the order in which they process the response.
    pub response_order: Vec<usize>,
    /// The consumer that the call is taken for.
    pub consumer: Option<String>,
    /// The end of the call.
    pub end: CallEnd,
    /// Why the first credential was not accepted.
    #[serde(skip)]
    pub auth_failure: Option<AuthFailure>,
    /// The labels of the route.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
}

/// The route that takes a call.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct MatchedRoute {
    /// Its name.
    pub name: String,
    /// Its dialect.
    pub dialect: DialectName,
    /// Its location: a file, and a line if that is known.
    pub at: Option<String>,
    /// The conditions by which it matches the call.
    pub by: String,
    /// The target of the call.
    pub to: String,
    /// The name of the service.
    pub service: Option<String>,
    /// The server, if the service names it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The upstream and its targets; `null`: the service names a server itself.
    pub upstream: Option<TargetList>,
}

/// An upstream with its targets.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct TargetList {
    /// The upstream's name.
    pub name: String,
    /// Its targets.
    pub targets: Vec<ExplainedTarget>,
}

/// A target.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct ExplainedTarget {
    /// The address: `host:port`.
    pub address: String,
    /// Its weight.
    pub weight: u32,
}

/// An answer of the gateway itself.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct GatewayResponse {
    /// The status.
    pub status: u16,
    /// The dialect that it is written in.
    pub dialect: DialectName,
    /// Why.
    pub reason: String,
}

/// A route that nearly took a call.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct NearMissRoute {
    /// Its name.
    pub name: String,
    /// Its dialect.
    pub dialect: DialectName,
    /// Its location: a file, and a line if that is known.
    pub at: Option<String>,
    /// Its conditions.
    pub by: String,
    /// Why it does not take the call.
    pub reason: Vec<String>,
}
