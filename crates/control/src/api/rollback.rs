//! Rolling back: every document becomes what it was at a revision, in one commit.

use super::history::{Difference, difference, differences_json};
use super::problem::Problem;
use super::{Api, demand, is_dry_run};
use crate::access::{Caller, Role};
use crate::api::json_body::{Json, JsonBody};
use crate::follow::{DialectModels, compile};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::{ATTEMPTS, DialectSet, SkippedDocument, WriteFailure};
use weir_snapshot::{CompileCache, PersistentState};
use weir_store::{Change, CommitError, Document, Key, Revision, Transaction};

/// The target of the roll back.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackTarget {
    /// The revision to restore.
    revision: u64,
}

pub async fn rollback(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<RollbackTarget>,
) -> Result<Response, Problem> {
    demand(&caller, Role::Admin)?;
    let target = Revision(wanted.revision);
    for _ in 0..ATTEMPTS {
        let (documents, head) = api.store.read("").await?;
        if target > head {
            return Err(Problem::not_found(format_args!("revision {target}")));
        }
        let mut differences = difference(&*api.store, &api.options.dialects, target, head).await?;
        let now = SystemTime::now();
        let dialects = &api.options.dialects;
        differences.retain(|key, it| still_holds(dialects, key, it, now));
        let api_checking = Arc::clone(&api);
        let checked = differences.clone();
        // It compiles everything, which takes a while.
        let broken =
            tokio::task::spawn_blocking(move || newly_broken(&api_checking, &documents, &checked)).await;
        let broken =
            broken.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        if let Some(broken) = broken.first() {
            let detail = format!(
                "the configuration of revision {target} would not be served completely: {}: {}",
                broken.document, broken.reason
            );
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
        let answer = json!({ "revision": head.0, "changes": differences_json(&inverted(&differences)) });
        if is_dry_run(&headers) {
            return Ok(([("weir-dry-run", "true")], Json(answer)).into_response());
        }
        if differences.is_empty() {
            return Ok(Json(answer).into_response());
        }
        let transaction = Transaction {
            author: caller.name(),
            note: format!("roll back to revision {target}"),
            time: now,
            changes: differences
                .iter()
                .map(|(key, it)| change(dialects, key, it, now))
                .collect(),
        };
        match api.store.commit(transaction, head).await {
            Ok(revision) => {
                let answer = json!({ "revision": revision.0, "changes": answer["changes"] });
                return Ok(Json(answer).into_response());
            }
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteFailure::Busy.into())
}

/// Takes a former value whose end has come as gone: it would have gone by itself. Returns whether there is a
/// difference left.
fn still_holds(dialects: &DialectSet, key: &Key, difference: &mut Difference, now: SystemTime) -> bool {
    let is_over = |value: &Arc<[u8]>| dialects.end_of(key.as_str(), value).is_some_and(|end| end <= now);
    if difference.before.as_ref().is_some_and(is_over) {
        difference.before = None;
    }
    difference.before != difference.after
}

/// The change that undoes a difference. What was to stay for a while stays no longer than that.
fn change(dialects: &DialectSet, key: &Key, difference: &Difference, now: SystemTime) -> Change {
    let Some(value) = &difference.before else {
        return Change::Delete { key: key.clone() };
    };
    let end = dialects.end_of(key.as_str(), value);
    Change::Put {
        key: key.clone(),
        value: Arc::clone(value),
        time_to_live: end.map(|end| end.duration_since(now).unwrap_or_default()),
    }
}

fn inverted(differences: &BTreeMap<Key, Difference>) -> BTreeMap<Key, Difference> {
    let invert = |it: &Difference| Difference {
        before: it.after.clone(),
        after: it.before.clone(),
    };
    differences
        .iter()
        .map(|(key, it)| (key.clone(), invert(it)))
        .collect()
}

/// The documents that would not be served after rolling back, and are served now.
fn newly_broken(
    api: &Api,
    documents: &[Document],
    differences: &BTreeMap<Key, Difference>,
) -> Vec<SkippedDocument> {
    let mut dialects = DialectModels::new(&api.options.dialects);
    for document in documents {
        dialects.apply(document.key.as_str(), Some(&document.value));
    }
    let before: HashSet<(String, String)> = broken(api, &mut dialects)
        .into_iter()
        .map(|it| (it.document, it.reason))
        .collect();
    for (key, difference) in differences {
        dialects.apply(key.as_str(), difference.before.as_deref());
    }
    let mut after = broken(api, &mut dialects);
    after.retain(|it| !before.contains(&(it.document.clone(), it.reason.clone())));
    after
}

fn broken(api: &Api, dialects: &mut DialectModels) -> Vec<SkippedDocument> {
    let (model, mut broken) = dialects.model(|_, _| Vec::new());
    let (persistent, mut cache) = (PersistentState::default(), CompileCache::default());
    match compile(&model, 0, &(api.options.registry)(), &persistent, &mut cache) {
        Ok((_, skipped)) => broken.extend(skipped.into_iter().map(|it| SkippedDocument {
            document: it.name,
            reason: it.reason,
        })),
        Err(found) => broken.extend(found.into_iter().map(|it| SkippedDocument {
            document: it.path.to_string(),
            reason: it.message,
        })),
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::unix_time;

    #[test]
    fn what_was_to_stay_for_a_while_stays_no_longer() {
        let (key, dialects) = ("sample/routes/1", crate::sample::all());
        let (ends, stays) = (r#"{"until":160}"#, r#"{"path":"/"}"#);
        let put = |left| Some(Some(left));
        for (key, before, after, now, expected) in [
            (key, Some(ends), None, 130, put(Some(30))),
            (key, Some(ends), Some("{}"), 130, put(Some(30))),
            // It would have gone by itself.
            (key, Some(ends), None, 160, None),
            (key, Some(ends), Some("{}"), 160, Some(None)),
            (key, Some(stays), None, 160, put(None)),
            (key, None, Some(ends), 130, Some(None)),
            ("native/routes/1", Some(ends), None, 170, put(None)),
        ] {
            let value = |text: Option<&str>| text.map(|text| Arc::from(text.as_bytes()));
            let (now, name) = (unix_time::from_seconds(now), Key::new(key).expect("a key"));
            let mut difference = Difference {
                before: value(before),
                after: value(after),
            };
            let is_left = still_holds(&dialects, &name, &mut difference, now);
            let made = is_left.then(|| match change(&dialects, &name, &difference, now) {
                Change::Put { time_to_live, .. } => Some(time_to_live.map(|it| it.as_secs())),
                Change::Delete { .. } => None,
            });
            assert_eq!(made, expected, "{key} {before:?} {after:?} {now:?}");
        }
    }
}
