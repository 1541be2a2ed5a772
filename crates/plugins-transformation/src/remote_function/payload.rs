//! What AWS Lambda gets of a call: the forms of Kong, and that of Amazon's own gateway.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Exchange, Headers, Request};

/// A description of the call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Payload {
    /// Its form.
    pub form: PayloadForm,
    /// Whether bodies are encoded in Base64.
    pub base64_body: bool,
}

/// The form of a description.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PayloadForm {
    /// The arguments of the query, and the fields of the body, in one object.
    #[default]
    Arguments,
    /// Named parts of the call.
    Parts {
        /// `request_method`.
        method: bool,
        /// `request_headers`.
        headers: bool,
        /// `request_uri` and `request_uri_args`.
        uri: bool,
        /// `request_body` and `request_body_args`.
        body: bool,
    },
    /// In the format of Amazon's API Gateway, version 1.0.
    ApiGateway,
}

impl Payload {
    /// The description of a call.
    pub(super) fn of(&self, exchange: &mut Exchange, now_ms: u64) -> Value {
        match &self.form {
            PayloadForm::Arguments => {
                let mut whole = arguments(exchange.request.query.as_deref().unwrap_or_default());
                match body_fields(&exchange.request) {
                    Some(Value::Object(fields)) => whole.extend(fields),
                    // A list has no arguments: it is the whole description, if there are no others.
                    Some(Value::Array(items)) if whole.is_empty() => return Value::Array(items),
                    _ => {}
                }
                Value::Object(whole)
            }
            PayloadForm::Parts {
                method,
                headers,
                uri,
                body,
            } => self.parts(&exchange.request, [*method, *headers, *uri, *body]),
            PayloadForm::ApiGateway => self.api_gateway(exchange, now_ms),
        }
    }

    fn parts(&self, request: &Request, [method, headers, uri, body]: [bool; 4]) -> Value {
        let mut parts = Map::new();
        if method {
            parts.insert("request_method".into(), text(&request.method));
        }
        if headers {
            let (single, _) = header_maps(&request.headers, true);
            parts.insert("request_headers".into(), single);
        }
        if uri {
            let query = request.query.as_deref();
            let mut whole = String::from_utf8_lossy(&request.raw_path).into_owned();
            if let Some(query) = query {
                whole.push('?');
                whole.push_str(&String::from_utf8_lossy(query));
            }
            parts.insert("request_uri".into(), whole.into());
            parts.insert(
                "request_uri_args".into(),
                Value::Object(arguments(query.unwrap_or_default())),
            );
        }
        if body {
            let raw = request.body.as_deref().unwrap_or_default();
            let fields = body_fields(request);
            let is_plain = request.headers.get(b"content-type").is_some_and(is_raw_type);
            match (&fields, self.base64_body && !is_plain) {
                (None, true) => {
                    parts.insert("request_body".into(), STANDARD.encode(raw).into());
                    parts.insert("request_body_base64".into(), true.into());
                }
                _ => drop(parts.insert("request_body".into(), text(raw))),
            }
            parts.insert("request_body_args".into(), fields.unwrap_or_else(|| json!({})));
        }
        Value::Object(parts)
    }

    fn api_gateway(&self, exchange: &mut Exchange, now_ms: u64) -> Value {
        let request_id = exchange.ensure_request_id().to_owned();
        let request = &exchange.request;
        let (headers, all_headers) = header_maps(&request.headers, false);
        let query = request.query.as_deref().unwrap_or_default();
        let (single, all) = query_maps(query);
        let raw = request.body.as_deref().unwrap_or_default();
        let is_base64 = self.base64_body && !raw.is_empty();
        let body = match is_base64 {
            true => Value::from(STANDARD.encode(raw)),
            false => text(raw),
        };
        let path = String::from_utf8_lossy(&request.raw_path).into_owned();
        let host = String::from_utf8_lossy(&request.host).into_owned();
        // Parts without a name have numbers.
        let is_named = |name: &str| !name.bytes().all(|byte| byte.is_ascii_digit());
        let captures: Map<String, Value> = exchange
            .captures
            .iter()
            .filter(|(name, _)| is_named(name))
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect();
        let resource = exchange.route.as_ref().map(|route| route.name.clone());
        let (major, minor) = request.version;
        json!({
            "version": "1.0",
            "resource": resource,
            "path": path,
            "httpMethod": text(&request.method),
            "headers": headers,
            "multiValueHeaders": all_headers,
            "pathParameters": captures,
            "queryStringParameters": single,
            "multiValueQueryStringParameters": all,
            "body": body,
            "isBase64Encoded": is_base64,
            "requestContext": {
                "path": path,
                "protocol": format!("HTTP/{major}.{minor}"),
                "httpMethod": text(&request.method),
                "domainName": host,
                "domainPrefix": host.split('.').next(),
                "identity": {
                    "sourceIp": request.client.to_canonical().to_string(),
                    "userAgent": request.headers.get(b"user-agent").map(text),
                },
                "requestId": request_id,
                "requestTimeEpoch": now_ms,
                "resourcePath": path,
            },
        })
    }
}

fn text(bytes: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(bytes).into_owned())
}

/// The types of bodies that are written as text.
fn is_raw_type(content_type: &[u8]) -> bool {
    let types = [
        "text/plain",
        "text/html",
        "application/xml",
        "text/xml",
        "application/soap+xml",
    ];
    types
        .iter()
        .any(|known| known.as_bytes().eq_ignore_ascii_case(content_type))
}

/// Headers as a map of first values (or of lists, if a header occurs several times), and as a map of lists.
fn header_maps(headers: &Headers, lists_several: bool) -> (Value, Value) {
    let (mut single, mut all) = (Map::new(), Map::new());
    for header in headers.iter() {
        let name = String::from_utf8_lossy(header.name).to_ascii_lowercase();
        if all.contains_key(&name) {
            continue;
        }
        let values: Vec<Value> = headers.get_all(header.name).map(text).collect();
        let first = match values.len() {
            2.. if lists_several => Value::Array(values.clone()),
            _ => values.first().cloned().unwrap_or_default(),
        };
        single.insert(name.clone(), first);
        all.insert(name, Value::Array(values));
    }
    (Value::Object(single), Value::Object(all))
}

/// The arguments of a query, as a map of first values and as a map of lists.
fn query_maps(query: &[u8]) -> (Value, Value) {
    let (mut single, mut all) = (Map::new(), Map::new());
    for (name, value) in arguments(query) {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        single.insert(name.clone(), values.first().cloned().unwrap_or_default());
        all.insert(name, Value::Array(values));
    }
    (Value::Object(single), Value::Object(all))
}

/// Arguments by name. One that comes several times is a list; one without `=` is `true`.
fn arguments(query: &[u8]) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in query_pairs(query) {
        let name = String::from_utf8_lossy(&decode_form(name)).into_owned();
        let value = value.map_or(Value::Bool(true), |value| text(&decode_form(value)));
        match map.get_mut(&name) {
            None => drop(map.insert(name, value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    map
}

/// The body's fields, if it is a form or JSON.
fn body_fields(request: &Request) -> Option<Value> {
    let body = request.body.as_deref().unwrap_or_default();
    let content_type = request.headers.get(b"content-type")?.to_ascii_lowercase();
    if content_type.starts_with(b"application/json") {
        return serde_json::from_slice(body).ok();
    }
    let is_form = content_type.starts_with(b"application/x-www-form-urlencoded");
    is_form.then(|| Value::Object(arguments(body)))
}
