//! Statistics of a workspace: a query may name one in its filter, which stands for the services that the workspace has
//! now, and so does an API where calls are not counted by APIs. A caller with rights in some workspaces, APIs or
//! environments gets the numbers of these and no others.

use super::{Api, Problem};
use crate::access::{Action, Caller, EVERYWHERE, Scope};
use crate::analytics::now;
use axum::http::StatusCode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_analytics::query::{OneOrMany, Query, QueryPlan};
use weir_analytics::retention::Retention;
use weir_apis::entities::Publication;
use weir_apis::render;
use weir_model::overview::List;

/// The names of filters.
const WORKSPACE: &str = "workspace";
const API: &str = "api";
const SERVICE: &str = "service";
/// No service is called so: the answer is that there were no calls.
const NO_SERVICE: &str = "/";
/// The workspace whose name does not stand before those of services.
const DEFAULT: &str = "default";

/// A service as analytics call it.
fn service(workspace: &str, name: &str) -> String {
    match workspace {
        DEFAULT => name.to_owned(),
        workspace => format!("{workspace}/{name}"),
    }
}

/// The query with services in place of workspaces, if the caller may see them.
///
/// # Errors
/// The caller may not.
pub async fn within_rights(api: &Arc<Api>, caller: &Caller, mut query: Query) -> Result<Query, Problem> {
    permit(caller, &query.filter)?;
    let Some(wanted) = query.filter.remove(WORKSPACE) else {
        return of_apis(api, query).await;
    };
    let working = Arc::clone(api);
    let rows = tokio::task::spawn_blocking(move || working.index.rows(List::Services)).await;
    let rows = rows.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let known: Vec<(&str, &str)> = rows
        .iter()
        .filter_map(|it| Some((it.row.workspace.as_deref()?, it.row.name.as_str())))
        .collect();
    narrow(&mut query, &wanted, &known);
    of_apis(api, query).await
}

/// Whether what a query names is counted together.
fn is_kept(query: &Query) -> bool {
    QueryPlan::of(query, &Retention::default(), now()).is_ok()
}

/// The query with the services of APIs in place of the APIs, if only so it can be answered. Numbers by route or by class, for
/// example, are not counted by APIs.
async fn of_apis(api: &Arc<Api>, query: Query) -> Result<Query, Problem> {
    let Some(wanted) = query.filter.get(API).filter(|_| !is_kept(&query)) else {
        return Ok(query);
    };
    let library = api.library().await?;
    let is_wanted = |it: &Publication| wanted.values().contains(&it.api);
    let mut services = BTreeSet::new();
    for id in library.publications(is_wanted)? {
        let publication = library.publication(&id)?;
        let of_canary = publication.canary.as_ref().map(|it| it.revision);
        let before = publication.history.iter().map(|it| it.revision);
        let revisions: BTreeSet<u32> = before.chain(of_canary).chain([publication.revision]).collect();
        for number in revisions {
            // A revision of long ago may be gone.
            if let Ok(revision) = library.revision(&publication.api, &publication.version, number) {
                services.extend(render::services(&publication, &revision));
            }
        }
    }
    let narrowed = only_services(query.clone(), &services);
    Ok(match is_kept(&narrowed) {
        true => narrowed,
        // The refusal is about what was asked.
        false => query,
    })
}

/// The query of an API as one of its services; those that are named, too, narrow it further.
fn only_services(mut query: Query, services: &BTreeSet<String>) -> Query {
    query.filter.remove(API);
    let given = query.filter.remove(SERVICE);
    let given = given.as_ref().map(OneOrMany::values);
    let is_given = |name: &&String| given.is_none_or(|given| given.contains(name));
    let mut services: Vec<String> = services.iter().filter(is_given).cloned().collect();
    if services.is_empty() {
        services.push(NO_SERVICE.to_owned());
    }
    query.filter.insert(SERVICE.to_owned(), OneOrMany::Many(services));
    query
}

