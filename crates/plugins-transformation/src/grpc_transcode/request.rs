//! From a call of HTTP to a message of gRPC: by a rule's path and query, by fields, and by the body.

use super::rules::{Body, MatchedRule, Target};
use crate::protobuf::{FieldPath, JsonForm, Mapping, read_message};
use prost_reflect::DynamicMessage;
use serde_json::{Map, Value};
use weir_plugin::Request;
use weir_plugin::uri::{decode_form, query_pairs, unescape};

/// Most arguments of a query that are looked at.
const MAX_ARGUMENTS: usize = 1_000;

/// The message of a call, by the rule that it fits.
///
/// # Errors
/// What is wrong with the call.
pub(super) fn by_rule(
    found: &MatchedRule<'_, '_>,
    request: &Request,
    form: &JsonForm,
) -> Result<DynamicMessage, String> {
    let input = found.target.method.input();
    let body = request.body.as_deref().unwrap_or_default();
    let body = match found.target.body {
        Body::Unused => None,
        _ if body.trim_ascii().is_empty() => None,
        _ => Some(serde_json::from_slice(body).map_err(|error| format!("decode json err: {error}"))?),
    };
    let mut message = match (&found.target.body, body) {
        (_, None) => DynamicMessage::new(input.clone()),
        (Body::Whole, Some(json @ (Value::Object(_) | Value::Array(_)))) => read(&input, &json, form)?,
        (Body::Whole, Some(_)) => return Err("body must be a table".to_owned()),
        (Body::Field(field), Some(json)) => {
            let json = Value::Object(Map::from_iter([(field.json_name().to_owned(), json)]));
            read(&input, &json, form)?
        }
        (Body::Unused, Some(_)) => DynamicMessage::new(input.clone()),
    };
    if found.target.body != Body::Whole
        && let Some(query) = &request.query
    {
        for (name, value) in query_pairs(query).take(MAX_ARGUMENTS) {
            let name = decode_form(name);
            let value = decode_form(value.unwrap_or_default());
            let (Ok(name), Ok(value)) = (std::str::from_utf8(&name), std::str::from_utf8(&value)) else {
                return Err("the query is not UTF-8".to_owned());
            };
            // Arguments that are no fields may be for another reader.
            if let Some(field) = FieldPath::find(&input, name).filter(FieldPath::takes_text) {
                field
                    .set(&mut message, value, form)
                    .map_err(|error| field_error(&error, form))?;
            }
        }
    }
    for (field, value) in &found.values {
        let value = String::from_utf8(unescape(value).into_owned())
            .map_err(|_| "the path is not UTF-8".to_owned())?;
        field
            .set(&mut message, &value, form)
            .map_err(|error| field_error(&error, form))?;
    }
    Ok(message)
}

/// The message of a call for a method that needs no rule: of its JSON, else of its form or its query.
pub(super) fn by_fields(
    target: &Target,
    request: &Request,
    form: &JsonForm,
) -> Result<DynamicMessage, String> {
    let input = target.method.input();
    let method = request.method.as_slice();
    let content_type = request.headers.get(b"content-type").unwrap_or_default();
    let has_json = memchr::memmem::find(content_type, b"application/json").is_some();
    let body = request.body.as_deref().unwrap_or_default();
    if has_json && matches!(method, b"POST" | b"PUT" | b"PATCH") {
        match serde_json::from_slice::<Value>(body) {
            Ok(json) => return read(&input, &json, form),
            Err(error) if form.mapping == Mapping::Canonical && !body.is_empty() => {
                return Err(format!("decode json err: {error}"));
            }
            Err(_) => {}
        }
    }
    let pairs = match method {
        b"POST" => body,
        _ => request.query.as_deref().unwrap_or_default(),
    };
    let mut message = DynamicMessage::new(input.clone());
    for (name, value) in query_pairs(pairs).take(MAX_ARGUMENTS) {
        let (name, value) = (decode_form(name), decode_form(value.unwrap_or_default()));
        let (Ok(name), Ok(value)) = (std::str::from_utf8(&name), std::str::from_utf8(&value)) else {
            return Err("the fields are not UTF-8".to_owned());
        };
        if let Some(field) = FieldPath::find(&input, name).filter(FieldPath::takes_text) {
            field
                .set(&mut message, value, form)
                .map_err(|error| field_error(&error, form))?;
        }
    }
    Ok(message)
}

/// The message about a value that does not fit. The lenient mappings belong to originals that report no more.
fn field_error(error: &impl ToString, form: &JsonForm) -> String {
    match form.mapping {
        Mapping::Canonical => error.to_string(),
        Mapping::Fields | Mapping::FieldsAndTimes => "failed to encode payload".to_owned(),
    }
}

fn read(
    input: &prost_reflect::MessageDescriptor,
    json: &Value,
    form: &JsonForm,
) -> Result<DynamicMessage, String> {
    read_message(input, json, form).map_err(|error| field_error(&error, form))
}
