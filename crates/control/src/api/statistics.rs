//! Statistics of a workspace: a query may name one in its filter, which stands for the services that the workspace has
//! now, and so does an API where calls are not counted by APIs. A caller with rights in some workspaces, APIs or
//! environments gets the numbers of these and no others.

use super::analytics::failed;
use super::view::IndexedRow;
use super::{Api, Problem};
use crate::access::{Action, Caller, EVERYWHERE, Scope};
use crate::analytics::now;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_analytics::query::{OneOrMany, Query, QueryPlan, WORKSPACE};
use weir_analytics::retention::Retention;
use weir_apis::entities::Publication;
use weir_apis::render;
use weir_model::overview::List;

/// The names of filters.
const API: &str = "api";
const SERVICE: &str = "service";
/// No service is called so: the answer is that there were no calls.
const NO_SERVICE: &str = "/";

/// The services of all workspaces, each with its workspace, which is [`EVERYWHERE`] for those of none. It blocks.
pub fn services(api: &Api) -> Vec<(String, String)> {
    let rows = api.index.rows(List::Services);
    let of_row = |it: &Arc<IndexedRow>| {
        let workspace = match &it.scope {
            Scope::Workspace(name) => name.as_str(),
            _ => EVERYWHERE,
        };
        (workspace.to_owned(), it.row.name.clone())
    };
    rows.iter().map(of_row).collect()
}

/// The query with services in place of workspaces, if the caller may see them.
///
/// # Errors
/// The caller may not.
pub async fn within_rights(api: &Arc<Api>, caller: &Caller, query: Query) -> Result<Query, Problem> {
    permit(caller, Action::AnalyticsRead, &query.filter)?;
    let narrowed = api.analytics()?.with(move |kept| kept.narrowed(query));
    of_apis(api, narrowed.await.map_err(failed)?).await
}

/// Whether what a query names is counted together, and in the steps that it asks for.
fn is_kept(query: &Query, retention: &Retention) -> bool {
    QueryPlan::of(query, retention, now()).is_ok()
}

