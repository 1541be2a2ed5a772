//! Workspaces: what is in each, over all dialects. A workspace is known by what lies in it; an empty one is known to
//! the Admin API of its dialect only.

use super::index::IndexedRow;
use super::is_visible;
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::Json;
use crate::api::problem::Problem;
use crate::api::{Api, shapes};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_model::overview::List;

/// A workspace, as far as the caller may see it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workspace {
    /// Its name.
    pub name: String,
    /// The dialects whose documents lie in it.
    pub dialects: BTreeSet<String>,
    /// How many resources of each list lie in it.
    pub resources: BTreeMap<String, usize>,
}

/// Answers `GET /api/v1/workspaces`.
pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<shapes::List<Workspace>>, Problem> {
    let counting = Arc::clone(&api);
    let scopes = caller.scopes(Action::ConfigurationRead);
    let items = tokio::task::spawn_blocking(move || {
        let lists = List::ALL.map(|list| (list, counting.index.rows(list)));
        let rows = lists
            .iter()
            .flat_map(|(list, rows)| rows.iter().map(|it| (*list, &**it)));
        counted(rows, &scopes)
    });
    let items = items
        .await
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(Json(shapes::List { items }))
}

/// The workspaces of rows that may be seen in these parts, by name.
fn counted<'a>(rows: impl Iterator<Item = (List, &'a IndexedRow)>, scopes: &[Scope]) -> Vec<Workspace> {
    let mut found: BTreeMap<&str, Workspace> = BTreeMap::new();
    for (list, row) in rows.filter(|(_, it)| is_visible(it, scopes)) {
        let Scope::Workspace(name) = &row.scope else {
            continue;
        };
        let known = found.entry(name).or_insert_with(|| Workspace {
            name: name.clone(),
            ..Workspace::default()
        });
        known.dialects.insert(row.row.dialect.as_str().to_owned());
        *known.resources.entry(list.as_str().to_owned()).or_default() += 1;
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::DialectName;
    use weir_model::overview::Row;

    /// A name, its dialects, and its resources.
    type WorkspaceCounts = (String, Vec<String>, Vec<(String, usize)>);

    fn indexed_row(dialect: &'static str, scope: &str) -> IndexedRow {
        IndexedRow {
            row: Row {
                dialect: DialectName::new(dialect),
                ..Row::default()
            },
            text: String::new(),
            own_id: String::new(),
            scope: Scope::parse(scope).expect("a scope"),
        }
    }

    #[test]
    fn resources_are_counted_where_the_caller_may_see_them() {
        let rows = [
            (List::Routes, indexed_row("one", "workspace:shop")),
            (List::Routes, indexed_row("two", "workspace:shop")),
            (List::Services, indexed_row("one", "workspace:shop")),
            (List::Services, indexed_row("one", "workspace:bank")),
            (List::Plugins, indexed_row("one", "everything")),
        ];
        let of = |scopes: &[&str]| -> Vec<WorkspaceCounts> {
            let scopes: Vec<Scope> = scopes
                .iter()
                .map(|it| Scope::parse(it).expect("a scope"))
                .collect();
            let found = counted(rows.iter().map(|(list, it)| (*list, it)), &scopes);
            let one = |it: Workspace| {
                (
                    it.name,
                    it.dialects.into_iter().collect(),
                    it.resources.into_iter().collect(),
                )
            };
            found.into_iter().map(one).collect()
        };
        let text = |it: &str| it.to_owned();
        let bank = (text("bank"), vec![text("one")], vec![(text("services"), 1)]);
        let shop = (
            text("shop"),
            vec![text("one"), text("two")],
            vec![(text("routes"), 2), (text("services"), 1)],
        );
        assert_eq!(of(&["everything"]), [bank.clone(), shop]);
        assert_eq!(of(&["workspace:bank", "api:pets"]), [bank]);
        assert!(of(&[]).is_empty());
    }
}
