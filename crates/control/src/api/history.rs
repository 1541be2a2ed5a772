//! The changes through all dialects, and the difference between two revisions.

use super::Api;
use super::problem::Problem;
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::Json;
use crate::webhook_addresses::without_path;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_dialect::{DialectSet, ENVIRONMENTS};
use weir_model::secrets;
use weir_model::unix_time;
use weir_store::{HistoryEntry, Key, Revision, Store, WatchError};

/// Commits on a page, if the call asks for no other number; and at most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 1000;
/// Changes that are read from the store at once; those of one commit always.
const BATCH: usize = 1000;
/// Changes that are looked through at most.
const MAX_CHANGES: usize = 200_000;

/// Texts of OpenAPI documents, in parts. They never change: versions name others.
const SPECS: &str = "apis/specs/";
/// Webhooks: the path of their `url` may be a secret.
const WEBHOOKS: [&str; 2] = ["apis/hooks/", "apis/webhooks/"];
/// A prefix without documents: reading it gives the newest revision.
const NOTHING: &str = "weir/nothing/";

/// A document before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The value before; `None`: it was not there.
    pub before: Option<Arc<[u8]>>,
    /// The value after; `None`: it was removed.
    pub after: Option<Arc<[u8]>>,
}

/// The documents right after one revision and after a later one, if they differ.
///
/// # Errors
/// The store does not know that any more, or cannot be reached.
pub async fn difference(
    store: &dyn Store,
    dialects: &DialectSet,
    from: Revision,
    to: Revision,
) -> Result<BTreeMap<Key, Difference>, Problem> {
    // Not what gateways and the audit log write all the time.
    let prefixes: Vec<&str> = dialects.prefixes().collect();
    difference_within(store, &prefixes, (from, to), MAX_CHANGES).await
}

/// The same for all that gateways of these environments serve.
///
/// # Errors
/// As [`difference`].
pub async fn served_difference(
    store: &dyn Store,
    dialects: &DialectSet,
    from: Revision,
    to: Revision,
) -> Result<BTreeMap<Key, Difference>, Problem> {
    let of_environments = dialects.environment_prefixes().iter().map(String::as_str);
    let of_dialects = dialects.prefixes().map(|it: &'static str| -> &str { it });
    let prefixes: Vec<&str> = of_dialects.chain(of_environments).collect();
    difference_within(store, &prefixes, (from, to), MAX_CHANGES).await
}

/// Looks through at most so many changes.
async fn difference_within(
    store: &dyn Store,
    prefixes: &[&str],
    (from, to): (Revision, Revision),
    mut room: usize,
) -> Result<BTreeMap<Key, Difference>, Problem> {
    match store.watch("", from).await {
        Ok(_) => {}
        Err(WatchError::Compacted) => {
            let detail = format!(
                "the store no longer has the changes after revision {from}, or that revision does not exist yet"
            );
            return Err(Problem::new(StatusCode::GONE, detail));
        }
        Err(WatchError::Store(error)) => return Err(error.into()),
    }
    let mut differences: BTreeMap<Key, Difference> = BTreeMap::new();
    for prefix in prefixes {
        let mut before = Some(Revision(to.0.saturating_add(1)));
        loop {
            // Each commit comes whole, however large it is.
            let batch = store.history(prefix, before, BATCH).await?;
            let newer: Vec<&HistoryEntry> = batch.iter().take_while(|it| it.revision > from).collect();
            for change in &newer {
                // The latest comes first.
                let known = differences
                    .entry(change.key.clone())
                    .or_insert_with(|| Difference {
                        before: None,
                        after: change.after.clone(),
                    });
                known.before.clone_from(&change.before);
            }
            if newer.len() < batch.len() || batch.len() < BATCH {
                break;
            }
            room = room.checked_sub(newer.len()).ok_or_else(too_many)?;
            before = batch.last().map(|it| it.revision);
        }
    }
    differences.retain(|_, it| it.before != it.after);
    Ok(differences)
}

fn too_many() -> Problem {
    let detail = format!("more than {MAX_CHANGES} changes lie in between");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Which part of the history.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct HistoryQuery {
    /// Only documents whose keys have this prefix.
    prefix: Option<String>,
    /// Before this revision.
    before: Option<u64>,
    /// At most so many commits.
    limit: Option<usize>,
}

pub async fn history(
    State(api): State<Arc<Api>>,
    Query(part): Query<HistoryQuery>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(
        json!({ "items": commits(&*api.store, &api.options.dialects, &part).await? }),
    ))
}

/// The latest commits of a part of the history.
async fn commits(
    store: &dyn Store,
    dialects: &DialectSet,
    part: &HistoryQuery,
) -> Result<Vec<Value>, Problem> {
    let limit = part.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let mut commits: BTreeMap<std::cmp::Reverse<Revision>, Value> = BTreeMap::new();
    let prefixes = match &part.prefix {
        Some(prefix) => vec![prefix.as_str()],
        // Not what gateways and the audit log write all the time.
        None => dialects
            .prefixes()
            .chain(["weir/users/", "apis/", ENVIRONMENTS])
            .collect(),
    };
    let mut floor = Revision(0);
    for prefix in prefixes {
        let changes = store.history(prefix, part.before.map(Revision), BATCH).await?;
        if changes.len() >= BATCH {
            // Older commits may be known for the other prefixes only.
            floor = floor.max(changes.last().map_or(floor, |it| it.revision));
        }
        for change in changes {
            let commit = commits
                .entry(std::cmp::Reverse(change.revision))
                .or_insert_with(|| {
                    json!({
                        "revision": change.revision.0,
                        "time": unix_time::seconds(change.time),
                        "author": change.author,
                        "note": change.note,
                        "changes": [],
                    })
                });
            if let Some(list) = commit["changes"].as_array_mut() {
                list.push(json!({ "document": change.key.as_str(), "change": kind_of(&change) }));
            }
        }
    }
    let known = commits.into_iter().filter(|(revision, _)| revision.0 >= floor);
    Ok(known.take(limit).map(|(_, commit)| commit).collect())
}

fn kind_of(change: &HistoryEntry) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    }
}

