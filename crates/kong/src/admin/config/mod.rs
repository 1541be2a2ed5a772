//! `/config`: the entities of a workspace as one declarative configuration, taken and given whole.

mod flatten;
mod load;
mod yaml;
use super::Admin;
use super::call::{ApiCall, RequestBody};
use super::commit::writer_of;
use super::failure::{self, Failure};
use super::plan::{ChangePlan, WorkspaceView};
use super::response::ApiResponse;
use super::state::AdminState;
use crate::Options;
use aws_lc_rs::digest;
use axum::http::{Method, StatusCode};
use load::Loaded;
use serde_json::{Map, Value, json};
use std::time::SystemTime;
use weir_dialect::{DEFAULT_WORKSPACE, Writer};
use weir_model::secrets;
use weir_store::Revision;

/// The hash of the configuration that was taken last, and the revision from which it was that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedConfig {
    hash: Vec<u8>,
    workspace: String,
    revision: Revision,
}

/// The request of a call.
struct ConfigRequest {
    document: Document,
    flatten_errors: bool,
    check_hash: bool,
}

enum Document {
    Text(String),
    Value(Value),
}

impl Document {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Value(value) => value.to_string(),
        }
    }
}

/// Whether a call is for the configuration.
pub fn is_meant(call: &ApiCall) -> bool {
    call.path.len() == 1 && call.path[0] == "config"
}

/// Answers a call for the configuration.
///
/// # Errors
/// Why it is refused; nothing was changed.
pub async fn answer(admin: &Admin, call: &ApiCall) -> Result<ApiResponse, Failure> {
    if admin.options.has_no_config
        && !call.may_use_config
        && matches!(call.method, Method::GET | Method::HEAD | Method::POST)
    {
        return Err(Failure::message(
            StatusCode::BAD_REQUEST,
            "this endpoint is only available when Kong is configured to not use a database",
        ));
    }
    match call.method {
        Method::OPTIONS => Ok(ApiResponse::options("GET, HEAD, OPTIONS, POST")),
        Method::GET | Method::HEAD => {
            let state = admin.state();
            let mut config = load::export(WorkspaceView::of(&state, call, SystemTime::now()));
            if !call.rights.may_write(&call.workspace) {
                secrets::hide(&mut config);
            }
            let answer = ApiResponse::ok(&json!({ "config": yaml::write(&config) }));
            Ok(answer.with_revision(state.changed))
        }
        Method::POST => take(admin, call).await,
        _ => Ok(ApiResponse::method_not_allowed()),
    }
}

async fn take(admin: &Admin, call: &ApiCall) -> Result<ApiResponse, Failure> {
    let brought = read(call)?;
    let hash = hash(&brought.document);
    if brought.check_hash && admin.is_taken(&hash, &call.workspace) {
        return Ok(ApiResponse::bytes(StatusCode::NOT_MODIFIED, Vec::new()));
    }
    let text = admin.file.as_ref().map(|_| brought.document.text());
    let loaded = load(admin, brought.document, brought.flatten_errors).await?;
    let writer = writer_of(call);
    let write = || admin.write(&writer, |state| plan(admin, state, call, &loaded));
    let answer = match (&admin.file, text) {
        (Some(file), Some(text)) if !call.dry_run => {
            admin.check_match(call)?;
            // What the caller may not do is not served either.
            plan(admin, &admin.state(), call, &loaded)?;
            let turn = file.turn().await;
            let served = turn.replace(text.into()).await;
            let number = served.map_err(|reason| Failure::declarative(&json!({ "error": reason })))?;
            let answer = write().await?;
            turn.publish(number);
            answer
        }
        _ => write().await?,
    };
    if !call.dry_run {
        admin.note_taken(hash, &call.workspace);
    }
    Ok(answer)
}

/// Takes the entities of a text that is served already.
///
/// # Errors
/// They cannot be read.
pub async fn read_text(admin: &Admin, text: String, writer: &Writer) -> Result<(), Failure> {
    let document = Document::Text(text);
    let hash = hash(&document);
    let loaded = load(admin, document, false)
        .await
        .inspect_err(|Failure(answer)| {
            let reason = String::from_utf8_lossy(&answer.body);
            tracing::error!(%reason, "the configuration is served, but the Admin API cannot read it");
        })?;
    let plan = |state: &AdminState| {
        let view = WorkspaceView::new(state, DEFAULT_WORKSPACE, SystemTime::now());
        Ok(ChangePlan {
            changes: loaded.changes(view, false)?,
            answer: ApiResponse::no_content(),
            has_document: false,
        })
    };
    admin.write(writer, plan).await?;
    admin.note_taken(hash, DEFAULT_WORKSPACE);
    Ok(())
}

async fn load(admin: &Admin, document: Document, flatten_errors: bool) -> Result<Loaded, Failure> {
    let options = admin.options.translation;
    let loading = tokio::task::spawn_blocking(move || load_document(document, &options, flatten_errors));
    loading.await.map_err(|_| Failure(ApiResponse::unexpected()))?
}

