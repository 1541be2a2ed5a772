//! Changing the fields of request bodies, JSON or forms. Steps over headers and query stand elsewhere.

use serde_json::{Map, Value};
use weir_plugin::multipart::boundary;
use weir_plugin::{Exchange, Request};
use weir_plugins_shared::expression::EvaluationError;
use weir_plugins_shared::field_edits::{FieldEdits, Fields, Multipart, Pairs};

/// The form of a body with fields.
enum Form {
    Json,
    UrlEncoded,
    Multipart(Vec<u8>),
}

impl Form {
    fn of(request: &Request) -> Option<Self> {
        let content_type = request.headers.get(b"content-type")?;
        let lower = content_type.to_ascii_lowercase();
        let has = |text: &str| memchr::memmem::find(&lower, text.as_bytes()).is_some();
        if has("application/json") {
            Some(Self::Json)
        } else if has("multipart/form-data") {
            Some(Self::Multipart(boundary(content_type)?.to_vec()))
        } else {
            has("application/x-www-form-urlencoded").then_some(Self::UrlEncoded)
        }
    }
}

/// Whether the body has fields, as far as the head shows.
pub(super) fn has_fields(request: &Request) -> bool {
    Form::of(request).is_some()
}

/// The pairs of an urlencoded body.
pub(super) fn form_pairs(request: &Request) -> Option<Pairs> {
    match Form::of(request)? {
        Form::UrlEncoded => Some(Pairs::read(request.body.as_deref().unwrap_or_default())),
        Form::Json | Form::Multipart(_) => None,
    }
}

/// Changes the fields of the body; one that is not what its `Content-Type` says stays as it is.
///
/// # Errors
/// When an expression cannot be evaluated.
pub(super) fn change(steps: &FieldEdits, exchange: &mut Exchange) -> Result<(), EvaluationError> {
    let request = &exchange.request;
    if request.has_body && request.body.is_none() {
        // Too large to be read.
        return Ok(());
    }
    let body = request.body.as_deref().unwrap_or_default();
    let changed = match Form::of(request) {
        None => None,
        Some(Form::Json) => change_json(steps, body, exchange)?,
        Some(Form::UrlEncoded) => {
            let mut pairs = Pairs::read(body);
            steps.apply(&mut pairs, exchange)?.then(|| pairs.write())
        }
        Some(Form::Multipart(boundary)) => {
            let mut parts = Multipart::read(body, &boundary);
            steps.apply(&mut parts, exchange)?.then(|| parts.write())
        }
    };
    if let Some(body) = changed {
        set_body(&mut exchange.request, body);
    }
    Ok(())
}

fn change_json(
    steps: &FieldEdits,
    body: &[u8],
    exchange: &Exchange,
) -> Result<Option<Vec<u8>>, EvaluationError> {
    let parsed = match body.trim_ascii().is_empty() {
        true => Ok(Value::Object(Map::new())),
        false => serde_json::from_slice(body),
    };
    let Ok(Value::Object(mut map)) = parsed else {
        return Ok(None);
    };
    let fields: &mut dyn Fields = &mut map;
    let changed = steps.apply(fields, exchange)?;
    Ok(changed.then(|| Value::Object(map).to_string().into_bytes()))
}

/// Gives the request another body.
pub(crate) fn set_body(request: &mut Request, body: Vec<u8>) {
    request.forget_parsed_body();
    request.has_body = true;
    request.content_length = Some(body.len() as u64);
    request.body = Some(body);
}
