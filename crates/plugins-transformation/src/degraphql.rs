//! `degraphql`: makes a GraphQL query of a plain call, so that a GraphQL service can be called like any other.
//!
//! ```yaml
//! query: "query ($name: String!) { user(name: $name) { id } }"
//! variables: [name]
//! ```
//!
//! Of a GET the variables are arguments of its query, of a POST members of the object that its body is. With `routes`, the
//! method and the path of a call decide which query it is.

mod routes;

use crate::request_rewrite::set_body;
use routes::RouteFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, parse_config,
};
use weir_plugins_shared::field_edits::{Fields, Pairs};
use weir_plugins_shared::graphql::Query;

/// Configuration of `degraphql`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The query, unless there are `routes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The operation to run, if the query has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_name: Option<String>,
    /// The query's variables that calls fill in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// The largest body that is read, in bytes, at most 67108864.
    #[serde(default = "usual_bytes")]
    #[schemars(range(max = 67_108_864))]
    pub max_body_bytes: usize,
    /// Calls that are queries, by method and path; other calls are answered 404. The service gets all of them as POSTs with
    /// JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<QueryRoute>,
    /// Whether no call is a query while there are neither `routes` nor a `query`: all are answered 404.
    #[serde(default)]
    pub only_routes: bool,
    /// The path at which the service answers queries of `routes`.
    #[serde(default = "usual_path")]
    pub path: String,
}

impl Default for Config {
    /// The defaults of all options, without a query.
    fn default() -> Self {
        Self {
            query: None,
            operation_name: None,
            variables: Vec::new(),
            max_body_bytes: usual_bytes(),
            routes: Vec::new(),
            only_routes: false,
            path: usual_path(),
        }
    }
}

/// Calls that are a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryRoute {
    /// The service whose calls match: its name, or its id if the dialect has ids. Left out: the calls of all services
    /// that no route names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Their methods.
    #[serde(default = "usual_methods")]
    pub methods: Vec<String>,
    /// Their path, after the part that the gateway's route has matched: `/:owner/:name`. The part at `:owner` becomes
    /// the value of the query's variable `$owner`.
    pub path: String,
    /// The query, with one operation. Its other variables are arguments of the call's query, or members of the object that
    /// its body is.
    pub query: String,
}

fn usual_methods() -> Vec<String> {
    vec!["GET".to_owned()]
}

fn usual_path() -> String {
    "/graphql".to_owned()
}

fn usual_bytes() -> usize {
    1 << 20
}

/// The plugin `degraphql`.
pub struct Degraphql;

const NAME: &str = "degraphql";

impl Plugin for Degraphql {
    fn name(&self) -> &'static str {
        "degraphql"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let fault = |field: &str, message: &str| vec![Diagnostic::error(root.field(field), message)];
        if config.max_body_bytes > 64 << 20 {
            return Err(fault("max_body_bytes", "expected at most 67108864 bytes"));
        }
        if !config.routes.is_empty() || config.only_routes {
            return build_routes(&config);
        }
        let Some(query) = config.query.clone() else {
            return Err(fault("query", "expected a query, or `routes`"));
        };
        match Query::read(&query) {
            Err(_) => Err(fault("query", "expected a GraphQL document with an operation")),
            Ok(query) if query.operations > 1 && config.operation_name.is_none() => Err(fault(
                "operation_name",
                "expected the name of one of the query's operations",
            )),
            Ok(_) => Ok(Arc::new(QueryFilter { config, query })),
        }
    }
}

/// An instance with routes.
fn build_routes(config: &Config) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
    let root = DocPath::root();
    let fault = |field: &str, message: &str| vec![Diagnostic::error(root.field(field), message)];
    if config.query.is_some() || config.operation_name.is_some() || !config.variables.is_empty() {
        return Err(fault(
            "routes",
            "expected either `routes`, or `query` with what belongs to it",
        ));
    }
    let is_path = config.path.starts_with('/') && config.path.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_path || config.path.contains(['?', '#']) {
        return Err(fault("path", "expected a path that begins with `/`"));
    }
    match RouteFilter::new(&config.routes, &config.path, config.max_body_bytes) {
        Ok(filter) => Ok(Arc::new(filter)),
        Err((index, field, message)) => {
            let place = root.field("routes").index(index).field(field);
            Err(vec![Diagnostic::error(place, message)])
        }
    }
}

