//! What AWS Lambda gets of a call: the forms of Kong, and that of Amazon's own gateway.

use crate::call_parts::{CallParts, arguments, body_fields, header_maps, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::{Duration, UNIX_EPOCH};
use weir_plugin::Exchange;

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
                match body_fields(&exchange.request).ok().flatten() {
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
            } => {
                let parts = CallParts {
                    method: *method,
                    headers: *headers,
                    uri: *uri,
                    body: *body,
                    base64_body: self.base64_body,
                };
                let request = &exchange.request;
                let fields = match body {
                    true => body_fields(request).ok().flatten(),
                    false => None,
                };
                Value::Object(parts.of(request, fields, "request_"))
            }
            PayloadForm::ApiGateway => self.api_gateway(exchange, now_ms),
        }
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
        let matched = request.path.get(..exchange.matched_len).unwrap_or(&request.path);
        let (major, minor) = request.version;
        json!({
            "version": "1.0",
            "resource": text(matched),
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
                "requestTime": request_time(now_ms),
                "requestTimeEpoch": now_ms,
                "resourcePath": path,
            },
        })
    }
}

/// A time as access logs write it: `10/Oct/2000:13:55:36 +0000`.
fn request_time(now_ms: u64) -> String {
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(now_ms));
    let mut words = text.split(' ').skip(1);
    let mut next = || words.next().unwrap_or_default();
    format!("{}/{}/{}:{} +0000", next(), next(), next(), next())
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
