//! A call of the Admin API: what it asks, and of which resource.

use super::key::Role;
use super::kind::Kind;
use super::response::{ApiResponse, DRY_RUN, Outcome};
use crate::settings::Settings;
use axum::http::header::IF_MATCH;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;
use std::time::SystemTime;
use weir_model::unix_time;
use weir_plugin::uri::{decode_form, query_pairs, unescape};
use weir_plugins::lenient_json;
use weir_store::Author;

/// A call with its whole body.
pub struct ApiCall {
    pub method: Method,
    /// The path, decoded.
    pub path: String,
    /// The query's pairs in their order, decoded.
    pub args: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub author: Author,
    pub time: SystemTime,
    /// APISIX's `config.yaml`.
    pub settings: &'static Settings,
    /// The caller's role.
    pub role: Role,
    /// Whether the caller may write in some workspaces only.
    pub is_confined: bool,
}

/// Headers hold keys, and bodies what is to be kept.
impl std::fmt::Debug for ApiCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Call")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl ApiCall {
    /// A call without its body.
    pub fn new(method: Method, uri: &Uri, headers: HeaderMap, author: Author, time: SystemTime) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            method,
            path: text(&unescape(uri.path().as_bytes())),
            args: query_pairs(uri.query().unwrap_or_default().as_bytes())
                .map(|(name, value)| {
                    (
                        text(&decode_form(name)),
                        text(&decode_form(value.unwrap_or_default())),
                    )
                })
                .collect(),
            headers,
            body: Vec::new(),
            author,
            time,
            settings: Settings::stock(),
            role: Role::Viewer,
            is_confined: false,
        }
    }

    /// The value of an argument; of one that is given several times, the first.
    pub fn arg(&self, name: &str) -> Option<&str> {
        let (_, value) = self.args.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    /// A header as a text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the write is only tried.
    pub fn is_dry_run(&self) -> bool {
        self.header(DRY_RUN.as_str())
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The revisions that the written document must be at; `None`: any.
    pub fn if_match(&self) -> Option<&str> {
        self.headers.get(IF_MATCH)?.to_str().ok()
    }

    /// The body as JSON; `None`: the call has none.
    ///
    /// # Errors
    /// 400 in APISIX's words.
    pub fn json(&self) -> Outcome<Option<Value>> {
        if self.body.is_empty() {
            return Ok(None);
        }
        lenient_json::parse(&self.body).map(Some).map_err(|error| {
            let message = format!("invalid request body: {error}");
            let body = String::from_utf8_lossy(&self.body);
            ApiResponse::json(
                StatusCode::BAD_REQUEST,
                &serde_json::json!({"error_msg": message, "req_body": body}),
            )
        })
    }

    /// Seconds since the Unix epoch.
    pub fn seconds(&self) -> u64 {
        unix_time::seconds(self.time)
    }
}

/// The resource, or the collection, that a path below `/apisix/admin/` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    /// `None`: the collection.
    pub id: Option<String>,
    /// The consumer of a credential, the service of a decoration, the kind of a vault.
    pub owner: Option<String>,
    /// The path inside the document.
    pub inside: String,
}

impl Target {
    /// From the segments after `/apisix/admin/`.
    ///
    /// # Errors
    /// 404 if they name nothing.
    pub fn of(segments: &[&str]) -> Outcome<Self> {
        let (first, rest) = segments.split_first().unwrap_or((&"", &[]));
        let segment = |index: usize| rest.get(index).filter(|text| !text.is_empty());
        let inside = |from: usize| rest.get(from..).unwrap_or_default().join("/");
        let owned = |kind: Kind| Self {
            kind,
            id: segment(2).map(ToString::to_string),
            owner: segment(0).map(ToString::to_string),
            inside: inside(3),
        };
        match (Kind::of(first), segment(1).copied()) {
            (Some(Kind::Consumer), Some("credentials")) => Ok(owned(Kind::Credential)),
            (Some(Kind::Service), Some("graphql_cost_decorations")) => Ok(owned(Kind::CostDecoration)),
            (Some(kind @ (Kind::Credential | Kind::CostDecoration)), _) => {
                let owner = match kind {
                    Kind::Credential => "consumer",
                    _ => "service",
                };
                Err(ApiResponse::bad(format!("missing {owner} id")))
            }
            (Some(Kind::Secret), _) => Ok(Self {
                kind: Kind::Secret,
                id: segment(1).map(ToString::to_string),
                owner: segment(0).map(ToString::to_string),
                inside: inside(2),
            }),
            (Some(kind), _) => Ok(Self {
                kind,
                id: segment(0).map(ToString::to_string),
                owner: None,
                inside: inside(1),
            }),
            (None, _) => Err(ApiResponse::error(
                StatusCode::NOT_FOUND,
                format!("Unsupported resource type: {first}"),
            )),
        }
    }

    /// The prefix of the keys of the collection, without a `/` at the end.
    pub fn collection(&self) -> String {
        match (self.kind, &self.owner) {
            (Kind::Credential, Some(owner)) => format!("consumers/{owner}/credentials"),
            (Kind::CostDecoration, Some(owner)) => format!("services/{owner}/graphql_cost_decorations"),
            (kind, _) => kind.name().to_owned(),
        }
    }

    /// The key of the document with an id.
    pub fn key(&self, id: &str) -> String {
        match (self.kind, &self.owner) {
            (Kind::Secret, Some(manager)) => format!("secrets/{manager}/{id}"),
            _ => format!("{}/{id}", self.collection()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_documents() {
        for (path, key, inside) in [
            ("routes/1", "routes/1", ""),
            ("routes/1/upstream/nodes", "routes/1", "upstream/nodes"),
            ("consumers/jack", "consumers/jack", ""),
            ("consumers/jack/credentials/a", "consumers/jack/credentials/a", ""),
            (
                "services/s/graphql_cost_decorations/d",
                "services/s/graphql_cost_decorations/d",
                "",
            ),
            ("secrets/vault/v/token", "secrets/vault/v", "token"),
        ] {
            let segments: Vec<&str> = path.split('/').collect();
            let target = Target::of(&segments).expect("a resource");
            let id = target.id.clone().expect("an id");
            assert_eq!((target.key(&id).as_str(), target.inside.as_str()), (key, inside));
        }
        assert!(Target::of(&["nothing"]).is_err());
        assert_eq!(Target::of(&["routes", ""]).expect("a collection").id, None);
    }
}
