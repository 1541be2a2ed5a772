//! Storing what a call changes, with the engine that all Admin APIs share; and the original's answers to what fails.

use super::Admin;
use super::call::ApiCall;
use super::response::{ApiResponse, DRY_RUN, Outcome};
use super::state::{AdminState, PREFIX};
use super::takeover_rights;
use super::unserved;
use super::write::{ChangePlan, etag};
use axum::http::StatusCode;
use axum::http::header::ETAG;
use serde_json::Value;
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::{WriteError, WriteFailure, WriteOutcome, Writer};
use weir_store::{Change, Key};

/// Refuses plugins that name files, vaults, and the whole gateway's own log, to callers who may not write everywhere.
pub(super) fn check_confined(call: &ApiCall, plan: &ChangePlan) -> Result<(), ApiResponse> {
    let message = if plan.changes.iter().any(sends_own_log) {
        "the log is about all workspaces: this takes the right to write in all of them"
    } else if plan.changes.iter().any(names_file) {
        "files are the operator's: this takes the right to write in all workspaces"
    } else if plan.changes.iter().any(is_vault) {
        "a vault with an address serves all workspaces: this takes the right to write in all of them"
    } else {
        return Ok(());
    };
    match call.is_confined {
        true => Err(ApiResponse::error(StatusCode::FORBIDDEN, message)),
        false => Ok(()),
    }
}

impl Admin {
    /// Plans a write and commits it.
    pub(super) async fn commit(
        &self,
        call: &ApiCall,
        plan: impl Fn(&AdminState) -> Outcome<ChangePlan>,
    ) -> ApiResponse {
        let writer = Writer {
            author: call.author.clone(),
            note: format!("{} {}", call.method, call.path),
            time: call.time,
            is_dry: call.is_dry_run(),
        };
        let planned = |state: &AdminState| {
            let plan = plan(state)?;
            check_confined(call, &plan)?;
            takeover_rights::check(call, &plan, state, &self.options)?;
            let is_kept = matches!(plan.changes.first(), Some((_, Some(_))));
            let warnings = unserved::warnings(state, &plan.changes, &self.options);
            Ok(weir_dialect::WritePlan {
                changes: changes_of(call, &plan)?,
                answer: (plan.answer.with_warnings(warnings), is_kept),
            })
        };
        match self.replica.write(&writer, planned).await {
            Ok(WriteOutcome::Tried((answer, _))) => answer.with(DRY_RUN, "true"),
            Ok(WriteOutcome::Stored((answer, true), revision)) => answer.with(ETAG, &etag(revision)),
            Ok(WriteOutcome::Unchanged((answer, _)) | WriteOutcome::Stored((answer, false), _)) => answer,
            Err(WriteError::Refused(refusal)) => refusal,
            Err(WriteError::Failed(WriteFailure::Busy)) => ApiResponse::error(
                StatusCode::SERVICE_UNAVAILABLE,
                "value changed before overwritten",
            ),
            Err(WriteError::Failed(error)) => {
                ApiResponse::error(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
        }
    }
}

/// The changes of a plan as the store takes them.
fn changes_of(call: &ApiCall, plan: &ChangePlan) -> Outcome<Vec<Change>> {
    let changes = plan.changes.iter().map(|(key, value)| {
        let key = Key::new(&format!("{PREFIX}{key}")).map_err(|_| ApiResponse::bad("invalid id"))?;
        Ok(match value {
            None => Change::Delete { key },
            Some(value) => Change::Put {
                key,
                value: stored(value, plan.time_to_live.and_then(|it| call.time.checked_add(it)))?,
                time_to_live: plan.time_to_live,
            },
        })
    });
    changes.collect()
}

/// A document as the store keeps it, with its end if it has one.
fn stored(value: &Value, end: Option<SystemTime>) -> Outcome<Arc<[u8]>> {
    let text = match end {
        None => serde_json::to_vec(value),
        Some(end) => {
            let mut value = value.clone();
            crate::expiry::set(&mut value, end);
            serde_json::to_vec(&value)
        }
    };
    text.map(Into::into)
        .map_err(|error| ApiResponse::bad(error.to_string()))
}

/// Whether a document has the address of a vault: the control plane asks there, too.
fn is_vault((key, value): &(String, Option<Value>)) -> bool {
    value.is_some() && key.starts_with("secrets/")
}

/// Whether a document has the gateway send its own log somewhere.
fn sends_own_log((key, value): &(String, Option<Value>)) -> bool {
    value.is_some() && key == "plugin_metadata/error-log-logger"
}

/// Whether a document has a plugin write a file of this machine.
fn names_file((key, value): &(String, Option<Value>)) -> bool {
    let Some(value) = value else { return false };
    let config = match key.as_str() {
        "plugin_metadata/file-logger" => value,
        _ => &value["plugins"]["file-logger"],
    };
    let is_stream = matches!(config["path"].as_str(), Some("/dev/stdout" | "/dev/stderr"));
    !config.is_null() && !is_stream
}