/// The query with the services of APIs in place of the APIs, if only so it can be answered. Numbers by route or by class, for
/// example, are not counted by APIs.
async fn of_apis(api: &Arc<Api>, query: Query) -> Result<Query, Problem> {
    let retention = &api.analytics()?.kept().retention;
    let Some(wanted) = query.filter.get(API).filter(|_| !is_kept(&query, retention)) else {
        return Ok(query);
    };
    let snapshot = api.snapshot().await?;
    let is_wanted = |it: &Publication| wanted.values().contains(&it.api);
    let mut services = BTreeSet::new();
    for id in snapshot.publications(is_wanted)? {
        let publication = snapshot.publication(&id)?;
        let of_canary = publication.canary.as_ref().map(|it| it.revision);
        let before = publication.history.iter().map(|it| it.revision);
        let revisions: BTreeSet<u32> = before.chain(of_canary).chain([publication.revision]).collect();
        for number in revisions {
            // A revision of long ago may be gone.
            if let Ok(revision) = snapshot.revision(&publication.api, &publication.version, number) {
                services.extend(render::services(&publication, &revision));
            }
        }
    }
    let narrowed = only_services(query.clone(), &services);
    Ok(match is_kept(&narrowed, retention) {
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

/// Refuses a query about more than what the caller may see or export. All that is in a filter has to hold of a call, so
/// that one part of it which names only what the caller may see is enough.
pub fn permit(caller: &Caller, action: Action, filter: &BTreeMap<String, OneOrMany>) -> Result<(), Problem> {
    const PARTS: [(&str, &str); 3] = [
        (WORKSPACE, "workspace"),
        (API, "API"),
        ("environment", "environment"),
    ];
    let may = |kind: &str, name: &str| {
        let scope = Scope::of(kind, name).unwrap_or(Scope::Everything);
        caller.can(action, &scope)
    };
    if may(WORKSPACE, EVERYWHERE) {
        return Ok(());
    }
    let mut refused = None;
    for (kind, word) in PARTS {
        let Some(named) = filter.get(kind).map(OneOrMany::values) else {
            continue;
        };
        match named.iter().find(|it| !may(kind, it)) {
            None if !named.is_empty() => return Ok(()),
            None => {}
            Some(name) => refused = refused.or(Some(format!("the numbers of the {word} {name}"))),
        }
    }
    let (who, verb) = (
        caller.name(),
        if action == Action::AnalyticsExport {
            "export"
        } else {
            "see"
        },
    );
    Err(Problem::forbidden(match refused {
        _ if caller.scopes(action).is_empty() => format!("{who} may not {verb} analytics"),
        Some(what) => format!("{who} may not {verb} {what}"),
        None => format!(
            "{who} may {verb} only some of the numbers: filter by one of these scopes in 'filter.workspace', 'filter.api' or \
             'filter.environment'"
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{alerts, analytics, boards, reports};
    use super::*;
    use crate::access::{Right, Role, User};
    use crate::analytics::{Analytics, AnalyticsPaths, Options};
    use serde_json::json;
    use weir_analytics::calls::{CallLine, Search};

    fn caller(role: Role, scope: Scope) -> Caller {
        Caller::User(Arc::new(User {
            name: "ann".to_owned(),
            token_hash: None,
            password_hash: None,
            rights: vec![Right { role, scope }],
            created: 0,
        }))
    }

    /// Filters, of which each caller below may see (`s`) or also export (`e`) the numbers, or not (`-`).
    const FILTERS: [&str; 9] = [
        "{}",
        r#"{"workspace": "a"}"#,
        r#"{"workspace": "b"}"#,
        r#"{"workspace": ["a", "b"]}"#,
        r#"{"workspace": "a", "service": "b/x"}"#,
        r#"{"service": "a/x"}"#,
        r#"{"workspace": "b", "api": "pets"}"#,
        r#"{"api": ["pets"]}"#,
        r#"{"environment": "prod"}"#,
    ];
    /// The calls of the request log: environments with services.
    const CALLS: [(&str, &str); 7] = [
        ("", "a/x"),
        ("", "b/x"),
        ("", "x"),
        ("", "y"),
        ("", "z"),
        ("prod", "x"),
        ("prod", "prod.pets.1.main"),
    ];

    /// A query, a board, an alert rule and a report with the same filter are seen by the same callers.
    #[test]
    fn callers_with_rights_in_parts_see_the_numbers_of_these() {
        let of = |kind: &str, name: &str| Scope::of(kind, name).expect("a scope");
        let folder = tempfile::tempdir().expect("a folder");
        let opened = Analytics::open(&AnalyticsPaths::of(folder.path()), Options::default()).expect("opened");
        let known = [
            ("a", "x"),
            ("b", "x"),
            ("default", "x"),
            ("default", "y"),
            ("*", "y"),
        ];
        let known = known.map(|(workspace, name)| (workspace.to_owned(), name.to_owned()));
        for (role, scope, expected, calls) in [
            (Role::Read, Scope::Everything, "sssssssss", "+++++++"),
            (Role::Analyst, Scope::Everything, "eeeeeeeee", "+++++++"),
            (Role::Read, of("workspace", "a"), "-s--s----", "+------"),
            (Role::Write, of("workspace", "a"), "-e--e----", "+------"),
            (Role::Write, of("workspace", "b"), "--e---e--", "-+-----"),
            // Of the services without a workspace in their name it sees its own, and no publication's.
            (Role::Read, of("workspace", "default"), "---------", "--+----"),
            (Role::Viewer, of("api", "pets"), "------ss-", "------+"),
            (Role::Operator, of("environment", "prod"), "--------s", "-----++"),
            (Role::Analyst, of("environment", "test"), "---------", "-------"),
            (Role::PortalAdmin, of("portal", "main"), "---------", "-------"),
        ] {
            let caller = caller(role, scope);
            let seen = FILTERS.map(|text| {
                let filter: BTreeMap<String, OneOrMany> = serde_json::from_str(text).expect("a filter");
                let may = |action| permit(&caller, action, &filter).is_ok();
                let sees = may(Action::AnalyticsRead);
                let query = json!({"metrics": ["calls"], "filter": filter});
                let panels = json!([{"title": "P", "kind": "stat", "query": query}]);
                let board = json!({"title": "B", "panels": panels});
                let board = serde_json::from_value(board).expect("a board");
                let rule = json!({"name": "R", "metric": "calls", "operator": ">", "threshold": 1, "period": "5m",
                    "filter": filter});
                let rule = serde_json::from_value(rule).expect("a rule");
                let report = json!({"title": "R", "to": ["a@b.test"], "panels": panels,
                    "schedule": {"every": "week", "day": 1, "at": "07:00"}});
                let report = serde_json::from_value(report).expect("a report");
                let is_report_seen = reports::is_seen(opened.kept(), &report, &caller).expect("known");
                assert_eq!(boards::is_seen(&board, &caller), sees, "the board: {caller:?} {text}");
                assert_eq!(alerts::is_seen(&rule, &caller), sees, "the rule: {caller:?} {text}");
                assert_eq!(is_report_seen, sees, "the report: {caller:?} {text}");
                match (sees, may(Action::AnalyticsExport)) {
                    (true, true) => 'e',
                    (true, false) => 's',
                    (false, _) => '-',
                }
            });
            assert_eq!(String::from_iter(seen), expected, "{caller:?}");
            let search = Search {
                parts: analytics::parts_of(&caller, || known.to_vec()),
                ..Search::default()
            };
            let logged = CALLS.map(|(environment, service)| {
                let line = CallLine {
                    environment: environment.into(),
                    service: service.into(),
                    ..CallLine::default()
                };
                if search.holds(&line) { '+' } else { '-' }
            });
            assert_eq!(String::from_iter(logged), calls, "{caller:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_may_not_be_seen_or_exported() {
        let of_workspace = Scope::Workspace("a".to_owned());
        for (role, action, filter, expected) in [
            (
                Role::Read,
                Action::AnalyticsRead,
                json!({"workspace": "b"}),
                "ann may not see the numbers of the workspace b",
            ),
            (
                Role::Read,
                Action::AnalyticsExport,
                json!({"workspace": "a"}),
                "ann may not export analytics",
            ),
            (
                Role::Write,
                Action::AnalyticsExport,
                json!({}),
                "ann may export only some of the numbers: filter by one of these scopes in 'filter.workspace', 'filter.api' or \
                 'filter.environment'",
            ),
        ] {
            let filter = serde_json::from_value(filter).expect("a filter");
            let refused = permit(&caller(role, of_workspace.clone()), action, &filter).expect_err("refused");
            assert_eq!(refused.to_string(), expected);
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
            let is_kept = |query: &Query| is_kept(query, &Retention::default());
            assert!(!is_kept(&query("class")) && is_kept(&query("plan")) == (filter["service"].is_null()));
            let narrowed = only_services(query("class"), &services);
            assert_eq!(json!(narrowed.filter), expected, "{filter}");
            assert!(is_kept(&narrowed), "{filter}");
        }
    }

    /// Two days by the minute are too many points, unless minutes are not kept for so long.
    #[test]
    fn what_is_kept_is_decided_by_the_retention() {
        let query = json!({"metrics": ["calls"], "from": "-2d", "step": "1m"});
        let query: Query = serde_json::from_value(query).expect("a query");
        for (minutes, expected) in [(8 * 86_400, false), (3_600, true)] {
            let retention = Retention {
                minutes,
                ..Retention::default()
            };
            assert_eq!(is_kept(&query, &retention), expected, "{minutes}");
        }
    }
}
