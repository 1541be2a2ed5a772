//! Queries about workspaces: in a filter, a workspace stands for the services that it has when the query is carried out.
//! So a board, a report or an alert rule about a workspace goes along with its services.
//!
//! **What it is not**: it says nothing of who may ask.

use super::AnalyticsStorage;
use crate::access::EVERYWHERE;
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_analytics::StoreError;
use weir_analytics::query::{OneOrMany, Query, QueryError, QueryResponse, WORKSPACE};

/// Finds the services of all workspaces, each with its workspace, which is [`EVERYWHERE`] for those of none; `None`: they
/// are not known. It blocks.
pub type ServiceLookup = Arc<dyn Fn() -> Option<Vec<(String, String)>> + Send + Sync>;

const SERVICE: &str = "service";
/// The workspace whose name does not stand before those of services.
const DEFAULT: &str = "default";

/// The services of the workspace `default`, as analytics call them. A name that a service of no workspace has, too, is left
/// out: calls of the two are counted together, and who may see one may not see the other.
pub fn of_default(known: &[(String, String)]) -> BTreeSet<String> {
    let named = |wanted: &'static str| {
        let of_it = known.iter().filter(move |(workspace, _)| workspace == wanted);
        of_it.map(|(_, name)| name).collect::<BTreeSet<_>>()
    };
    let others = named(EVERYWHERE);
    let own = named(DEFAULT).into_iter();
    own.filter(|name| !others.contains(name)).cloned().collect()
}

/// A service as analytics call it.
fn service(workspace: &str, name: &str) -> String {
    match workspace {
        DEFAULT | EVERYWHERE => name.to_owned(),
        workspace => format!("{workspace}/{name}"),
    }
}

/// Puts the services of workspaces in their place. Services that are named, too, narrow it further.
fn narrow(query: &mut Query, wanted: &OneOrMany, known: &[(String, String)]) {
    let given = query.filter.remove(SERVICE);
    let is_given = |name: &str, whole: &str| {
        let given = given.as_ref().map(OneOrMany::values);
        given.is_none_or(|given| given.iter().any(|it| it == name || it == whole))
    };
    let of_default = match wanted.values().iter().any(|it| it == DEFAULT) {
        true => of_default(known),
        false => BTreeSet::new(),
    };
    let of_it = known
        .iter()
        .filter(|(workspace, _)| wanted.values().contains(workspace))
        .filter(|(workspace, name)| workspace != DEFAULT || of_default.contains(name));
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

impl AnalyticsStorage {
    /// The query with the services of workspaces in their place.
    ///
    /// # Errors
    /// It names a workspace, and this process does not know their services.
    pub fn narrowed(&self, mut query: Query) -> Result<Query, StoreError> {
        let Some(wanted) = query.filter.remove(WORKSPACE) else {
            return Ok(query);
        };
        let Some(known) = self.services.get().and_then(|it| it()) else {
            let reason = "this process does not know the services of workspaces";
            return Err(StoreError::Query(QueryError::new("filter.workspace", reason)));
        };
        narrow(&mut query, &wanted, &known);
        Ok(query)
    }

    /// The answer to a query of a board, a report or a rule.
    ///
    /// # Errors
    /// The query cannot be answered, or the store failed.
    pub fn answer(&self, query: &Query, now: u64) -> Result<QueryResponse, StoreError> {
        self.store.query(&self.narrowed(query.clone())?, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::{Analytics, AnalyticsPaths, Options};
    use serde_json::json;
    use weir_analytics::aggregate::{Aggregator, FinishedCall};
    use weir_analytics::alerts::Rule;

    #[test]
    fn a_workspace_stands_for_its_services() {
        let known = [
            ("team-a", "orders"),
            ("team-a", "carts"),
            ("default", "orders"),
            ("team-b", "users"),
            ("default", "shared"),
            ("*", "shared"),
        ]
        .map(|(workspace, name)| (workspace.to_owned(), name.to_owned()));
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
            (
                json!({"workspace": "default", "service": ["orders", "shared"]}),
                json!(["orders"]),
            ),
            (json!({"workspace": "*"}), json!(["shared"])),
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
    /// A rule about a workspace counts the calls of the services that it has now.
    #[test]
    fn what_is_saved_about_a_workspace_goes_along_with_its_services() {
        const NOW: u64 = 20_000 * 86_400;
        let folder = tempfile::tempdir().expect("a folder");
        let opened = Analytics::open(&AnalyticsPaths::of(folder.path()), Options::default()).expect("opened");
        let mut to = Aggregator::new("g", "", NOW * 1_000);
        for (service, calls) in [("a/x", 2), ("a/y", 3), ("b/x", 5), ("x", 7)] {
            let call = FinishedCall {
                minute: (NOW / 60 - 1) as u32,
                status: 200,
                service: to.name(service),
                ..FinishedCall::default()
            };
            (0..calls).for_each(|_| to.add(&call));
        }
        let batch = to.take_batch(NOW, false);
        let kept = opened.kept();
        kept.store.ingest(&batch, NOW).expect("counted");
        let counted = |workspace: &str| {
            let rule = json!({"name": "R", "metric": "calls", "operator": ">", "threshold": 1, "period": "5m",
                "filter": {"workspace": workspace}});
            let rule: Rule = serde_json::from_value(rule).expect("a rule");
            rule.check().expect("good");
            let queries = rule.queries(NOW).into_iter();
            let answers = queries.map(|it| kept.answer(&it, NOW));
            let answers: Result<Vec<QueryResponse>, StoreError> = answers.collect();
            answers.map(|it| rule.values(&it).into_values().next().flatten())
        };
        assert!(counted("a").is_err(), "no services are known yet");
        let named = |(workspace, name): (&str, &str)| (workspace.to_owned(), name.to_owned());
        let known = [("a", "x"), ("a", "y"), ("b", "x"), ("default", "x")].map(named);
        opened.find_services_by(Arc::new(move || Some(known.to_vec())));
        for (workspace, expected) in [("a", 5.0), ("b", 5.0), ("default", 7.0)] {
            let found = counted(workspace).expect("an answer");
            assert_eq!(found, Some(expected), "{workspace}");
        }
    }
}
