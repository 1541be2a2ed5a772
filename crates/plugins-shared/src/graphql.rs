//! Requests that carry GraphQL: the location of the query, and its content.

pub use weir_plugin::graphql::Document as Query;

use crate::lenient_json;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use weir_plugin::graphql::DocumentError as QueryFault;
use weir_plugin::{Outcome, Refusal, RefusalKind, Request};

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphqlError {
    /// Its method carries no query.
    Method,
    /// In words.
    Invalid(String),
}

impl GraphqlError {
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

impl From<QueryFault> for GraphqlError {
    fn from(fault: QueryFault) -> Self {
        Self::Invalid(format!("Invalid graphql request: {fault}"))
    }
}

/// The longest body that is read by default.
pub const DEFAULT_MAX_BODY_BYTES: usize = 1 << 20;

/// Whether it is that length.
pub fn is_default_max_body(bytes: &usize) -> bool {
    *bytes == DEFAULT_MAX_BODY_BYTES
}

const NO_BODY: &str = "Invalid graphql request: can't get graphql request body";

/// The query of a request: the argument `query` of a GET, the member `query` of a POST's JSON, or the body of another
/// POST. `Ok(None)`: the body is not at hand yet.
///
/// # Errors
/// There is no query, or it is in a body of more than `max_bytes`.
pub fn query(request: &Request, max_bytes: usize) -> Result<Option<Cow<'_, str>>, GraphqlError> {
    let invalid = |what: &str| GraphqlError::Invalid(format!("invalid graphql request, {what}"));
    match request.method.as_slice() {
        b"GET" => {
            if request.query.as_deref().is_none_or(<[u8]>::is_empty) {
                return Err(GraphqlError::Invalid(NO_BODY.to_owned()));
            }
            let query = request
                .query_arg(b"query")
                .ok_or_else(|| invalid("args[query] is nil"))?;
            Ok(Some(Cow::Owned(String::from_utf8_lossy(&query).into_owned())))
        }
        b"POST" => {
            let length = request.body.as_ref().map(|body| body.len() as u64);
            let length = length.or(request.content_length);
            if length.is_some_and(|length| length > max_bytes as u64) {
                return Err(GraphqlError::Invalid(NO_BODY.to_owned()));
            }
            let Some(body) = request.body.as_deref() else {
                return match request.has_body {
                    true => Ok(None),
                    false => Err(GraphqlError::Invalid(NO_BODY.to_owned())),
                };
            };
            if body.is_empty() {
                return Err(GraphqlError::Invalid(NO_BODY.to_owned()));
            }
            request.work.allow_pass(body.len());
            let spent = request.work.spend(body.len() / 8);
            spent.map_err(|exhausted| invalid(&exhausted.to_string()))?;
            let content_type = request.headers.get(b"content-type").unwrap_or_default();
            if content_type.starts_with(b"application/json") {
                let parsed: Value = lenient_json::parse(body).map_err(|fault| invalid(&fault))?;
                return match parsed.get("query").filter(|query| !query.is_null()) {
                    None | Some(Value::Bool(false)) => Err(invalid("json body[query] is nil")),
                    Some(Value::String(query)) => Ok(Some(Cow::Owned(query.clone()))),
                    Some(_) => Err(GraphqlError::Invalid(
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
        _ => Err(GraphqlError::Method),
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

/// The members that a request's JSON may have.
const MEMBERS: [&str; 4] = ["query", "variables", "operationName", "extensions"];

/// The members of an object, as they stand: an object of `serde_json` has only the last of those with one name.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

impl Members {
    /// What is wrong with them: some servers read names in any case, and servers differ about which one of two counts.
    fn fault(&self) -> Option<String> {
        let mut names = HashSet::new();
        self.0.iter().map(|(name, _)| name.as_str()).find_map(|name| {
            if !names.insert(name) {
                return Some(format!("json body[{name}] appears twice"));
            }
            // In upper case as servers fold: the long s becomes an S.
            let is_alike = |known: &&str| name != *known && name.to_uppercase() == known.to_uppercase();
            let known = MEMBERS.iter().find(|known| is_alike(known))?;
            Some(format!("json body[{name}] should be json body[{known}]"))
        })
    }
}

/// What stands beside the query of a request in which [`query`] has found one: arguments of a GET, members of a POST's
/// JSON.
///
/// # Errors
/// Servers could read it in more than one way: variables that are no object, such as JSON in a text, and members that stand
/// twice or differ from the known ones in case only.
pub fn parameters(request: &Request) -> Result<Parameters, GraphqlError> {
    let invalid = |what: String| GraphqlError::Invalid(format!("invalid graphql request, {what}"));
    let object = |value: Value, place: &str| match value {
        Value::Object(variables) => Ok(Some(variables)),
        Value::Null => Ok(None),
        _ => Err(invalid(format!("{place} is neither an object nor null"))),
    };
    let mut parameters = Parameters::default();
    if request.method == b"GET" {
        let text = |name: &[u8]| Some(String::from_utf8_lossy(&request.query_arg(name)?).into_owned());
        parameters.operation_name = text(b"operationName");
        if let Some(json) = text(b"variables").filter(|json| !json.is_empty()) {
            let broken = |_| invalid("args[variables] is not JSON".to_owned());
            let variables = serde_json::from_str(&json).map_err(broken)?;
            parameters.variables = object(variables, "args[variables]")?;
        }
        return Ok(parameters);
    }
    let body = request.body.as_deref().unwrap_or_default();
    let content_type = request.headers.get(b"content-type").unwrap_or_default();
    if !content_type.starts_with(b"application/json") {
        return Ok(parameters);
    }
    let members: Members =
        serde_json::from_slice(body).map_err(|_| invalid("json body is not an object".to_owned()))?;
    if let Some(fault) = members.fault() {
        return Err(invalid(fault));
    }
    for (name, value) in members.0 {
        match (name.as_str(), value) {
            ("variables", value) => parameters.variables = object(value, "json body[variables]")?,
            ("operationName", Value::String(name)) => parameters.operation_name = Some(name),
            _ => {}
        }
    }
    Ok(parameters)
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
                r#"{"variables":null,"operationName":2,"Other":1}"#,
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
            ("GET /?query=x&variables=", "", "", json!(null), None),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, call, &[("Content-Type", content_type)]);
            exchange.request.body = Some(body.as_bytes().to_vec());
            let found = parameters(&exchange.request).expect(body);
            assert_eq!(found.variables, variables.as_object().cloned(), "{call} {body}");
            assert_eq!(found.operation_name.as_deref(), name, "{call} {body}");
        }
    }

    #[test]
    fn parameters_that_servers_read_otherwise_are_refused() {
        for (call, body, expected) in [
            ("POST /", r#"{"variables":"{\"n\":9}"}"#, "[variables] is neither"),
            ("POST /", r#"{"variables":[1]}"#, "[variables] is neither"),
            (
                "POST /",
                r#"{"query":"{a}","query":"{b}"}"#,
                "[query] appears twice",
            ),
            (
                "POST /",
                r#"{"variables":{},"variables":{"n":9}}"#,
                "[variables] appears twice",
            ),
            ("POST /", r#"{"query":"{a}","Query":"{b}"}"#, "[Query] should be"),
            (
                "POST /",
                r#"{"query":"{a}","VARIABLES":{"n":9}}"#,
                "[VARIABLES] should be",
            ),
            (
                "POST /",
                r#"{"query":"{a}","variable\u017f":{"n":9}}"#,
                "should be",
            ),
            (
                "POST /",
                r#"{"query":"{a}","operationname":"A"}"#,
                "[operationname] should be",
            ),
            ("POST /", r#"[{"query":"{a}"}]"#, "is not an object"),
            ("GET /?query=x&variables=1", "", "[variables] is neither"),
            (
                "GET /?query=x&variables=%22%7B%7D%22",
                "",
                "[variables] is neither",
            ),
            ("GET /?query=x&variables=%7B", "", "[variables] is not JSON"),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, call, &[("Content-Type", "application/json")]);
            exchange.request.body = Some(body.as_bytes().to_vec());
            let Err(GraphqlError::Invalid(message)) = parameters(&exchange.request) else {
                panic!("{call} {body}");
            };
            assert!(message.contains(expected), "{call} {body}: {message}");
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
            let found =
                query(&exchange.request, DEFAULT_MAX_BODY_BYTES).map(|query| query.map(Cow::into_owned));
            let expected = expected
                .map(|query| query.map(str::to_owned))
                .map_err(|it| GraphqlError::Invalid(it.to_owned()));
            assert_eq!(found, expected, "{call} {body:?}");
        }
        let mut exchange = exchange();
        prepare(&mut exchange, "PUT /", &[]);
        let query = |exchange: &weir_plugin::Exchange| match query(&exchange.request, 3) {
            Ok(found) => Ok(found.map(Cow::into_owned)),
            Err(error) => Err(error),
        };
        assert_eq!(query(&exchange), Err(GraphqlError::Method));
        prepare(&mut exchange, "POST /", &[]);
        exchange.request.has_body = true;
        assert_eq!(query(&exchange), Ok(None));
        // A body that is too long counts as missing, whether it is complete or only announced.
        let too_long = Err(GraphqlError::Invalid(NO_BODY.to_owned()));
        prepare(
            &mut exchange,
            "POST /",
            &[("Content-Type", "application/graphql")],
        );
        exchange.request.has_body = true;
        // The engine leaves no `Content-Length` among the headers.
        exchange.request.content_length = Some(4);
        assert_eq!(query(&exchange), too_long);
        exchange.request.content_length = None;
        for (body, expected) in [("{ab}", too_long), ("{a}", Ok(Some("{a}".to_owned())))] {
            prepare(
                &mut exchange,
                "POST /",
                &[("Content-Type", "application/graphql")],
            );
            exchange.request.body = Some(body.as_bytes().to_vec());
            assert_eq!(query(&exchange), expected, "{body}");
        }
    }
}
