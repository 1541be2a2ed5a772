//! Storing what a call changes, with the engine that all Admin APIs share; and the original's answers to what fails.

use super::Admin;
use super::call::ApiCall;
use super::response::{ApiResponse, DRY_RUN, Outcome};
use super::state::{AdminState, PREFIX};
use super::takeover_rights;
use super::unserved::{DocumentChanges, WarningsJob};
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

/// What a write comes to for its caller.
struct CommitResult {
    answer: ApiResponse,
    /// Whether a document is there afterwards, whose revision is answered.
    is_kept: bool,
    changes: DocumentChanges,
}

impl Admin {
    /// Plans a write and commits it. The answer says what of it is not served as it is written.
    pub(super) async fn commit(
        &self,
        call: &ApiCall,
        plan: impl Fn(&AdminState) -> Outcome<ChangePlan>,
    ) -> ApiResponse {
        let (answer, changes) = self.commit_without_warnings(call, plan).await;
        let Some(job) = self.warnings_job(changes) else {
            return answer;
        };
        // What fails here does not make a write fail that is stored.
        let warnings = tokio::task::spawn_blocking(move || job.run()).await;
        answer.with_warnings(warnings.unwrap_or_default())
    }

    /// The state is held for this only: writers would wait for the job.
    fn warnings_job(&self, changes: DocumentChanges) -> Option<WarningsJob> {
        let state = self.state();
        WarningsJob::new(&state, changes, &self.options)
    }

    /// Plans a write and commits it. Also returns the changes that were stored or tried.
    pub(super) async fn commit_without_warnings(
        &self,
        call: &ApiCall,
        plan: impl Fn(&AdminState) -> Outcome<ChangePlan>,
    ) -> (ApiResponse, DocumentChanges) {
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
            Ok(weir_dialect::WritePlan {
                changes: changes_of(call, &plan)?,
                answer: CommitResult {
                    answer: plan.answer,
                    is_kept,
                    changes: plan.changes,
                },
            })
        };
        match self.replica.write(&writer, planned).await {
            Ok(WriteOutcome::Tried(done)) => (done.answer.with(DRY_RUN, "true"), done.changes),
            Ok(WriteOutcome::Stored(done, revision)) if done.is_kept => {
                (done.answer.with(ETAG, &etag(revision)), done.changes)
            }
            Ok(WriteOutcome::Unchanged(done) | WriteOutcome::Stored(done, _)) => (done.answer, done.changes),
            Err(error) => (refusal(error), Vec::new()),
        }
    }
}

/// The answer to a write that was not made.
fn refusal(error: WriteError<ApiResponse>) -> ApiResponse {
    let message = match error {
        WriteError::Refused(answer) => return answer,
        WriteError::Failed(WriteFailure::Busy) => "value changed before overwritten".to_owned(),
        WriteError::Failed(error) => error.to_string(),
    };
    ApiResponse::error(StatusCode::SERVICE_UNAVAILABLE, message)
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
