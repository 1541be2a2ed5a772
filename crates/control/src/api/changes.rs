//! Several native resources in one commit: all of them, or none. It is what a selection in a list needs.

use super::precondition::{Precondition, tag_of};
use super::problem::Problem;
use super::resources::{key_of, name_it, note_or};
use super::writing::tried;
use super::{Api, demand, is_dry_run};
use crate::access::{Caller, Role};
use crate::api::json_body::{Json, JsonBody};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;
use weir_store::{Change, Key, Revision, Transaction};

/// Resources in one call at most.
const MAX_CHANGES: usize = 5000;

/// Several changes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangesRequest {
    /// Each of another resource.
    changes: Vec<ResourceChange>,
}

/// The change of a resource.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceChange {
    /// Its kind, such as `routes`.
    kind: String,
    /// Its name.
    name: String,
    /// Its new value; `null`: it is to be removed. Its own name may be left out; another one than that above is refused.
    value: Option<super::shapes::Resource>,
    /// The version that it has to have, as `If-Match` says it.
    #[serde(default)]
    if_match: Option<String>,
}

/// The outcome of several changes, or of a dry run of them.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ChangesResponse {
    /// The commit; `null` after a dry run, or if nothing was to be changed.
    pub revision: Option<u64>,
    /// The version that all of them have from now on, as `If-Match` says it.
    pub tag: Option<String>,
    /// Each resource, before and after.
    pub changes: Vec<ChangedResource>,
}

/// A resource that was changed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ChangedResource {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The value before; `null`: it was not there.
    pub before: Value,
    /// The value after; `null`: it is gone.
    pub after: Value,
}

/// Answers `POST /api/v1/changes`.
pub async fn change(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<ChangesRequest>,
) -> Result<Response, Problem> {
    demand(&caller, Role::Write)?;
    let keys = keys_of(&wanted.changes)?;
    for it in &wanted.changes {
        super::apis::refuse_owned(&api, &it.kind, &it.name).await?;
    }
    let values = values_of(&wanted.changes);
    let standard = format!("{} resources", keys.len());
    let mut turn = api.resources.turn().await;
    loop {
        let (version, before) = {
            let state = turn.attempt()?;
            let before: Vec<Option<weir_store::Document>> =
                keys.iter().map(|key| state.get(key).cloned()).collect();
            (state.version(), before)
        };
        for ((it, key), document) in wanted.changes.iter().zip(&keys).zip(&before) {
            let known = document.as_ref().map(|it| it.modified);
            let precondition = Precondition::matching(it.if_match.as_deref());
            if !precondition.holds(known) {
                return Err(precondition.refusal(&*api.store, key, known).await);
            }
            if it.value.is_none() && document.is_none() {
                return Err(Problem::not_found(format_args!("{}/{}", it.kind, it.name)));
            }
        }
        let checked: Vec<(&Key, Option<&Value>)> = keys
            .iter()
            .zip(&values)
            .map(|(key, it)| (key, it.as_ref()))
            .collect();
        api.resources.check_all(&checked).await?;
        let resources = changed_resources(&wanted.changes, &before, &values);
        if is_dry_run(&headers) {
            return Ok(tried(Json(answer(None, resources))));
        }
        let changes: Vec<Change> = keys.iter().zip(&values).map(as_change).collect();
        if changes.is_empty() {
            return Ok(Json(answer(None, resources)).into_response());
        }
        let transaction = Transaction {
            author: caller.name(),
            note: note_or(&headers, &standard),
            time: SystemTime::now(),
            changes,
        };
        if let Some(revision) = turn.commit(transaction, version).await? {
            return Ok(Json(answer(Some(revision), resources)).into_response());
        }
    }
}

/// The keys of the documents, if each is another one.
fn keys_of(changes: &[ResourceChange]) -> Result<Vec<Key>, Problem> {
    if changes.len() > MAX_CHANGES {
        let detail = format!(
            "expected at most {MAX_CHANGES} changes in one call, found {}: send several calls",
            changes.len()
        );
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let keys = changes
        .iter()
        .map(|it| key_of(&it.kind, &it.name))
        .collect::<Result<Vec<Key>, Problem>>()?;
    let mut known = BTreeSet::new();
    match keys.iter().find(|key| !known.insert(*key)) {
        Some(twice) => Err(Problem::bad(format!(
            "expected each resource once, found {twice} twice"
        ))),
        None => Ok(keys),
    }
}

/// The new values. The name of each is known already; one that says another is refused.
fn values_of(changes: &[ResourceChange]) -> Vec<Option<Value>> {
    let value = |it: &ResourceChange| {
        let mut fields = it.value.as_ref()?.0.clone();
        name_it(&mut fields, &it.kind, &it.name);
        Some(Value::Object(fields))
    };
    changes.iter().map(value).collect()
}

fn as_change((key, value): (&Key, &Option<Value>)) -> Change {
    match value {
        Some(value) => Change::put(key.clone(), value.to_string().into_bytes()),
        None => Change::Delete { key: key.clone() },
    }
}

fn changed_resources(
    changes: &[ResourceChange],
    before: &[Option<weir_store::Document>],
    after: &[Option<Value>],
) -> Vec<ChangedResource> {
    let read = |document: &weir_store::Document| serde_json::from_slice(&document.value).unwrap_or_default();
    let all = changes.iter().zip(before).zip(after);
    all.map(|((it, before), after)| ChangedResource {
        kind: it.kind.clone(),
        name: it.name.clone(),
        before: before.as_ref().map_or(Value::Null, read),
        after: after.clone().unwrap_or_default(),
    })
    .collect()
}

fn answer(revision: Option<Revision>, changes: Vec<ChangedResource>) -> ChangesResponse {
    ChangesResponse {
        revision: revision.map(|it| it.0),
        tag: revision.map(tag_of),
        changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(text: Value) -> Vec<ResourceChange> {
        serde_json::from_value::<ChangesRequest>(json!({ "changes": text }))
            .expect("changes")
            .changes
    }

    #[test]
    fn each_resource_is_changed_once() {
        let one = |kind: &str, name: &str| json!({"kind": kind, "name": name, "value": null});
        for (changes, expected) in [
            (json!([]), Ok(0)),
            (json!([one("routes", "a"), one("services", "a")]), Ok(2)),
            (json!([one("routes", "a"), one("routes", "a")]), Err("twice")),
            (json!([one("routes", "a/b")]), Err("no '/'")),
            (json!([one("roots", "a")]), Err("'roots'")),
            (
                Value::Array(vec![one("routes", "a"); MAX_CHANGES + 1]),
                Err("at most 5000"),
            ),
        ] {
            match (keys_of(&wanted(changes)), expected) {
                (Ok(keys), Ok(count)) => assert_eq!(keys.len(), count),
                (Err(problem), Err(part)) => {
                    assert!(format!("{problem:?}").contains(part), "{problem:?}");
                }
                (found, _) => panic!("{found:?}, expected {expected:?}"),
            }
        }
    }
}
