//! Reading resources: one, or a collection by pages and filters.

use super::call::{ApiCall, Target};
use super::encrypted_fields::redact;
use super::key::Role;
use super::kind::Kind;
use super::response::{ApiResponse, Outcome};
use super::state::{AdminState, DocumentEntry};
use super::write::etag;
use axum::http::StatusCode;
use axum::http::header::ETAG;
use regex::Regex;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use weir_plugin::uri::{decode_form, query_pairs};

/// A document as it is answered.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'e> {
    key: String,
    value: Cow<'e, Value>,
    created_index: u64,
    modified_index: u64,
}

impl<'e> Item<'e> {
    fn of(kind: Kind, entry: &'e DocumentEntry, role: Role) -> Self {
        Self {
            key: format!("/apisix/{}", entry.key),
            value: redact(kind, &entry.value, role),
            created_index: entry.created.0,
            modified_index: entry.modified.0,
        }
    }
}

/// A collection as it is answered.
#[derive(Serialize)]
struct Listing<'e> {
    total: usize,
    list: Vec<Item<'e>>,
}

/// Answers a read.
///
/// # Errors
/// The answer if there is nothing to read.
pub fn read(state: &AdminState, call: &ApiCall, target: &Target) -> Outcome {
    match &target.id {
        Some(id) => one(state, call, target, id),
        None => collection(state, call, target),
    }
    .map(ApiResponse::versioned)
    .map_err(ApiResponse::versioned)
}

fn one(state: &AdminState, call: &ApiCall, target: &Target, id: &str) -> Outcome {
    let entry = state.get(&target.key(id)).ok_or_else(ApiResponse::no_key)?;
    let item = Item::of(target.kind, entry, call.role);
    Ok(ApiResponse::json(StatusCode::OK, &item).with(ETAG, &etag(entry.modified)))
}

fn collection(state: &AdminState, call: &ApiCall, target: &Target) -> Outcome {
    let collection = target.collection();
    let count = state.count(&collection);
    let is_nested = matches!(target.kind, Kind::Credential | Kind::CostDecoration);
    if is_nested && count == 0 {
        return Err(ApiResponse::no_key());
    }
    let filter = Filter::of(call, target.kind);
    let takes = |entry: &&Arc<DocumentEntry>| filter.takes(&entry.value);
    let (total, list) = match page(call)? {
        None => {
            let list: Vec<_> = state.collection(&collection).filter(takes).collect();
            (list.len(), list)
        }
        Some((skipped, size)) if filter.is_none() => {
            let list = state.iter_by_created(&collection).skip(skipped).take(size);
            (count, list.collect())
        }
        Some((skipped, size)) => {
            let found: Vec<_> = state.iter_by_created(&collection).filter(takes).collect();
            let total = found.len();
            (total, found.into_iter().skip(skipped).take(size).collect())
        }
    };
    let list = list
        .into_iter()
        .map(|entry| Item::of(target.kind, entry, call.role))
        .collect();
    Ok(ApiResponse::json(StatusCode::OK, &Listing { total, list }))
}

/// The page that is asked for: how many documents come before it, and how many are in it; `None`: all are asked for.
fn page(call: &ApiCall) -> Outcome<Option<(usize, usize)>> {
    let number = |name: &str| call.arg(name)?.trim().parse::<f64>().ok();
    let (Some(page), Some(size)) = (number("page"), number("page_size")) else {
        return Ok(None);
    };
    if !(10.0..=500.0).contains(&size) {
        return Err(ApiResponse::text(
            StatusCode::BAD_REQUEST,
            "page_size must be between 10 and 500",
        ));
    }
    // Neither is negative; the conversions saturate.
    let (page, size) = (page.max(1.0) as usize, size as usize);
    Ok(Some(((page - 1).saturating_mul(size), size)))
}

/// The filters of a listing.
struct Filter<'c> {
    name: Option<Finder>,
    label: Option<&'c str>,
    uri: Option<Finder>,
    fields: Vec<(String, String)>,
}

/// Finds what is asked for in a text.
enum Finder {
    Pattern(Regex),
    /// A pattern that cannot be read finds nothing.
    Nothing,
}

impl Finder {
    fn of(pattern: &str) -> Self {
        Regex::new(pattern).map_or(Self::Nothing, Self::Pattern)
    }

    fn finds(&self, text: Option<&Value>) -> bool {
        match (self, text.and_then(Value::as_str)) {
            (Self::Pattern(pattern), Some(text)) => pattern.is_match(text),
            _ => false,
        }
    }
}

impl<'c> Filter<'c> {
    fn of(call: &'c ApiCall, kind: Kind) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(&decode_form(bytes)).into_owned();
        let mut fields: Vec<(String, String)> = Vec::new();
        for (name, value) in query_pairs(call.arg("filter").unwrap_or_default().as_bytes()) {
            let (name, value) = (text(name), text(value.unwrap_or_default()));
            // Of a field that is given several times, the last counts; unknown ones are passed over.
            fields.retain(|(known, _)| *known != name);
            if kind.filter_fields().contains(&name.as_str()) {
                fields.push((name, value));
            }
        }
        Self {
            name: call.arg("name").map(Finder::of),
            label: call.arg("label"),
            uri: call.arg("uri").map(Finder::of),
            fields,
        }
    }

    /// Whether it takes everything.
    fn is_none(&self) -> bool {
        self.name.is_none() && self.label.is_none() && self.uri.is_none() && self.fields.is_empty()
    }

    fn takes(&self, value: &Value) -> bool {
        let uris = || value.get("uris").and_then(Value::as_array).into_iter().flatten();
        let labels = value.get("labels");
        self.name
            .as_ref()
            .is_none_or(|name| name.finds(value.get("name")))
            && self
                .label
                .is_none_or(|label| labels.is_some_and(|labels| labels.get(label).is_some()))
            && self
                .uri
                .as_ref()
                .is_none_or(|uri| uri.finds(value.get("uri")) || uris().any(|it| uri.finds(Some(it))))
            && self
                .fields
                .iter()
                .all(|(name, wanted)| value.get(name).and_then(Value::as_str) == Some(wanted))
    }
}
