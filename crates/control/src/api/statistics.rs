//! Statistics of a workspace: a query may name one in its filter, which stands for the services that the workspace has
//! now. A caller with rights in workspaces, APIs or environments only gets the numbers of these and no others.

use super::{Api, Problem};
use crate::access::{Action, Caller, EVERYWHERE, Scope};
use axum::http::StatusCode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_analytics::query::{OneOrMany, Query};
use weir_model::overview::List;

/// The name of the filter.
const WORKSPACE: &str = "workspace";
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
        return Ok(query);
    };
    let working = Arc::clone(api);
    let rows = tokio::task::spawn_blocking(move || working.index.rows(List::Services)).await;
    let rows = rows.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let known: Vec<(&str, &str)> = rows
        .iter()
        .filter_map(|it| Some((it.row.workspace.as_deref()?, it.row.name.as_str())))
        .collect();
    narrow(&mut query, &wanted, &known);
    Ok(query)
}

/// Refuses a query about more than what the caller may see. All that is in a filter has to hold of a call, so that one part
/// of it which names only what the caller may see is enough.
pub fn permit(caller: &Caller, filter: &BTreeMap<String, OneOrMany>) -> Result<(), Problem> {
    const PARTS: [(&str, &str); 3] = [
        (WORKSPACE, "workspace"),
        ("api", "API"),
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
    let given = query.filter.remove("service");
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
    query
        .filter
        .insert("service".to_owned(), OneOrMany::Many(services));
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
}
