//! `POST /api/v1/explain/changes`: which calls other routes take once documents are changed. Calls that routes would take,
//! before and after, are looked up in both configurations. Nothing is sent and nothing is changed.

use super::super::compiled_config::{CompiledConfig, files};
use super::super::{Api, Problem};
use crate::access::NoAudit;
use crate::api::json_body::{Json, JsonBody};
use crate::explain::{ExplainedCall, Explainer, examples};
use crate::follow::DialectModels;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use weir_model::{DialectName, Model, Route, RouteMatch};
use weir_store::Document;

/// Calls that are looked up at most.
const MAX_CALLS: usize = 200_000;
/// Pairs of routes that are listed at most.
const MAX_MOVED: usize = 100;
/// Hosts of other routes that a changed route for every host is tried with.
const MAX_HOSTS: usize = 50;

/// Documents that are to change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectsRequest {
    /// Documents by their keys, such as `native/routes/shop`; `null`: it is to go.
    documents: BTreeMap<String, Value>,
    /// The environment whose publications count; left out: those that this process serves.
    #[serde(default)]
    environment: Option<String>,
}

/// The calls that other routes take.
#[derive(Serialize, JsonSchema)]
pub struct EffectsResponse {
    /// The revision of the store that was used.
    revision: u64,
    /// Calls that another route takes afterwards, or none: one item for each pair of routes.
    moved: Vec<MovedCalls>,
    /// How many more pairs there are.
    not_shown: usize,
    /// How many calls were looked up.
    tried: usize,
    /// Whether calls of all routes were looked up. Those of the changed ones always are.
    is_complete: bool,
}

/// Calls that go from one route to another.
#[derive(Debug, Serialize, JsonSchema, PartialEq, Eq)]
pub struct MovedCalls {
    /// The route that takes them now; `null`: none does.
    from: Option<RouteRef>,
    /// The route that takes them afterwards; `null`: none does.
    to: Option<RouteRef>,
    /// One of them: a method and a URL, or a path.
    example: String,
    /// Its headers.
    headers: BTreeMap<String, String>,
    /// How many of the calls that were looked up.
    calls: usize,
}

/// A route.
#[derive(Debug, Clone, Serialize, JsonSchema, PartialEq, Eq, Hash)]
pub struct RouteRef {
    /// Its dialect.
    dialect: DialectName,
    /// Its name.
    name: String,
}

/// Answers `POST /api/v1/explain/changes`.
pub async fn effects(
    State(api): State<Arc<Api>>,
    JsonBody(wanted): JsonBody<EffectsRequest>,
) -> Result<Response, Problem> {
    let (documents, head) = api.store.read("").await?;
    let working = Arc::clone(&api);
    let found = tokio::task::spawn_blocking(move || compare(&working, &wanted, &documents));
    let found = found
        .await
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))??;
    let answer = EffectsResponse {
        revision: head.0,
        ..found
    };
    // It is asked with a body, and changes nothing.
    Ok((Extension(NoAudit), Json(answer)).into_response())
}

fn compare(api: &Api, wanted: &EffectsRequest, documents: &[Document]) -> Result<EffectsResponse, Problem> {
    let keys = documents.iter().map(|it| it.key.as_str());
    let keys = keys.chain(wanted.documents.keys().map(|it| it.as_str()));
    let dialects = super::dialects_in(api, wanted.environment.as_deref(), keys)?;
    let mut models = DialectModels::new(&dialects);
    if let Some(model) = files(api, &dialects, &mut Vec::new()) {
        models.set_files(model);
    }
    for it in documents {
        models.apply(it.key.as_str(), Some(&it.value));
    }
    let before = CompiledConfig::of_models(api, &dialects, &mut models)?;
    for (key, value) in &wanted.documents {
        let text = (!value.is_null()).then(|| value.to_string());
        models.apply(key, text.as_deref().map(str::as_bytes));
    }
    let after = CompiledConfig::of_models(api, &dialects, &mut models)?;
    Ok(moved(&before.explainer(), &after.explainer()))
}

/// Looks up calls of all routes, those of the changed ones first.
fn moved(before: &Explainer<'_>, after: &Explainer<'_>) -> EffectsResponse {
    let mut places: HashMap<(Option<RouteRef>, Option<RouteRef>), usize> = HashMap::new();
    let mut moved: Vec<MovedCalls> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    let mut is_complete = true;
    for call in calls(before.model, after.model) {
        if known.len() == MAX_CALLS {
            is_complete = false;
            break;
        }
        if !known.insert(format!(
            "{call} {:?} {} {:?}",
            call.headers, call.client, call.sni
        )) {
            continue;
        }
        let (from, to) = (taker(before, &call), taker(after, &call));
        if from == to {
            continue;
        }
        let place = *places.entry((from.clone(), to.clone())).or_insert(moved.len());
        match moved.get_mut(place) {
            Some(pair) => pair.calls += 1,
            None => moved.push(MovedCalls {
                from,
                to,
                example: call.to_string(),
                headers: call.headers.into_iter().collect(),
                calls: 1,
            }),
        }
    }
    let not_shown = moved.len().saturating_sub(MAX_MOVED);
    moved.truncate(MAX_MOVED);
    EffectsResponse {
        revision: 0,
        moved,
        not_shown,
        tried: known.len(),
        is_complete,
    }
}