/// Refuses a query about more than what the caller may see. All that is in a filter has to hold of a call, so that one part
/// of it which names only what the caller may see is enough.
pub fn permit(caller: &Caller, filter: &BTreeMap<String, OneOrMany>) -> Result<(), Problem> {
    const PARTS: [(&str, &str); 3] = [
        (WORKSPACE, "workspace"),
        (API, "API"),
        ("environment", "environment"),
    ];
    let may_see = |kind: &str, name: &str| {
        let scope = Scope::of(kind, name).unwrap_or(Scope::Everything);
        caller.can(Action::AnalyticsRead, &scope)
    };
    if may_see(WORKSPACE, EVERYWHERE) {
        return Ok(());
    }
    let mut refused = None;
    for (kind, word) in PARTS {
        let Some(named) = filter.get(kind).map(OneOrMany::values) else {
            continue;
        };
        match named.iter().find(|it| !may_see(kind, it)) {
            None if !named.is_empty() => return Ok(()),
            None => {}
            Some(name) => refused = refused.or(Some(format!("the numbers of the {word} {name}"))),
        }
    }
    Err(Problem::forbidden(match refused {
        Some(what) => format!("{} may not see {what}", caller.name()),
        None => format!(
            "{} may see the numbers of some parts only: name one of them in 'filter.workspace', 'filter.api' or 'filter.environment'",
            caller.name()
        ),
    }))
}

/// Puts the services of workspaces in their place. Services that are named, too, narrow it further.
fn narrow(query: &mut Query, wanted: &OneOrMany, known: &[(&str, &str)]) {
    let given = query.filter.remove(SERVICE);
    let is_given = |name: &str, whole: &str| {
        let given = given.as_ref().map(OneOrMany::values);
        given.is_none_or(|given| given.iter().any(|it| it == name || it == whole))
    };
    let of_it = known
        .iter()
        .filter(|(workspace, _)| wanted.values().iter().any(|it| it == workspace));
    let services: BTreeSet<String> = of_it
        .filter_map(|(workspace, name)| {
            let whole = service(workspace, name);
            is_given(name, &whole).then_some(whole)
        })
        .collect();
    let services = match services.is_empty() {
        // No service is called so: the answer is that there were no calls.
        true => vec![format!("{}/", wanted.values().join("/"))],
        false => services.into_iter().collect(),
    };
    query.filter.insert(SERVICE.to_owned(), OneOrMany::Many(services));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workspace_stands_for_its_services() {
        let known = [
            ("team-a", "orders"),
            ("team-a", "carts"),
            ("default", "orders"),
            ("team-b", "users"),
        ];
        for (filter, expected) in [
            (
                json!({"workspace": "team-a"}),
                json!(["team-a/carts", "team-a/orders"]),
            ),
            (
                json!({"workspace": ["default", "team-b"]}),
                json!(["orders", "team-b/users"]),
            ),
            (
                json!({"workspace": "team-a", "service": "orders"}),
                json!(["team-a/orders"]),
            ),
            (
                json!({"workspace": "team-a", "service": ["team-a/carts", "team-b/users"]}),
                json!(["team-a/carts"]),
            ),
            (json!({"workspace": "team-c"}), json!(["team-c/"])),
            (
                json!({"workspace": "team-b", "service": "orders"}),
                json!(["team-b/"]),
            ),
        ] {
            let query = json!({"metrics": ["calls"], "from": "-1h", "filter": filter});
            let mut query: Query = serde_json::from_value(query).expect("a query");
            let wanted = query.filter.remove(WORKSPACE).expect("a workspace");
            narrow(&mut query, &wanted, &known);
            assert_eq!(json!(query.filter["service"]), expected, "{filter}");
        }
    }

    #[test]
    fn an_api_stands_for_its_services() {
        let services = ["prod.pets.1.main", "test.pets.1.main"].map(str::to_owned).into();
        for (filter, expected) in [
            (
                json!({"api": "pets"}),
                json!({"service": ["prod.pets.1.main", "test.pets.1.main"]}),
            ),
            (
                json!({"api": "pets", "environment": "test", "service": ["test.pets.1.main", "orders"]}),
                json!({"environment": "test", "service": ["test.pets.1.main"]}),
            ),
            (
                json!({"api": "pets", "service": "orders"}),
                json!({"service": ["/"]}),
            ),
        ] {
            let query = |group_by: &str| -> Query {
                let query =
                    json!({"metrics": ["calls"], "from": "-1h", "group_by": [group_by], "filter": filter});
                serde_json::from_value(query).expect("a query")
            };
            assert!(!is_kept(&query("class")) && is_kept(&query("plan")) == (filter["service"].is_null()));
            let narrowed = only_services(query("class"), &services);
            assert_eq!(json!(narrowed.filter), expected, "{filter}");
            assert!(is_kept(&narrowed), "{filter}");
        }
    }
}
