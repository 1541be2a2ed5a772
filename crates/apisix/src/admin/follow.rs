//! Keeping up with the store: what others write, and what this API commits.

use super::Admin;
use super::call::Call;
use super::response::{ApiResponse, DRY_RUN, Outcome};
use super::state::{Entry, PREFIX, State};
use super::write::{Plan, etag};
use axum::http::StatusCode;
use axum::http::header::ETAG;
use serde_json::Value;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use weir_store::{Change, Changes, CommitError, Key, Revision, Transaction, WatchError};

/// How often a write is planned again because another writer was faster.
const ATTEMPTS: usize = 16;
/// How long a write waits until what was faster has arrived; then everything is read again.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long until a lost store is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Refuses plugins that name files to callers who may not write everywhere.
pub(super) fn check_files(call: &Call, plan: &Plan) -> Result<(), ApiResponse> {
    if call.is_confined && plan.changes.iter().any(names_file) {
        let message = "files are the operator's: this takes the right to write in all workspaces";
        return Err(ApiResponse::error(StatusCode::FORBIDDEN, message));
    }
    Ok(())
}

impl Admin {
    /// Plans a write and commits it.
    pub(super) async fn commit(&self, call: &Call, plan: impl Fn(&State) -> Outcome<Plan>) -> ApiResponse {
        let _turn = self.turn.lock().await;
        for _ in 0..ATTEMPTS {
            let (planned, expected) = {
                let state = self.state();
                (plan(&state), state.revision)
            };
            let plan = match planned {
                Ok(plan) => plan,
                Err(refusal) => return refusal,
            };
            if let Err(refusal) = check_files(call, &plan) {
                return refusal;
            }
            if call.is_dry_run() {
                return plan.answer.with(DRY_RUN, "true");
            }
            let transaction = match transaction(call, &plan) {
                Ok(transaction) if transaction.changes.is_empty() => return plan.answer,
                Ok(transaction) => transaction,
                Err(refusal) => return refusal,
            };
            match self.store.commit(transaction, expected).await {
                Ok(revision) => return self.committed(plan, revision),
                // The store was set back.
                Err(CommitError::Conflict { current }) if current < expected => {
                    if let Err(error) = self.read_again(expected).await {
                        return unavailable(&error);
                    }
                }
                Err(CommitError::Conflict { current }) => {
                    if let Err(answer) = self.catch_up(current).await {
                        return answer;
                    }
                }
                Err(error) => return unavailable(&error),
            }
        }
        ApiResponse::error(
            StatusCode::SERVICE_UNAVAILABLE,
            "value changed before overwritten",
        )
    }

    /// Takes over what was committed.
    fn committed(&self, plan: Plan, revision: Revision) -> ApiResponse {
        let is_kept = matches!(plan.changes.first(), Some((_, Some(_))));
        let mut state = self.state_mut();
        if revision > state.revision {
            for (key, value) in plan.changes {
                apply(&mut state, &key, value, revision);
            }
            state.revision = revision;
            self.seen.send_replace(revision);
        }
        match is_kept {
            true => plan.answer.with(ETAG, &etag(revision)),
            false => plan.answer,
        }
    }

    /// Waits until a revision has been seen; reads everything where it does not come.
    async fn catch_up(&self, wanted: Revision) -> Outcome<()> {
        let mut seen = self.seen.subscribe();
        let arrival = seen.wait_for(|revision| *revision >= wanted);
        let has_come = matches!(tokio::time::timeout(PATIENCE, arrival).await, Ok(Ok(_)));
        match has_come {
            true => Ok(()),
            false => (self.read_again(wanted).await).map_err(|error| unavailable(&error)),
        }
    }

    /// Reads everything again. `told` is a revision that the store has had: where it has an older one now it was set
    /// back, and what is known is taken back too.
    async fn read_again(&self, told: Revision) -> Result<(), weir_store::StoreError> {
        let (documents, revision) = self.store.read(PREFIX).await?;
        let fresh = State::of(&documents, revision);
        let mut state = self.state_mut();
        if revision >= state.revision || revision < told {
            *state = fresh;
            self.seen.send_replace(revision);
        }
        Ok(())
    }

    /// Takes over what somebody committed.
    fn take(&self, changes: &Changes) {
        let mut state = self.state_mut();
        if changes.revision <= state.revision {
            return;
        }
        for (key, document) in &changes.documents {
            match (document, key.as_str().strip_prefix(PREFIX)) {
                (Some(document), _) => state.put(document),
                (None, Some(key)) => state.remove(key),
                (None, None) => {}
            }
        }
        state.revision = changes.revision;
        self.seen.send_replace(changes.revision);
    }
}

/// Follows the store for as long as the API lives.
pub async fn follow(admin: Weak<Admin>) {
    loop {
        let Some((store, after)) = admin
            .upgrade()
            .map(|admin| (Arc::clone(&admin.store), admin.state().revision))
        else {
            return;
        };
        let fault = match store.watch(PREFIX, after).await {
            Err(fault) => fault,
            Ok(mut watch) => loop {
                let changes = match watch.next().await {
                    Ok(changes) => changes,
                    Err(fault) => break fault,
                };
                match admin.upgrade() {
                    Some(admin) => admin.take(&changes),
                    None => return,
                }
            },
        };
        if !matches!(fault, WatchError::Compacted) {
            tokio::time::sleep(PAUSE).await;
        }
        let Some(admin) = admin.upgrade() else {
            return;
        };
        if admin.read_again(after).await.is_err() {
            drop(admin);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn apply(state: &mut State, key: &str, value: Option<Value>, revision: Revision) {
    match value {
        Some(value) => {
            let created = state.get(key).map_or(revision, |old| old.created);
            state.insert(Entry {
                key: key.into(),
                value,
                created,
                modified: revision,
            });
        }
        None => state.remove(key),
    }
}

fn transaction(call: &Call, plan: &Plan) -> Outcome<Transaction> {
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
    Ok(Transaction {
        author: call.author.0.to_string(),
        note: format!("{} {}", call.method, call.path),
        time: call.time,
        changes: changes.collect::<Outcome<_>>()?,
    })
}

/// A document as the store keeps it, with its end where it has one.
fn stored(value: &Value, end: Option<SystemTime>) -> Outcome<Arc<[u8]>> {
    let text = match end {
        None => serde_json::to_vec(value),
        Some(end) => {
            let mut value = value.clone();
            crate::expiry::note(&mut value, end);
            serde_json::to_vec(&value)
        }
    };
    text.map(Into::into)
        .map_err(|error| ApiResponse::bad(error.to_string()))
}

fn unavailable(error: &dyn std::error::Error) -> ApiResponse {
    ApiResponse::error(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
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
