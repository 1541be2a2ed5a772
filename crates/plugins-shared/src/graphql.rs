//! Requests that carry GraphQL: where the query stands in them, and what it holds.

pub use weir_plugin::graphql::Document as Query;

use crate::lenient_json;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use weir_plugin::graphql::Fault as QueryFault;
use weir_plugin::{Outcome, Refusal, RefusalKind, Request};

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphqlFault {
    /// Its method carries no query.
    Method,
    /// In words.
    Invalid(String),
}

impl GraphqlFault {
    /// The answer: 405, or 400 with a message.
    pub fn outcome(self, plugin: &'static str) -> Outcome {
        match self {
            Self::Method => {
                let refusal = Refusal::with_status(RefusalKind::Answered { plugin }, 405);
                Outcome::Refuse(Box::new(refusal))
            }
            Self::Invalid(message) => {
                let body = format!("{}\n", json!({ "message": message }));
                Outcome::Reply(Box::new(weir_plugin::Reply::new(400, "text/plain", body)))
            }
        }
    }
}

impl From<QueryFault> for GraphqlFault {
    fn from(fault: QueryFault) -> Self {
        Self::Invalid(format!("Invalid graphql request: {fault}"))
    }
}

const NO_BODY: &str = "Invalid graphql request: can't get graphql request body";

/// The query of a request: the argument `query` of a GET, the member `query` of a POST's JSON, or the body of another
/// POST. `Ok(None)`: the body is not at hand yet.
pub fn query(request: &Request) -> Result<Option<Cow<'_, str>>, GraphqlFault> {
    let invalid = |what: &str| GraphqlFault::Invalid(format!("invalid graphql request, {what}"));
    match request.method.as_slice() {
        b"GET" => {
            if request.query.as_deref().is_none_or(<[u8]>::is_empty) {
                return Err(GraphqlFault::Invalid(NO_BODY.to_owned()));
            }
            let query = request
                .query_arg(b"query")
                .ok_or_else(|| invalid("args[query] is nil"))?;
            Ok(Some(Cow::Owned(String::from_utf8_lossy(&query).into_owned())))
        }
        b"POST" => {
            let Some(body) = request.body.as_deref() else {
                return match request.has_body {
                    true => Ok(None),
                    false => Err(GraphqlFault::Invalid(NO_BODY.to_owned())),
                };
            };
            if body.is_empty() {
                return Err(GraphqlFault::Invalid(NO_BODY.to_owned()));
            }
            request.work.allow_pass(body.len());
            let spent = request.work.spend(body.len() / 8);
            spent.map_err(|exhausted| invalid(&exhausted.to_string()))?;
            let content_type = request.headers.get(b"content-type").unwrap_or_default();
            if content_type.starts_with(b"application/json") {
                let parsed: Value =
                    serde_json::from_slice(body).map_err(|_| invalid(&lenient_json::fault(body)))?;
                return match parsed.get("query").filter(|query| !query.is_null()) {
                    None | Some(Value::Bool(false)) => Err(invalid("json body[query] is nil")),
                    Some(Value::String(query)) => Ok(Some(Cow::Owned(query.clone()))),
                    Some(_) => Err(GraphqlFault::Invalid(
                        "Invalid graphql request: failed to parse graphql query".to_owned(),
                    )),
                };
            }
            if content_type.starts_with(b"application/graphql") {
                return Ok(Some(String::from_utf8_lossy(body)));
            }
            let named = String::from_utf8_lossy(content_type);
            Err(invalid(&format!("error content-type: {named}")))
        }
        _ => Err(GraphqlFault::Method),
    }
}

/// What stands beside the query of a request.
#[derive(Debug, Default, PartialEq)]
pub struct Parameters {
    /// The values of variables.
    pub variables: Option<Map<String, Value>>,
    /// The name of the operation that is meant.
    pub operation_name: Option<String>,
}

