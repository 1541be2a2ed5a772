//! Native resources: `/api/v1/resources/KIND/NAME`, each a document `native/KIND/NAME` of the store.

use super::checking::Dependent;
use super::document_cache::PREFIX;
use super::precondition::{Precondition, tag_of};
use super::problem::Problem;
use super::shapes::List;
use super::writing::WriteResult;
use super::{Api, demand, is_dry_run};
use crate::access::{Caller, EVERYWHERE, Role};
use crate::api::json_body::Json;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use weir_model::{Diagnostic, document, secrets};
use weir_native::incremental::{KINDS, current_kind};
use weir_store::{Change, Document, Key, Transaction};

/// Resources on a page, if the call asks for no other number; and at most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1000;
/// The longest note of a commit, in characters.
const MAX_NOTE: usize = 500;

/// The subject of a write.
pub struct ResourceWrite<'w> {
    pub caller: &'w Caller,
    pub headers: &'w HeaderMap,
    pub note: String,
    pub key: Key,
    /// `None`: the document is to go.
    pub value: Option<Value>,
    /// Whether there must be none yet.
    pub is_new: bool,
}

impl Api {
    /// Checks and commits a write.
    pub async fn write(&self, write: ResourceWrite<'_>) -> Result<WriteResult, Problem> {
        demand(write.caller, Role::Write)?;
        if let Some((kind, name)) = write
            .key
            .as_str()
            .strip_prefix(PREFIX)
            .and_then(|it| it.split_once('/'))
        {
            super::apis::refuse_owned(self, kind, name).await?;
        }
        let precondition = Precondition::of(write.headers);
        let mut turn = self.resources.turn().await;
        loop {
            let (version, before) = {
                let state = turn.attempt()?;
                (state.version(), state.get(&write.key).cloned())
            };
            let known = before.as_ref().map(|it| it.modified);
            if !precondition.holds(known) {
                return Err(precondition.refusal(&*self.store, &write.key, known).await);
            }
            match (&write.value, &before) {
                (None, None) => return Err(Problem::not_found(&write.key)),
                (Some(_), Some(_)) if write.is_new => {
                    return Err(Problem::new(
                        StatusCode::CONFLICT,
                        format!("{} exists", write.key),
                    ));
                }
                _ => {}
            }
            let warnings = self.resources.check(&write.key, write.value.as_ref()).await?;
            if is_dry_run(write.headers) {
                return Ok(WriteResult::dry(before.is_some(), write.value).with_warnings(&warnings));
            }
            let change = match &write.value {
                Some(value) => Change::put(write.key.clone(), value.to_string().into_bytes()),
                None => Change::Delete {
                    key: write.key.clone(),
                },
            };
            let transaction = Transaction {
                author: write.caller.name(),
                note: write.note.clone(),
                time: SystemTime::now(),
                changes: vec![change],
            };
            if let Some(revision) = turn.commit(transaction, version).await? {
                let written = WriteResult::done(before.is_some(), write.value, revision);
                return Ok(written.with_warnings(&warnings));
            }
        }
    }
}

pub fn key_of(kind: &str, name: &str) -> Result<Key, Problem> {
    let kind = current_kind(kind);
    if !KINDS.iter().any(|(known, _)| *known == kind) {
        return Err(Problem::not_found(format_args!("the kind '{kind}'")));
    }
    if name.contains('/') {
        return Err(Problem::bad("a name has no '/'"));
    }
    Key::new(&format!("{PREFIX}{kind}/{name}")).map_err(|error| Problem::bad(error.to_string()))
}

fn parse(body: &str) -> Result<Map<String, Value>, Problem> {
    match document::parse_noting_repeats(body) {
        Ok((Value::Object(fields), repeats)) => match repeats.first() {
            None => Ok(fields),
            Some(repeat) => Err(unread(repeat)),
        },
        Ok(_) => Err(Problem::bad("expected a map")),
        Err(found) => Err(unread(&found)),
    }
}

/// The refusal of a text, with its line.
fn unread(found: &Diagnostic) -> Problem {
    match found.line {
        Some(line) => Problem::bad(format!("line {line}: {}", found.message)),
        None => Problem::bad(&*found.message),
    }
}

