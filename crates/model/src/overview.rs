//! What lists show of resources: each document of a dialect, in the model's words.
//!
//! A dialect makes [`OverviewItem`]s of a document as it is written, whether it can be served or not. **What it is not**: it
//! holds no configuration of plugins and no secret, and nothing is served by it.

use crate::DialectName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum List {
    /// The routes of calls.
    Routes,
    /// The destinations of calls.
    Services,
    /// Groups of targets.
    Upstreams,
    /// Who calls.
    Consumers,
    /// What clients are shown over TLS.
    Certificates,
    /// Plugins with their configuration.
    Plugins,
}

impl List {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Routes,
        Self::Services,
        Self::Upstreams,
        Self::Consumers,
        Self::Certificates,
        Self::Plugins,
    ];

    /// The list's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Routes => "routes",
            Self::Services => "services",
            Self::Upstreams => "upstreams",
            Self::Consumers => "consumers",
            Self::Certificates => "certificates",
            Self::Plugins => "plugins",
        }
    }
}

/// A resource as a list shows it. Fields that a kind of resource does not have are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Row {
    /// Unique and stable: the document's key, and the place in it if it holds several resources.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The dialect that it is written in.
    pub dialect: DialectName,
    /// The workspace that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The key of its document in the store; absent: it is in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The file that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its place in the document or file (RFC 6901); empty: it is all of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Whether its document switches it off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_disabled: bool,
    /// Whether it is a route, service or upstream below HTTP.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_stream: bool,
    /// Hosts of a route; empty: every host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Paths of a route, as they are written; empty: every path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Methods of a route; empty: every method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// The service of a route, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The upstream of a route or service, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The address of a service, without user and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How the next target is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Targets: `host:port`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Plugins that are configured at this resource, by the names that its dialect gives them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<String>,
    /// The object that a plugin is configured for, such as `route shop`; absent: everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applies_to: Option<String>,
    /// Groups of a consumer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// A consumer's name in another system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_id: Option<String>,
    /// Kinds of a consumer's credentials, each as often as there are credentials of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Names that the certificate is served for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_names: Vec<String>,
    /// The beginning of a certificate's validity, in seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<u64>,
    /// The end of a certificate's validity, in seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<u64>,
    /// Labels and tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Which resource is meant: an identifier or a name in a list of the same workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    /// The list.
    pub list: List,
    /// The resource's identifier or name in its dialect.
    pub id: String,
}

/// The content of a document or file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overview {
    /// The workspace in which its names count; `None`: the dialect has none.
    pub workspace: Option<String>,
    /// What it says, each with its place in it (RFC 6901).
    pub parts: Vec<(String, OverviewItem)>,
}

/// A part of what a document says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverviewItem {
    /// A resource.
    Row {
        /// Its list.
        list: List,
        /// The id that other documents use for it, beside its name.
        own_id: String,
        /// The visible row. Names in `service` and `upstream` may still be identifiers, which the index replaces.
        row: Box<Row>,
    },
    /// Something that another document's resource has.
    Attached {
        /// Its owner.
        to: Reference,
        /// What it is.
        what: Attachment,
    },
}

/// A part of a resource that is in a document of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    /// A plugin.
    Plugin(String),
    /// A target.
    Target(String),
    /// A credential of this kind.
    Credential(String),
    /// A group.
    Group(String),
    /// A server name.
    ServerName(String),
}

/// A text field.
pub fn text(value: &Value, field: &str) -> Option<String> {
    match value.get(field)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The texts of a field that holds one or a list of them. What is no text is written as JSON.
pub fn texts(value: &Value, field: &str) -> Vec<String> {
    let one = |item: &Value| match item {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value.get(field) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(one).collect(),
        Some(item) => vec![one(item)],
    }
}

/// The names in a map.
pub fn names(value: &Value, field: &str) -> Vec<String> {
    let fields = value.get(field).and_then(Value::as_object);
    fields.map(|it| it.keys().cloned().collect()).unwrap_or_default()
}

/// Labels: a map of texts, or a list of tags, which are labels without a value.
pub fn labels(value: &Value, field: &str) -> BTreeMap<String, String> {
    let of_map = |fields: &Map<String, Value>| {
        let one = |(name, value): (&String, &Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.clone(), value)
        };
        fields.iter().map(one).collect()
    };
    match value.get(field) {
        Some(Value::Object(fields)) => of_map(fields),
        Some(Value::Array(_)) => texts(value, field)
            .into_iter()
            .map(|tag| (tag, String::new()))
            .collect(),
        _ => BTreeMap::new(),
    }
}

/// A URL without user and password.
pub fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    match rest[..authority_end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub fn authority(host: &str, port: Option<u64>) -> String {
    let host = match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    match port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

/// Notes from when to when a certificate (PEM) is good.
pub fn note_validity(row: &mut Row, certificate: &str) {
    if let Some(read) = crate::x509::Certificate::of_pem(certificate) {
        row.not_before = u64::try_from(read.not_before).ok();
        row.not_after = u64::try_from(read.not_after).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_read_in_their_spellings() {
        let value = json!({"a": "x", "b": ["x", 1], "c": null, "m": {"k": "v", "n": 2}, "t": ["p", "q"]});
        assert_eq!(text(&value, "a").as_deref(), Some("x"));
        assert_eq!(texts(&value, "a"), ["x"]);
        assert_eq!(texts(&value, "b"), ["x", "1"]);
        assert!(texts(&value, "c").is_empty() && texts(&value, "z").is_empty());
        assert_eq!(names(&value, "m"), ["k", "n"]);
        assert_eq!(labels(&value, "m").get("n").map(String::as_str), Some("2"));
        assert_eq!(labels(&value, "t").get("p").map(String::as_str), Some(""));
        for (url, expected) in [
            ("http://u:p@h/a@b", "http://h/a@b"),
            ("http://h/a@b", "http://h/a@b"),
            ("h", "h"),
        ] {
            assert_eq!(without_user(url), expected);
        }
        assert_eq!(authority("::1", Some(80)), "[::1]:80");
        assert_eq!(authority("h", None), "h");
    }
}