/// Which difference.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct DiffQuery {
    /// From right after this revision.
    from: u64,
    /// To right after this one; the newest, if it is left out.
    to: Option<u64>,
}

pub async fn diff(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(between): Query<DiffQuery>,
) -> Result<Json<Value>, Problem> {
    let (from, to) = (Revision(between.from), between.to.map(Revision));
    // Without an end, no revision that is not there yet is named.
    if let Some(last) = to.map(|to| to.max(from))
        && last > api.store.read(NOTHING).await?.1
    {
        return Err(Problem::not_found(format_args!("revision {last}")));
    }
    let of_dialects = api.options.dialects.prefixes();
    let prefixes: Vec<&str> = of_dialects.chain(["apis/", ENVIRONMENTS]).collect();
    let to = to.unwrap_or(Revision(u64::MAX));
    let between = (from.min(to), from.max(to));
    let mut differences = difference_within(&*api.store, &prefixes, between, MAX_CHANGES).await?;
    if to < from {
        for it in differences.values_mut() {
            std::mem::swap(&mut it.before, &mut it.after);
        }
    }
    differences.retain(|key, _| !key.as_str().starts_with(SPECS));
    let mut items = differences_json(&differences);
    if !caller.can(Action::HistorySecrets, &Scope::Everything) {
        items.iter_mut().for_each(redact);
    }
    Ok(Json(json!({ "items": items })))
}

/// Differences, for people and their tools.
pub fn differences_json(differences: &BTreeMap<Key, Difference>) -> Vec<Value> {
    let value = |value: &Option<Arc<[u8]>>| value.as_ref().map(|it| read(it));
    let one = |(key, it): (&Key, &Difference)| json!({ "document": key.as_str(), "before": value(&it.before), "after": value(&it.after) });
    differences.iter().map(one).collect()
}

/// Documents whose hashes are those of revisions, which name what is published and hide nothing.
const OF_REVISIONS: [&str; 4] = [
    "apis/publications/",
    "apis/revisions/",
    "apis/approvals/",
    "apis/versions/",
];

/// Documents with variables, and where these are. Their names do not say whether they are secrets.
const WITH_VARIABLES: [&str; 3] = ["apis/environments/", "apis/publications/", "apis/approvals/"];
const VARIABLES: [&str; 2] = ["/variables", "/runtime/variables"];

/// Hides what variables hold. `was`: the document itself.
fn hide_variables(value: &mut Value, was: &Value, before: &Value) {
    for place in VARIABLES {
        let fields = value.pointer_mut(place).and_then(Value::as_object_mut);
        for (name, field) in fields.into_iter().flatten() {
            let own = |of: &'_ Value| of.pointer(place).and_then(|it| it.get(name)).cloned();
            let is_other = own(before).is_some_and(|it| Some(it) != own(was));
            *field = if is_other {
                secrets::HIDDEN_OTHER
            } else {
                secrets::HIDDEN
            }
            .into();
        }
    }
}

