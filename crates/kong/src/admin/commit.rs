//! Storing what a call changes: worked out on the state in memory, committed on condition that nothing else was, and
//! worked out again where something was.

use super::Admin;
use super::call::Call;
use super::failure::Failure;
use super::plan::Plan;
use super::response::ApiResponse;
use super::state::{PREFIX, State};
use std::time::{Duration, SystemTime};
use weir_store::{Author, Change, CommitError, Document, Revision, Transaction};

/// How often a call is worked out again because another writer was faster.
const ATTEMPTS: usize = 32;
/// How long to wait until what another writer committed has come in.
const CATCH_UP: Duration = Duration::from_secs(5);

/// Who changes something, and what for.
#[derive(Debug)]
pub struct Writer {
    /// Who.
    pub author: Author,
    /// What for, in a few words.
    pub note: String,
    /// Whether nothing is to be stored.
    pub is_dry: bool,
}

impl Writer {
    /// The one that makes a call.
    pub fn of(call: &Call) -> Self {
        Self {
            author: call.author.clone(),
            note: call.note(),
            is_dry: call.dry_run,
        }
    }
}

impl Admin {
    /// Works changes out and stores them. `plan` is called with the state as it is, again for each attempt.
    ///
    /// # Errors
    /// `plan` refuses, or the store fails; nothing was changed.
    pub async fn write(
        &self,
        writer: &Writer,
        plan: impl Fn(&State) -> Result<Plan, Failure>,
    ) -> Result<ApiResponse, Failure> {
        // Writers of this process take turns: they would only be in each other's way.
        let _turn = self.turn.lock().await;
        for _ in 0..ATTEMPTS {
            let (plan, expected) = {
                let state = self.state();
                (plan(&state)?, state.revision)
            };
            if writer.is_dry {
                return Ok(plan.answer.tried());
            }
            if plan.changes.is_empty() {
                return Ok(plan.answer);
            }
            let transaction = Transaction {
                author: writer.author.0.to_string(),
                note: writer.note.clone(),
                time: SystemTime::now(),
                changes: plan.changes.clone(),
            };
            match self.store.commit(transaction, expected).await {
                Ok(revision) => {
                    self.take_over(plan.changes, revision);
                    return Ok(if plan.has_document {
                        plan.answer.with_revision(revision)
                    } else {
                        plan.answer
                    });
                }
                // The store was set back.
                Err(CommitError::Conflict { current }) if current < expected => {
                    self.read_again().await.map_err(|error| {
                        tracing::error!(%error, "a change was not stored");
                        Failure(ApiResponse::unexpected())
                    })?;
                }
                Err(CommitError::Conflict { current }) => self.catch_up(current).await?,
                Err(error) => {
                    tracing::error!(%error, "a change was not stored");
                    return Err(Failure(ApiResponse::unexpected()));
                }
            }
        }
        tracing::error!("a change was not stored: other writers were faster {ATTEMPTS} times");
        Err(Failure(ApiResponse::unexpected()))
    }

    /// Takes over what this process committed itself, before the store tells it.
    fn take_over(&self, changes: Vec<Change>, revision: Revision) {
        let mut state = self.state_mut();
        if state.revision >= revision {
            return;
        }
        let is_own = |change: &Change| change.key().as_str().starts_with(PREFIX);
        if changes.iter().any(is_own) {
            state.changed = revision;
        }
        for change in changes {
            match change {
                Change::Put { key, value, .. } => {
                    let document = Document {
                        key: key.clone(),
                        value,
                        created: revision,
                        modified: revision,
                    };
                    state.apply(&key, Some(&document));
                }
                Change::Delete { key } => state.apply(&key, None),
            }
        }
        state.revision = revision;
        drop(state);
        self.progress.send_replace(revision);
    }

    /// Waits until everything up to a revision has come in.
    async fn catch_up(&self, revision: Revision) -> Result<(), Failure> {
        let mut progress = self.progress.subscribe();
        let arrived = progress.wait_for(|reached| *reached >= revision);
        match tokio::time::timeout(CATCH_UP, arrived).await {
            Ok(Ok(_)) => Ok(()),
            _ => {
                tracing::error!(%revision, "the store tells of no change, though there was one");
                Err(Failure(ApiResponse::unexpected()))
            }
        }
    }
}