/// An instance of `degraphql`.
struct QueryFilter {
    config: Config,
    query: String,
}

impl QueryFilter {
    fn on_get(&self, exchange: &mut Exchange) {
        let config = &self.config;
        let mut pairs = Pairs::default();
        if let Some(name) = &config.operation_name {
            pairs.set("operationName", &json!(name));
        }
        pairs.set("query", &json!(self.query));
        if !config.variables.is_empty() {
            let mut variables = Map::new();
            for name in &config.variables {
                if let Some(value) = exchange.request.query_arg(name.as_bytes()) {
                    variables.insert(name.clone(), json!(String::from_utf8_lossy(&value)));
                }
            }
            pairs.set("variables", &json!(Value::Object(variables).to_string()));
        }
        exchange.upstream_query = Some(pairs.write());
    }

    fn on_post(&self, exchange: &mut Exchange) -> Result<(), u16> {
        let config = &self.config;
        let mut made = Map::new();
        if !config.variables.is_empty() {
            let body = exchange.request.body.as_deref().unwrap_or_default();
            let Ok(Value::Object(given)) = serde_json::from_slice(body) else {
                return Err(400);
            };
            let filled = config
                .variables
                .iter()
                .filter_map(|name| Some((name.clone(), given.get(name)?.clone())));
            made.insert("variables".to_owned(), Value::Object(filled.collect()));
        }
        if let Some(name) = &config.operation_name {
            made.insert("operationName".to_owned(), json!(name));
        }
        made.insert("query".to_owned(), json!(self.query));
        exchange.request.headers.set(b"Content-Type", b"application/json");
        set_body(
            &mut exchange.request,
            Value::Object(made).to_string().into_bytes(),
        );
        Ok(())
    }
}