/// Shows the hashes of revisions again.
fn show_hashes(value: &mut Value, was: &Value) {
    if let Some(hash) = was["hash"].as_str() {
        value["hash"] = hash.into();
    }
    let items = value.get_mut("history").and_then(Value::as_array_mut);
    let items = items.into_iter().flatten();
    let known = was["history"].as_array().into_iter().flatten();
    for (item, was) in items.zip(known) {
        show_hashes(item, was);
    }
}

/// Hides the secrets of a difference. A document that is no JSON may be a secret as a whole.
pub fn redact(item: &mut Value) {
    let was = item["before"].take();
    let given = item["after"].take();
    let mut values = [was.clone(), given.clone()];
    let is_webhook = item["document"]
        .as_str()
        .is_some_and(|key| WEBHOOKS.iter().any(|it| key.starts_with(it)));
    for (value, before) in values.iter_mut().zip([None, Some(&was)]) {
        match value {
            Value::String(_) => *value = secrets::HIDDEN.into(),
            _ => match before.filter(|it| !it.is_null()) {
                Some(before) => secrets::hide_compared(value, before),
                None => secrets::hide(value),
            },
        }
    }
    if is_webhook {
        let [before, after] = [&was["url"], &given["url"]].map(|url| url.as_str().map(without_path));
        let is_other = was["url"] != given["url"] && !was.is_null();
        for (value, url, mark) in [
            (0, before, ""),
            (1, after, if is_other { " (another)" } else { "" }),
        ] {
            if let Some(url) = url {
                values[value]["url"] = format!("{url}{mark}").into();
            }
        }
    }
    if item["document"]
        .as_str()
        .is_some_and(|key| OF_REVISIONS.iter().any(|it| key.starts_with(it)))
    {
        show_hashes(&mut values[0], &was);
        show_hashes(&mut values[1], &given);
    }
    if item["document"]
        .as_str()
        .is_some_and(|key| WITH_VARIABLES.iter().any(|it| key.starts_with(it)))
    {
        hide_variables(&mut values[0], &was, &Value::Null);
        hide_variables(&mut values[1], &given, &was);
    }
    let [before, after] = values;
    (item["before"], item["after"]) = (before, after);
}