fn taker(explainer: &Explainer<'_>, call: &ExplainedCall) -> Option<RouteRef> {
    let route = &explainer.model.routes[explainer.taker(call)?];
    Some(RouteRef {
        dialect: route.dialect,
        name: route.name.clone(),
    })
}

/// Calls of all routes of two models. A changed route for every host is tried with the hosts of others, too.
fn calls<'m>(before: &'m Model, after: &'m Model) -> impl Iterator<Item = ExplainedCall> + 'm {
    type Conditions<'m> = HashMap<(DialectName, &'m str), &'m [RouteMatch]>;
    let conditions = |model: &'m Model| -> Conditions<'m> {
        let routes = model.routes.iter();
        routes
            .map(|it| ((it.dialect, it.name.as_str()), it.matches.as_slice()))
            .collect()
    };
    let (old, new) = (conditions(before), conditions(after));
    let is_same = |it: &Route, others: &Conditions<'m>| {
        others.get(&(it.dialect, it.name.as_str())) == Some(&it.matches.as_slice())
    };
    let all = || before.routes.iter().chain(&after.routes);
    let changed: Vec<&'m Route> = (before.routes.iter().filter(|it| !is_same(it, &new)))
        .chain(after.routes.iter().filter(|it| !is_same(it, &old)))
        .map(|it| &**it)
        .collect();
    let hosts = all().flat_map(|it| &it.matches).flat_map(|it| &it.hosts);
    let hosts: BTreeSet<String> = hosts.map(examples::host).filter(|it| !it.is_empty()).collect();
    let hosts: Vec<String> = hosts.into_iter().take(MAX_HOSTS).collect();
    let of_changed = changed
        .into_iter()
        .flat_map(move |it| examples::calls_of(it, &hosts));
    of_changed.chain((before.routes.iter().chain(&after.routes)).flat_map(|it| examples::calls_of(it, &[])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_dialect::DialectSet;
    use weir_plugin::Registry;
    use weir_snapshot::{PersistentState, Snapshot, compile};

    fn compiled(routes: &Value, registry: &Registry) -> (Model, Snapshot) {
        let document = json!({
            "weir": 1, "routes": routes, "services": [{"name": "s", "url": "http://127.0.0.1:1"}],
        });
        let (model, _) = weir_native::translate(&document).expect("a model");
        let (snapshot, _) = compile(&model, registry, &PersistentState::default()).expect("a snapshot");
        (model, snapshot)
    }

    fn routes(list: &[(&str, &[&str], &[&str])]) -> Value {
        let one = |(name, hosts, paths): &(&str, &[&str], &[&str])| json!({"name": name, "hosts": hosts, "paths": paths, "service": "s"});
        list.iter().map(one).collect()
    }

    type RouteList<'l> = &'l [(&'l str, &'l [&'l str], &'l [&'l str])];

    #[test]
    fn calls_that_change_their_route_are_listed() {
        let registry = weir_plugins::registry();
        let dialects = DialectSet::new(vec![Arc::new(weir_native::NativeDialect)]);
        let cases: [(RouteList<'_>, RouteList<'_>, &[&str]); 7] = [
            // A new one takes calls that no route took.
            (&[], &[("a", &[], &["=/a"])], &["none -> a: GET /a"]),
            // The more specific one wins.
            (
                &[("all", &[], &["/"])],
                &[("all", &[], &["/"]), ("a", &[], &["=/a"])],
                &["all -> a: GET /a"],
            ),
            // The example is one of the route that loses.
            (
                &[("a", &[], &["/users/{id}"])],
                &[("a", &[], &["/users/{id}"]), ("b", &[], &["=/users/1"])],
                &["a -> b: GET /users/1"],
            ),
            // The other one holds all of it: nothing moves.
            (
                &[("a", &["x.com"], &["/"])],
                &[("a", &["x.com"], &["/"]), ("b", &[], &["/b"])],
                &["none -> b: GET /b"],
            ),
            // A path less.
            (
                &[("a", &[], &["=/a", "=/b"]), ("all", &[], &["/"])],
                &[("a", &[], &["=/a"]), ("all", &[], &["/"])],
                &["a -> all: GET /b"],
            ),
            // Gone.
            (&[("a", &[], &["=/a"])], &[], &["a -> none: GET /a"]),
            (&[("a", &[], &["=/a"])], &[("a", &[], &["=/a"])], &[]),
        ];
        for (before, after, expected) in cases {
            let (old_model, old) = compiled(&routes(before), &registry);
            let (new_model, new) = compiled(&routes(after), &registry);
            let explainer = |model, snapshot| Explainer {
                model,
                snapshot,
                dialects: &dialects,
                registry: &registry,
                place: &|_| None,
            };
            let found = moved(&explainer(&old_model, &old), &explainer(&new_model, &new));
            let name = |it: &Option<RouteRef>| it.as_ref().map_or("none".to_owned(), |it| it.name.clone());
            let moves = found.moved.iter();
            let moves: Vec<String> = moves
                .map(|it| format!("{} -> {}: {}", name(&it.from), name(&it.to), it.example))
                .collect();
            assert_eq!(moves, expected, "{before:?} {after:?}");
            assert!(found.is_complete);
        }
    }
}