impl Filter for QueryFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let request = &exchange.request;
        let done = match request.method.as_slice() {
            b"GET" => {
                self.on_get(exchange);
                Ok(())
            }
            b"POST" if request.has_body && request.body.is_none() => {
                if exchange.filter_state.mark_body_requested(self) {
                    return Outcome::NeedBody {
                        max_bytes: self.config.max_body_bytes,
                    };
                }
                Err(413)
            }
            b"POST" => self.on_post(exchange),
            _ => Err(405),
        };
        match done {
            Ok(()) => Outcome::Continue,
            Err(status) => {
                let kind = RefusalKind::Answered { plugin: NAME };
                Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::*;

    #[test]
    fn calls_become_queries() {
        let config = json!({"query": "query A { a } query B { b }", "operation_name": "B"});
        let named = json!({"query": "query ($n: Int) { a(n: $n) }", "variables": ["n", "m"]});
        for (config, call, body, expected) in [
            (
                &config,
                "GET /v1?x=1",
                None,
                "operationName=B&query=query%20A%20%7B%20a%20%7D%20query%20B%20%7B%20b%20%7D",
            ),
            (
                &config,
                "POST /v1",
                Some("{}"),
                r#"{"operationName":"B","query":"query A { a } query B { b }"}"#,
            ),
            (
                &named,
                "GET /?n=7",
                None,
                "query=query%20(%24n%3A%20Int)%20%7B%20a(n%3A%20%24n)%20%7D&variables=%7B%22n%22%3A%227%22%7D",
            ),
            (
                &named,
                "POST /",
                Some(r#"{"n":7,"x":1}"#),
                r#"{"variables":{"n":7},"query":"query ($n: Int) { a(n: $n) }"}"#,
            ),
            (&named, "POST /", Some("x"), "answered 400"),
            (&named, "PUT /", None, "answered 405"),
        ] {
            let filter = build(&Degraphql, config).expect("valid");
            let mut exchange = exchange();
            prepare(&mut exchange, call, &[]);
            exchange.request.body = body.map(|body| body.as_bytes().to_vec());
            let found = match filter.on_request(&mut exchange) {
                Outcome::Continue => {
                    let sent = exchange.upstream_query.or(exchange.request.body);
                    String::from_utf8(sent.expect("a query")).expect("text")
                }
                other => word(&other),
            };
            assert_eq!(found, expected, "{call}");
        }
    }

    #[test]
    fn calls_are_queries_by_method_and_path() {
        let repository =
            "query ($owner: String!, $name: String!, $first: Int, $open: Boolean, $w: [Int!]) { r }";
        let config = json!({"path": "/gq", "routes": [
            {"path": "/:owner/:name", "methods": ["GET", "PUT"], "query": repository},
            {"path": "/front/page", "query": "{ viewer { login } }"},
            {"path": "/search", "methods": ["POST"], "query": "query S($filter: F, $n: Float) { s }"},
            {"path": "/other", "service": "else", "query": "{ other }"},
        ]});
        let filter = build(&Degraphql, &config).expect("valid");
        for (call, matched, body, expected) in [
            (
                "GET /api/kong/a%20b?first=3&open=true&w=4&owner=evil&x=1",
                4,
                None,
                Ok(json!({"query": repository, "variables":
                    {"owner": "kong", "name": "a b", "first": 3, "open": true, "w": [4]}})),
            ),
            (
                "PUT /api/kong/b?first=x&w=%5B1%2C2%5D",
                4,
                Some(r#"{"open": false, "owner": "evil", "other": 1}"#),
                Ok(json!({"query": repository, "variables":
                    {"owner": "kong", "name": "b", "first": "x", "open": false, "w": [1, 2]}})),
            ),
            (
                "GET /front/page",
                0,
                None,
                Ok(json!({"query": "{ viewer { login } }"})),
            ),
            // The route has matched all: the whole path counts.
            (
                "GET /front/page",
                11,
                None,
                Ok(json!({"query": "{ viewer { login } }"})),
            ),
            (
                "POST /search?n=1.5",
                0,
                Some(r#"{"filter": {"a": [1]}}"#),
                Ok(
                    json!({"query": "query S($filter: F, $n: Float) { s }", "variables":
                    {"filter": {"a": [1]}, "n": 1.5}}),
                ),
            ),
            ("POST /search", 0, Some("[]"), Err("answered 400")),
            ("POST /front/page", 0, None, Err("answered 404")),
            ("GET /other", 0, None, Err("answered 404")),
            ("GET /api/kong/", 4, None, Err("answered 404")),
            ("GET /", 0, None, Err("answered 404")),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, call, &[("Content-Encoding", "br")]);
            exchange.matched_len = matched;
            exchange.request.body = body.map(|body| body.as_bytes().to_vec());
            let found = match filter.on_request(&mut exchange) {
                Outcome::Continue => {
                    let request = &exchange.request;
                    assert_eq!(request.method, b"POST", "{call}");
                    assert_eq!(exchange.upstream_path.as_deref(), Some(&b"/gq"[..]), "{call}");
                    assert_eq!(exchange.upstream_query.as_deref(), Some(&b""[..]), "{call}");
                    assert_eq!(request.headers.get(b"Content-Encoding"), None, "{call}");
                    Ok(serde_json::from_slice(request.body.as_deref().expect("a body")).expect("JSON"))
                }
                other => Err(word(&other)),
            };
            assert_eq!(found, expected.map_err(str::to_owned), "{call}");
        }
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&Degraphql, &example(include_str!("degraphql.rs"))).is_ok());
        let route = |path: &str, query: &str| json!({"routes": [{"path": path, "query": query}]});
        for (config, places) in [
            (json!({"query": "nothing"}), vec!["query"]),
            (json!({}), vec!["query"]),
            (route("x", "{ a }"), vec!["routes[0].path"]),
            (route("/x", "{ a"), vec!["routes[0].query"]),
            (
                route("/x", "query A { a } query B { b }"),
                vec!["routes[0].query"],
            ),
            (
                json!({"query": "{ a }", "routes": [{"path": "/", "query": "{ a }"}]}),
                vec!["routes"],
            ),
            (json!({"only_routes": true, "path": "x y"}), vec!["path"]),
            (
                json!({"routes": [{"path": "/", "query": "{ a }", "methods": []}]}),
                vec!["routes[0].methods"],
            ),
            (
                json!({"query": "query A { a } query B { b }"}),
                vec!["operation_name"],
            ),
            (
                json!({"query": "{ a }", "max_body_bytes": 1 << 30}),
                vec!["max_body_bytes"],
            ),
        ] {
            assert_eq!(refused_at(&Degraphql, &config), places, "{config}");
        }
    }
}