/// A page of resources.
#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(rename = "ResourcesQuery")]
pub struct Page {
    /// At most so many.
    size: Option<usize>,
    /// Those after this name.
    after: Option<String>,
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(kind): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<Value>, Problem> {
    demand(&caller, Role::Read)?;
    let prefix = format!("{PREFIX}{}/", current_kind(&kind));
    key_of(&kind, "x")?;
    let size = page.size.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let begin = format!("{prefix}{}", page.after.as_deref().unwrap_or_default());
    // One more shows whether there is another page.
    let mut page = api.resources.page(&prefix, &begin, size + 1);
    let has_more = page.len() > size;
    page.truncate(size);
    let last = page.last().map(|it| it.key.as_str()[prefix.len()..].to_owned());
    let next = last.filter(|_| has_more);
    let items = page.iter().map(|document| to_response(&caller, document));
    Ok(Json(json!({ "items": items.collect::<Vec<_>>(), "next": next })))
}

/// A document as it is shown: secrets are for callers who may write.
fn to_response(caller: &Caller, document: &Document) -> Value {
    let mut value: Value = serde_json::from_slice(&document.value).unwrap_or_default();
    if !caller.may(Role::Write, EVERYWHERE) {
        secrets::hide(&mut value);
    }
    value
}

pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((kind, name)): Path<(String, String)>,
) -> Result<Response, Problem> {
    demand(&caller, Role::Read)?;
    let key = key_of(&kind, &name)?;
    let document = api.resources.get(&key).ok_or_else(|| Problem::not_found(&key))?;
    let headers = [
        (header::ETAG, tag_of(document.modified)),
        (header::CONTENT_TYPE, "application/json".to_owned()),
    ];
    Ok((headers, to_response(&caller, &document).to_string()).into_response())
}

pub async fn put(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((kind, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<WriteResult, Problem> {
    let mut fields = parse(&body)?;
    name_it(&mut fields, &kind, &name);
    let write = ResourceWrite {
        caller: &caller,
        headers: &headers,
        note: note(&headers, &Method::PUT, &kind, &name),
        key: key_of(&kind, &name)?,
        value: Some(Value::Object(fields)),
        is_new: false,
    };
    api.write(write).await
}

pub async fn create(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(kind): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<WriteResult, Problem> {
    let fields = parse(&body)?;
    let field = KINDS
        .iter()
        .find(|(known, _)| *known == kind)
        .map_or("name", |(_, field)| field);
    let name = fields
        .get(field)
        .or_else(|| fields.get("name"))
        .and_then(Value::as_str);
    let name = name
        .ok_or_else(|| Problem::bad(format!("expected a text in the field '{field}'")))?
        .to_owned();
    let write = ResourceWrite {
        caller: &caller,
        headers: &headers,
        note: note(&headers, &Method::POST, &kind, &name),
        key: key_of(&kind, &name)?,
        value: Some(Value::Object(fields)),
        is_new: true,
    };
    api.write(write).await
}

pub async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((kind, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<WriteResult, Problem> {
    let write = ResourceWrite {
        caller: &caller,
        headers: &headers,
        note: note(&headers, &Method::DELETE, &kind, &name),
        key: key_of(&kind, &name)?,
        value: None,
        is_new: false,
    };
    api.write(write).await
}

/// Answers `GET /api/v1/resources/{kind}/{name}/dependents`.
pub async fn dependents(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((kind, name)): Path<(String, String)>,
) -> Result<Json<List<Dependent>>, Problem> {
    demand(&caller, Role::Read)?;
    let key = key_of(&kind, &name)?;
    api.resources.get(&key).ok_or_else(|| Problem::not_found(&key))?;
    let items = api.resources.dependents(&key).await?;
    Ok(Json(List { items }))
}

/// Gives a resource the name that it is called by, unless it says one itself.
pub fn name_it(fields: &mut Map<String, Value>, kind: &str, name: &str) {
    let kind = current_kind(kind);
    let field = KINDS
        .iter()
        .find(|(known, _)| *known == kind)
        .map_or("name", |(_, field)| *field);
    if !fields.contains_key(field) && !fields.contains_key("name") {
        fields.insert(field.to_owned(), name.into());
    }
}

/// Why it is written, as the caller says, or which call it was. A header holds no letters beyond ASCII: they are
/// percent-encoded.
fn note(headers: &HeaderMap, method: &Method, kind: &str, name: &str) -> String {
    note_or(headers, &format!("{method} /api/v1/resources/{kind}/{name}"))
}

/// Why it is written, as the caller says, or this.
pub fn note_or(headers: &HeaderMap, standard: &str) -> String {
    let given = headers
        .get("weir-note")
        .map(|note| percent_decode(note.as_bytes()));
    let given = given.map(|note| {
        note.decode_utf8_lossy()
            .chars()
            .take(MAX_NOTE)
            .collect::<String>()
    });
    match given.filter(|note| !note.trim().is_empty()) {
        Some(note) => note,
        None => standard.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_commit_says_why() {
        let long = "x".repeat(MAX_NOTE + 1);
        for (given, expected) in [
            (None, "PUT /api/v1/resources/routes/r"),
            (Some(""), "PUT /api/v1/resources/routes/r"),
            (Some("%20 "), "PUT /api/v1/resources/routes/r"),
            (Some("two words"), "two words"),
            (Some("f%C3%BCr%20alle%0A"), "f\u{fc}r alle\n"),
            (Some("%ff"), "\u{fffd}"),
            (Some(long.as_str()), &long[1..]),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(given) = given {
                headers.insert("weir-note", HeaderValue::from_str(given).expect("a header"));
            }
            assert_eq!(note(&headers, &Method::PUT, "routes", "r"), expected, "{given:?}");
        }
    }
}
