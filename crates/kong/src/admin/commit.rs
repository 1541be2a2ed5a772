//! Storing what a call changes, with the engine that all Admin APIs share; and the original's answers to what fails.

use super::Admin;
use super::call::ApiCall;
use super::failure::Failure;
use super::plan::ChangePlan;
use super::response::ApiResponse;
use super::state::AdminState;
use std::time::SystemTime;
use weir_dialect::{WriteError, WriteOutcome, Writer};

/// The one that makes a call.
pub fn writer_of(call: &ApiCall) -> Writer {
    Writer {
        author: call.author.clone(),
        note: call.note(),
        time: SystemTime::now(),
        is_dry: call.dry_run,
    }
}

impl Admin {
    /// Works changes out and stores them. `plan` is called with the state as it is, again for each attempt.
    ///
    /// # Errors
    /// `plan` refuses, or the changes cannot be stored; the log says why.
    pub async fn write(
        &self,
        writer: &Writer,
        plan: impl Fn(&AdminState) -> Result<ChangePlan, Failure>,
    ) -> Result<ApiResponse, Failure> {
        let planned = |state: &AdminState| {
            let plan = plan(state)?;
            Ok(weir_dialect::WritePlan {
                changes: plan.changes,
                answer: (plan.answer, plan.has_document),
            })
        };
        match self.replica.write(writer, planned).await {
            Ok(WriteOutcome::Tried((answer, _))) => Ok(answer.tried()),
            Ok(WriteOutcome::Stored((answer, true), revision)) => Ok(answer.with_revision(revision)),
            Ok(WriteOutcome::Unchanged((answer, _)) | WriteOutcome::Stored((answer, false), _)) => Ok(answer),
            Err(WriteError::Refused(failure)) => Err(failure),
            Err(WriteError::Failed(error)) => {
                tracing::error!(%error, "a change cannot be stored");
                Err(Failure(ApiResponse::unexpected()))
            }
        }
    }
}
