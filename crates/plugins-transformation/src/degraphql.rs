//! `degraphql`: makes a GraphQL query of a plain call, so that a GraphQL service can be called like any other.
//!
//! ```yaml
//! query: "query ($name: String!) { user(name: $name) { id } }"
//! variables: [name]
//! ```
//!
//! Of a GET the variables are arguments of its query, of a POST members of the object that its body is.

use crate::request_rewrite::set_body;
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
    /// The query.
    pub query: String,
    /// The operation that is meant, where the query has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_name: Option<String>,
    /// The query's variables that calls fill in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// The largest body that is read, in bytes, at most 67108864.
    #[serde(default = "usual_bytes")]
    #[schemars(range(max = 67_108_864))]
    pub max_body_bytes: usize,
}

fn usual_bytes() -> usize {
    1 << 20
}

/// The plugin.
pub struct Degraphql;

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
        match Query::read(&config.query) {
            Err(_) => Err(fault("query", "expected a GraphQL document with an operation")),
            Ok(query) if query.operations > 1 && config.operation_name.is_none() => Err(fault(
                "operation_name",
                "expected the name of one of the query's operations",
            )),
            Ok(_) => Ok(Arc::new(QueryFilter(config))),
        }
    }
}

/// An instance of `degraphql`.
struct QueryFilter(Config);

/// That the body has been asked for.
struct Asked;

impl QueryFilter {
    fn on_get(&self, exchange: &mut Exchange) {
        let config = &self.0;
        let mut pairs = Pairs::default();
        if let Some(name) = &config.operation_name {
            pairs.set("operationName", &json!(name));
        }
        pairs.set("query", &json!(config.query));
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
        let config = &self.0;
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
        made.insert("query".to_owned(), json!(config.query));
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
                if exchange.filter_state.take::<_, Asked>(self).is_none() {
                    exchange.filter_state.put(self, Asked);
                    return Outcome::NeedBody {
                        max_bytes: self.0.max_body_bytes,
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
                let kind = RefusalKind::Answered { plugin: "degraphql" };
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
    fn configurations_are_checked() {
        assert!(build(&Degraphql, &example(include_str!("degraphql.rs"))).is_ok());
        for (config, places) in [
            (json!({"query": "nothing"}), vec!["query"]),
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