/// A document that is no JSON is shown as text.
fn read(value: &[u8]) -> Value {
    serde_json::from_slice(value).unwrap_or_else(|_| String::from_utf8_lossy(value).into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use std::time::SystemTime;
    use weir_store::memory::MemoryStore;
    use weir_store::{Change, Transaction};

    async fn commit(store: &MemoryStore, expected: u64, keys: &[String], value: &str) {
        let put = |key: &String| Change::put(Key::new(key).expect("a key"), value.as_bytes().to_vec());
        let transaction = Transaction {
            author: "test".to_owned(),
            note: String::new(),
            time: SystemTime::now(),
            changes: keys.iter().map(put).collect(),
        };
        let made = store.commit(transaction, Revision(expected)).await;
        assert_eq!(made.expect("made"), Revision(expected + 1));
    }

    #[tokio::test]
    async fn what_is_no_configuration_does_not_count() {
        let (store, dialects) = (MemoryStore::new(), crate::sample::all());
        let prefixes: Vec<&str> = dialects.prefixes().collect();
        let keys = |prefix: &str, count: usize| -> Vec<String> {
            (0..count).map(|number| format!("{prefix}{number}")).collect()
        };
        commit(&store, 0, &keys("native/routes/", 1), "1").await;
        let limit = 3 * BATCH;
        let (log, routes) = (keys("weir/audit/", limit), keys("sample/routes/", limit));
        commit(&store, 1, &log, "1").await;
        commit(&store, 2, &keys("native/routes/", 1), "2").await;
        let found = difference_within(&store, &prefixes, (Revision(1), Revision(3)), limit).await;
        assert_eq!(found.expect("known").len(), 1);
        commit(&store, 3, &routes, "1").await;
        commit(&store, 4, &routes, "2").await;
        let found = difference_within(&store, &prefixes, (Revision(1), Revision(5)), limit).await;
        let status = found.expect_err("too many").into_response().status();
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }

    #[test]
    fn secrets_are_hidden_on_both_sides() {
        for (before, after, expected) in [
            (
                json!(null),
                json!({"key": "k", "n": 1}),
                (json!(null), json!({"key": "***", "n": 1})),
            ),
            (
                json!({"key": "k"}),
                json!({"key": "l"}),
                (json!({"key": "***"}), json!({"key": "*** (another)"})),
            ),
            (
                json!("text"),
                json!({"n": "a"}),
                (json!("***"), json!({"n": "a"})),
            ),
        ] {
            let mut item = json!({"document": "d", "before": before, "after": after});
            redact(&mut item);
            assert_eq!((item["before"].take(), item["after"].take()), expected);
        }
    }

    /// The defect: readers saw in differences what they do not see in the documents themselves.
    #[test]
    fn variables_are_hidden_in_documents_of_apis() {
        let of = |host: &str| json!({"HOST": host, "SAME": "s"});
        let hidden = |host: &str| json!({"HOST": host, "SAME": "***"});
        let at = |variables: &Value| json!({"variables": variables});
        let below = |variables: &Value| json!({"runtime": at(variables)});
        let (one, two) = (of("a"), of("b"));
        for (document, before, after, expected) in [
            (
                "apis/environments/test",
                at(&one),
                at(&two),
                [at(&hidden("***")), at(&hidden("*** (another)"))],
            ),
            (
                "apis/publications/a/1/test",
                below(&one),
                below(&one),
                [below(&hidden("***")), below(&hidden("***"))],
            ),
            (
                "apis/approvals/x",
                json!(null),
                below(&two),
                [json!(null), below(&hidden("***"))],
            ),
            ("native/routes/r", json!(null), at(&two), [json!(null), at(&two)]),
        ] {
            let mut item = json!({"document": document, "before": before, "after": after});
            redact(&mut item);
            assert_eq!(
                [item["before"].take(), item["after"].take()],
                expected,
                "{document}"
            );
        }
    }

    #[test]
    fn addresses_of_webhooks_are_hidden_but_for_their_hosts() {
        let hook = |url: &str| json!({"url": url, "events": []});
        let (one, two) = (
            hook("https://h.test/services/SECRET"),
            hook("https://h.test/services/OTHER"),
        );
        for (document, before, after, expected) in [
            (
                "apis/hooks/a",
                json!(null),
                &one,
                (json!(null), json!("https://h.test/***")),
            ),
            (
                "apis/webhooks/app/a",
                one.clone(),
                &one,
                (json!("https://h.test/***"), json!("https://h.test/***")),
            ),
            (
                "apis/hooks/a",
                one.clone(),
                &two,
                (json!("https://h.test/***"), json!("https://h.test/*** (another)")),
            ),
            (
                "apis/hooks/a",
                json!(null),
                &hook("https://u@h.test/x?code=s"),
                (json!(null), json!("https://h.test/***")),
            ),
            ("native/a", json!(null), &one, (json!(null), one["url"].clone())),
        ] {
            let mut item = json!({"document": document, "before": before, "after": after});
            redact(&mut item);
            let found = (item["before"]["url"].take(), item["after"]["url"].take());
            assert_eq!(found, expected, "{document}");
        }
    }

    #[tokio::test]
    async fn commits_are_listed_however_large_they_are() {
        let (store, dialects) = (MemoryStore::new(), crate::sample::all());
        let many: Vec<String> = (0..BATCH + 500)
            .map(|number| format!("sample/routes/{number:05}"))
            .collect();
        commit(&store, 0, &["other/routes/1".to_owned()], "1").await;
        commit(&store, 1, &many, "1").await;
        commit(&store, 2, &many, "2").await;
        commit(&store, 3, &["other/routes/1".to_owned()], "2").await;
        let revisions = async |before, prefix: Option<&str>| -> Vec<u64> {
            let part = HistoryQuery {
                prefix: prefix.map(str::to_owned),
                before,
                limit: None,
            };
            let commits = commits(&store, &dialects, &part).await.expect("commits");
            let revision = |it: &Value| it["revision"].as_u64().expect("a number");
            commits.iter().map(revision).collect()
        };
        // What is not sure to be complete is left for the next page.
        assert_eq!(revisions(None, None).await, [4, 3]);
        assert_eq!(revisions(Some(3), None).await, [2]);
        assert_eq!(revisions(Some(2), None).await, [1]);
        assert_eq!(revisions(None, Some("other/")).await, [4, 1]);
        for (from, to, count) in [
            (0, 4, many.len() + 1),
            (1, 2, many.len()),
            (2, 4, many.len() + 1),
            (3, 4, 1),
        ] {
            let found = difference(&store, &dialects, Revision(from), Revision(to)).await;
            assert_eq!(found.expect("known").len(), count, "{from} {to}");
        }
    }
}