fn load_document(document: Document, options: &Options, flatten_errors: bool) -> Result<Loaded, Failure> {
    let unreadable = |message: &str| {
        let message = format!("failed parsing declarative configuration: {message}");
        Failure::declarative(&json!({ "error": message }))
    };
    let value = match document {
        Document::Value(value) => value,
        Document::Text(text) => {
            weir_model::document::parse(&text).map_err(|error| unreadable(&error.message))?
        }
    };
    if !value.is_object() {
        return Err(unreadable("expected an object"));
    }
    Loaded::read(&value, options, SystemTime::now()).map_err(|found| {
        let mut fields = load::tree(&value, &found);
        if flatten_errors {
            let flattened = flatten::flatten(&load::with_ids(&value, &found), &mut fields);
            let mut body = failure::declarative(&fields);
            body["flattened_errors"] = if flattened.is_empty() {
                json!({})
            } else {
                flattened.into()
            };
            return Failure(ApiResponse::json(StatusCode::BAD_REQUEST, &body));
        }
        Failure::declarative(&fields)
    })
}

fn plan(admin: &Admin, state: &AdminState, call: &ApiCall, loaded: &Loaded) -> Result<ChangePlan, Failure> {
    call.check_match(Some(state.changed))?;
    let view = WorkspaceView {
        others: admin.options.others.as_deref(),
        ..WorkspaceView::of(state, call, SystemTime::now())
    };
    Ok(ChangePlan {
        changes: loaded.changes(view, call.is_confined)?,
        answer: ApiResponse::json(
            StatusCode::CREATED,
            &loaded.entities_json(view.workspace, call.dry_run),
        )
        .with_warnings(loaded.warnings()),
        has_document: false,
    })
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() == Some(1.0),
        Value::String(text) => matches!(text.to_lowercase().as_str(), "true" | "1" | "on" | "yes"),
        _ => false,
    }
}

fn read(call: &ApiCall) -> Result<ConfigRequest, Failure> {
    let mut fields: Map<String, Value> = call
        .query
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    let is_flag = |name: &str| matches!(name, "flatten_errors" | "check_hash");
    let mut document = None;
    match &call.body {
        RequestBody::Json(Value::Object(given)) | RequestBody::Form(given) => {
            fields.extend(given.iter().filter(|(name, _)| is_flag(name)).map(own));
            if given.contains_key("_format_version") {
                let whole = given.iter().filter(|(name, _)| !is_flag(name)).map(own);
                document = Some(Document::Value(Value::Object(whole.collect())));
            } else {
                document = given.get("config").and_then(given_document);
            }
            // A JSON body without any of this is taken for a configuration.
            if document.is_none() && matches!(&call.body, RequestBody::Json(_)) && !given.is_empty() {
                document = Some(Document::Value(Value::Object(given.clone())));
            }
        }
        RequestBody::Json(other) => document = Some(Document::Value(other.clone())),
        RequestBody::Text(text) if !text.is_empty() => {
            document = Some(Document::Text(String::from_utf8_lossy(text).into_owned()));
        }
        _ => {}
    }
    let document = document
        .ok_or_else(|| Failure::message(StatusCode::BAD_REQUEST, "expected a declarative configuration"))?;
    Ok(ConfigRequest {
        document,
        flatten_errors: fields.get("flatten_errors").is_some_and(is_true),
        check_hash: fields
            .get("check_hash")
            .is_some_and(|value| *value == json!("1") || *value == json!(1)),
    })
}

fn own((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn given_document(config: &Value) -> Option<Document> {
    match config {
        Value::String(text) => Some(Document::Text(text.clone())),
        Value::Object(_) => Some(Document::Value(config.clone())),
        _ => None,
    }
}

fn hash(document: &Document) -> Vec<u8> {
    let hash = |bytes: &[u8]| digest::digest(&digest::SHA256, bytes).as_ref().to_vec();
    match document {
        Document::Text(text) => hash(text.as_bytes()),
        Document::Value(value) => hash(&serde_json::to_vec(value).unwrap_or_default()),
    }
}

impl Admin {
    /// Whether the workspace still holds what a configuration with this hash brought.
    fn is_taken(&self, hash: &[u8], workspace: &str) -> bool {
        let changed = self.state().changed;
        let taken = self
            .taken
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        taken
            .as_ref()
            .is_some_and(|it| it.hash == hash && it.workspace == workspace && it.revision == changed)
    }

    /// Checks that a call replaces what its caller knows.
    fn check_match(&self, call: &ApiCall) -> Result<(), Failure> {
        call.check_match(Some(self.state().changed))
    }

    /// The hash of the configuration that is served, in as many digits as the original's.
    pub(super) fn configuration_hash(&self) -> String {
        let taken = (self.taken.lock()).unwrap_or_else(std::sync::PoisonError::into_inner);
        let hash = taken.as_ref().map_or(&[0; 16][..], |taken| &taken.hash[..16]);
        data_encoding::HEXLOWER.encode(hash)
    }

    fn note_taken(&self, hash: Vec<u8>, workspace: &str) {
        let revision = self.state().changed;
        let mut taken = self
            .taken
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *taken = Some(AppliedConfig {
            hash,
            workspace: workspace.to_owned(),
            revision,
        });
    }
}
