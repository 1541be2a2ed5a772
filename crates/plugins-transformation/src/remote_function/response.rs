//! How a function's answer becomes the response.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{Reply, SubrequestResponse};

/// The form of the function's answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AnswerForm {
    /// It is the response.
    #[default]
    AsIs,
    /// JSON with `statusCode`, `headers` and `body`, any of which may be absent.
    Described,
    /// What AWS Lambda answers.
    Lambda {
        /// The function answers with a description of the response, as for Amazon's API Gateway.
        proxy: bool,
        /// The status if a function has failed with an unhandled error; absent: Lambda's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unhandled_status: Option<u16>,
        /// Whether empty JSON lists are written as empty objects.
        #[serde(default)]
        empty_lists_as_objects: bool,
    },
}

/// Builds the response.
///
/// # Errors
/// The reason why there is no response.
pub fn reply(form: &AnswerForm, answer: SubrequestResponse) -> Result<Reply, &'static str> {
    match form {
        AnswerForm::AsIs => Ok(as_is(answer.status, &answer)),
        AnswerForm::Described => {
            let described: Value = serde_json::from_slice(&answer.body)
                .map_err(|_| "the function's answer is not valid JSON")?;
            let status = described["statusCode"].as_u64().and_then(status_of);
            let mut reply = Reply::new(status.unwrap_or(answer.status), "", Vec::new());
            add_headers(&mut reply, &described["headers"]);
            reply.body = match &described["body"] {
                Value::Null => answer.body,
                Value::String(text) => text.clone().into_bytes(),
                other => other.to_string().into_bytes(),
            };
            Ok(reply)
        }
        AnswerForm::Lambda {
            proxy,
            unhandled_status,
            empty_lists_as_objects,
        } => {
            if answer.status >= 400 {
                return Err("AWS Lambda refused the invocation");
            }
            if *proxy {
                return Ok(proxied(&answer).unwrap_or_else(|fault| {
                    let error = format!("could not JSON decode Lambda function response: {fault}");
                    let body = json!({"message": "Bad Gateway", "error": error});
                    Reply::new(502, "application/json; charset=utf-8", body.to_string())
                }));
            }
            let is_unhandled = answer.headers.get(b"x-amz-function-error") == Some(b"Unhandled");
            let status = unhandled_status.filter(|_| is_unhandled).unwrap_or(answer.status);
            let mut reply = as_is(status, &answer);
            let is_json = reply.content_type.to_ascii_lowercase().contains("json");
            if *empty_lists_as_objects
                && is_json
                && let Ok(mut value) = serde_json::from_slice(&reply.body)
                && replace_empty_lists(&mut value)
            {
                reply.body = value.to_string().into_bytes();
            }
            Ok(reply)
        }
    }
}

fn as_is(status: u16, answer: &SubrequestResponse) -> Reply {
    let mut reply = Reply::new(status, "", answer.body.clone());
    for header in answer.headers.iter() {
        let name = String::from_utf8_lossy(header.name).into_owned();
        match name.eq_ignore_ascii_case("content-type") {
            true => reply.content_type = String::from_utf8_lossy(header.value).into_owned().into(),
            false => reply.headers.push((name, header.value.to_vec())),
        }
    }
    reply
}

/// Adds the gateway behind the hops that the response's `Via` names already.
pub fn add_via(reply: &mut Reply, via: &str) {
    let known = reply
        .headers
        .iter_mut()
        .find(|(name, _)| name.eq_ignore_ascii_case("via"));
    match known {
        Some((_, hops)) => {
            hops.extend_from_slice(b", ");
            hops.extend_from_slice(via.as_bytes());
        }
        None => reply.headers.push(("Via".to_owned(), via.into())),
    }
}

/// A status that a response may have in the end.
fn status_of(status: u64) -> Option<u16> {
    (200..=599).contains(&status).then_some(status as u16)
}

/// Adds the headers of an object: texts, numbers, or lists of them.
fn add_headers(reply: &mut Reply, headers: &Value) {
    for (name, value) in headers.as_object().into_iter().flatten() {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => continue,
            };
            let is_framing = ["content-length", "transfer-encoding", "connection"]
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own));
            if is_framing || !is_name(name.as_bytes()) || !is_value(text.as_bytes()) {
                continue;
            }
            match name.eq_ignore_ascii_case("content-type") {
                true => reply.content_type = text.into(),
                false => reply.headers.push((name.clone(), text.into_bytes())),
            }
        }
    }
}

/// The response that a function describes for Amazon's API Gateway.
fn proxied(answer: &SubrequestResponse) -> Result<Reply, String> {
    let described: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    if !described.is_object() {
        return Err("proxy response must be json format".to_owned());
    }
    let status = match &described["statusCode"] {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64(),
    };
    let status = status.and_then(status_of).ok_or("statusCode validation failed")?;
    let is_absent_or = |field: &str, holds: fn(&Value) -> bool| {
        described
            .get(field)
            .is_none_or(|value| value.is_null() || holds(value))
    };
    if !is_absent_or("headers", |value| value.is_object() || value.is_array()) {
        return Err("headers must be a table".to_owned());
    }
    if !is_absent_or("body", Value::is_string) {
        return Err("body must be a string".to_owned());
    }
    if !is_absent_or("isBase64Encoded", Value::is_boolean) {
        return Err("isBase64Encoded must be a boolean".to_owned());
    }
    let text = described["body"].as_str().unwrap_or_default();
    let body = match described["isBase64Encoded"] == Value::Bool(true) {
        true => STANDARD.decode(text).map_err(|_| "body is not valid Base64")?,
        false => text.as_bytes().to_vec(),
    };
    let mut whole = as_is(status, answer);
    whole.body = body;
    // The function's own headers take precedence over Lambda's.
    let named: Vec<String> = ["headers", "multiValueHeaders"]
        .iter()
        .filter_map(|field| described[*field].as_object())
        .flat_map(|map| map.keys().cloned())
        .collect();
    whole
        .headers
        .retain(|(name, _)| !named.iter().any(|own| own.eq_ignore_ascii_case(name)));
    let multi = &described["multiValueHeaders"];
    let mut single = described["headers"].clone();
    if let (Value::Object(single), Some(multi)) = (&mut single, multi.as_object()) {
        single.retain(|name, _| !multi.keys().any(|other| other.eq_ignore_ascii_case(name)));
    }
    add_headers(&mut whole, &single);
    add_headers(&mut whole, multi);
    Ok(whole)
}

/// Says whether there was an empty list.
fn replace_empty_lists(value: &mut Value) -> bool {
    match value {
        Value::Array(items) if items.is_empty() => {
            *value = json!({});
            true
        }
        Value::Array(items) => {
            let mut found = false;
            for item in items {
                found |= replace_empty_lists(item);
            }
            found
        }
        Value::Object(map) => {
            let mut found = false;
            for item in map.values_mut() {
                found |= replace_empty_lists(item);
            }
            found
        }
        _ => false,
    }
}
