//! The shape of what is exported of a call: which spans, by which names, with which attributes. All of it is data, so that
//! a trace looks as its readers expect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A point of time in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Its first byte has come.
    Start,
    /// It is forwarded; if it is not, its end.
    Forward,
    /// The upstream's response begins; if there is none, its end.
    Answer,
    /// Its last byte has gone.
    End,
}

/// The role of a span in the call's communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Work of the gateway's own.
    #[default]
    Internal,
    /// The call of a client.
    Server,
    /// A call to an upstream.
    Client,
}

/// Something that happened at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// When.
    pub at: Moment,
}

/// An attribute with the milliseconds between two moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DurationAttribute {
    /// Its name.
    pub name: String,
    /// From then.
    pub from: Moment,
    /// Until then.
    pub to: Moment,
}

/// An attribute that names the origin of the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its value if the gateway made the response.
    pub gateway: String,
    /// Its value if the response came from an upstream.
    pub upstream: String,
}

/// The span of the whole call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Root {
    /// Its name, with variables.
    pub name: String,
    /// Attributes, with variables. One whose variables all have no value is left out; `$status` and ports are numbers.
    pub attributes: BTreeMap<String, String>,
    /// Attributes with literal values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fixed: BTreeMap<String, String>,
    /// The attribute that names the origin of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Attributes that are durations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub durations: Vec<DurationAttribute>,
    /// Events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

impl Default for Root {
    fn default() -> Self {
        let attributes = [
            ("http.request.method", "$request_method"),
            ("http.response.status_code", "$status"),
            ("http.route", "$route_name"),
            ("url.scheme", "$scheme"),
            ("url.path", "$uri"),
            ("server.address", "$host"),
            ("server.port", "$server_port"),
            ("client.address", "$remote_addr"),
            ("network.peer.address", "$realip_remote_addr"),
            ("network.peer.port", "$remote_port"),
            ("network.protocol.version", "$protocol_version"),
            ("user_agent.original", "$http_user_agent"),
            ("weir.service", "$service_name"),
            ("weir.consumer", "$consumer_name"),
        ];
        Self {
            name: "$request_method $route_name".into(),
            attributes: texts(&attributes),
            fixed: BTreeMap::new(),
            source: None,
            durations: Vec::new(),
            events: Vec::new(),
        }
    }
}

/// A span between two moments, below the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpanOptions {
    /// Its name, with variables.
    pub name: String,
    /// Its beginning.
    pub from: Moment,
    /// Its end.
    pub to: Moment,
    /// Its role.
    #[serde(default)]
    pub kind: Kind,
    /// Attributes, as the root's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Attributes that are durations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub durations: Vec<DurationAttribute>,
    /// Events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// The upstream takes it for its parent.
    #[serde(default)]
    pub leads: bool,
}

/// A span for each try to reach a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AttemptSpanOptions {
    /// Their name, with variables; with `number_in_name`, followed by the number of the try.
    pub name: String,
    /// The try's number, from 1, is a part of the name: `NAME N)`.
    pub number_in_name: bool,
    /// The attribute with the try's number.
    pub number: String,
    /// The attribute with the target's address.
    pub address: String,
    /// The attribute with the target's port.
    pub port: String,
    /// The attribute with the status: the response's, or the one for a failure.
    pub status: String,
    /// Only failures have a status.
    pub status_on_failure_only: bool,
    /// A further attribute of failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Further attributes, as the root's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// The upstream takes the last one for its parent.
    pub leads: bool,
}

impl Default for AttemptSpanOptions {
    fn default() -> Self {
        Self {
            name: "$request_method".into(),
            number_in_name: false,
            number: "http.request.resend_count".into(),
            address: "network.peer.address".into(),
            port: "network.peer.port".into(),
            status: "http.response.status_code".into(),
            status_on_failure_only: false,
            failure: None,
            attributes: texts(&[("http.request.method", "$request_method")]),
            leads: true,
        }
    }
}

/// The spans of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Spans {
    /// That of the whole call.
    pub root: Root,
    /// Those between two moments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PhaseSpanOptions>,
    /// Those of attempts; `null`: none.
    pub attempts: Option<AttemptSpanOptions>,
}

impl Default for Spans {
    fn default() -> Self {
        Self {
            root: Root::default(),
            parts: Vec::new(),
            attempts: Some(AttemptSpanOptions::default()),
        }
    }
}

impl Spans {
    /// Whether upstreams get a span other than the root as their parent.
    pub fn has_leader(&self) -> bool {
        self.parts.iter().any(|part| part.leads)
            || self.attempts.as_ref().is_some_and(|attempts| attempts.leads)
    }
}

/// A map of texts.
pub fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
