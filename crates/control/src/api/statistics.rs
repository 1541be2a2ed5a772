//! Statistics of a workspace: a query may name one in its filter, which stands for the services that the workspace has
//! now. A caller with rights in workspaces only gets the numbers of these and no others.

use super::{Api, Problem};
use crate::access::{Action, Caller, Scope};
use axum::http::StatusCode;
use std::collections::BTreeSet;
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
    let Some(wanted) = query.filter.remove(WORKSPACE) else {
        return match caller.can(Action::AnalyticsRead, &Scope::Everything) {
            true => Ok(query),
            false => Err(Problem::forbidden(format!(
                "{} may see the numbers of some workspaces only: name one of them in 'filter.workspace'",
                caller.name()
            ))),
        };
    };
    for workspace in wanted.values() {
        if !caller.can(Action::AnalyticsRead, &Scope::workspace(workspace)) {
            let detail = format!(
                "{} may not see the numbers of the workspace {workspace}",
                caller.name()
            );
            return Err(Problem::forbidden(detail));
        }
    }
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