/// What stands beside the query of a request in which [`query`] has found one: arguments of a GET, members of a POST's
/// JSON. What cannot be read counts as absent.
pub fn parameters(request: &Request) -> Parameters {
    let mut parameters = Parameters::default();
    if request.method == b"GET" {
        let text = |name: &[u8]| Some(String::from_utf8_lossy(&request.query_arg(name)?).into_owned());
        parameters.operation_name = text(b"operationName");
        parameters.variables = text(b"variables").and_then(|json| serde_json::from_str(&json).ok());
        return parameters;
    }
    let body = request.body.as_deref().unwrap_or_default();
    let content_type = request.headers.get(b"content-type").unwrap_or_default();
    if content_type.starts_with(b"application/json")
        && let Ok(Value::Object(mut members)) = serde_json::from_slice(body)
    {
        if let Some(Value::Object(variables)) = members.remove("variables") {
            parameters.variables = Some(variables);
        }
        if let Some(Value::String(name)) = members.remove("operationName") {
            parameters.operation_name = Some(name);
        }
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::*;

    #[test]
    fn parameters_are_found() {
        let json = r#"{"query":"{a}","variables":{"n":1},"operationName":"A"}"#;
        for (call, content_type, body, variables, name) in [
            ("POST /", "application/json", json, json!({"n": 1}), Some("A")),
            (
                "POST /",
                "application/json",
                r#"{"variables":[1],"operationName":2}"#,
                json!(null),
                None,
            ),
            ("POST /", "application/graphql", json, json!(null), None),
            (
                "GET /?query=x&variables=%7B%22n%22%3A1%7D&operationName=A",
                "",
                "",
                json!({"n": 1}),
                Some("A"),
            ),
            ("GET /?query=x&variables=1", "", "", json!(null), None),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, call, &[("Content-Type", content_type)]);
            exchange.request.body = Some(body.as_bytes().to_vec());
            let found = parameters(&exchange.request);
            assert_eq!(found.variables, variables.as_object().cloned(), "{call} {body}");
            assert_eq!(found.operation_name.as_deref(), name, "{call} {body}");
        }
    }

    #[test]
    fn queries_are_found() {
        for (call, content_type, body, expected) in [
            ("GET /?query=%7Ba%7D", "", None, Ok(Some("{a}"))),
            (
                "GET /?a=1",
                "",
                None,
                Err("invalid graphql request, args[query] is nil"),
            ),
            ("GET /", "", None, Err(NO_BODY)),
            ("POST /", "application/json", Some(""), Err(NO_BODY)),
            (
                "POST /",
                "application/json",
                Some("{"),
                Err("invalid graphql request, Expected object key string but found T_END at character 2"),
            ),
            (
                "POST /",
                "application/json",
                Some(r#"{"query":1}"#),
                Err("Invalid graphql request: failed to parse graphql query"),
            ),
            (
                "POST /",
                "application/json",
                Some(r#"{"query":"{a}"}"#),
                Ok(Some("{a}")),
            ),
            (
                "POST /",
                "application/json",
                Some("x"),
                Err("invalid graphql request, Expected value but found invalid token at character 1"),
            ),
            (
                "POST /",
                "application/json",
                Some("{}"),
                Err("invalid graphql request, json body[query] is nil"),
            ),
            ("POST /", "application/graphql", Some("{a}"), Ok(Some("{a}"))),
            (
                "POST /",
                "text/x",
                Some("{a}"),
                Err("invalid graphql request, error content-type: text/x"),
            ),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, call, &[("Content-Type", content_type)]);
            exchange.request.body = body.map(|body| body.as_bytes().to_vec());
            let found = query(&exchange.request).map(|query| query.map(Cow::into_owned));
            let expected = expected
                .map(|query| query.map(str::to_owned))
                .map_err(|it| GraphqlFault::Invalid(it.to_owned()));
            assert_eq!(found, expected, "{call} {body:?}");
        }
        let mut exchange = exchange();
        prepare(&mut exchange, "PUT /", &[]);
        assert_eq!(query(&exchange.request), Err(GraphqlFault::Method));
        prepare(&mut exchange, "POST /", &[]);
        exchange.request.has_body = true;
        assert_eq!(query(&exchange.request), Ok(None));
    }
}
