//! Routes of one workspace that take calls of another. The Admin API refuses to store such a route for a writer who may
//! not write in both; those that were stored before, or by a user who may, are reported.

use super::workspace::Workspace;
use crate::RouterFlavor;
use crate::claims::{Claim, Claims};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;
use weir_dialect::SkippedDocument;

/// A route: its workspace and its id.
type RouteKey = (Arc<str>, Uuid);

/// The calls that routes take of other workspaces.
#[derive(Default)]
pub struct Takeovers {
    /// `None`: there is only one workspace, and no other can take its calls.
    claims: Option<Claims>,
    /// Routes that have changed since they were looked at.
    changed: BTreeSet<RouteKey>,
    /// For each route that takes calls, whose.
    taken: BTreeMap<RouteKey, BTreeSet<RouteKey>>,
}

impl Takeovers {
    /// A route has come, changed or gone.
    pub fn note(&mut self, workspace: &Arc<str>, id: Uuid) {
        self.changed.insert((Arc::clone(workspace), id));
    }

    /// Looks at what has changed.
    pub fn find(&mut self, workspaces: &BTreeMap<String, Workspace>, router: RouterFlavor) {
        let with_routes = workspaces
            .values()
            .filter(|workspace| workspace.routes().next().is_some());
        if with_routes.count() < 2 {
            (self.claims, self.taken) = (None, BTreeMap::new());
            self.changed.clear();
            return;
        }
        let claims = self.claims.get_or_insert_with(|| {
            let all = workspaces.values().flat_map(|workspace| {
                let routes = workspace.routes();
                routes.map(|route| (Arc::clone(workspace.name()), route.id))
            });
            self.changed.extend(all);
            Claims::default()
        });
        // All are known before the first is compared.
        for (workspace, id) in &self.changed {
            let route = workspaces.get(&**workspace).and_then(|it| it.route(*id));
            match route.and_then(|route| Claim::of_route(workspace, route, router)) {
                Some(claim) => claims.put(claim),
                None => claims.remove(workspace, *id),
            }
        }
        let changed = std::mem::take(&mut self.changed);
        self.taken.retain(|place, victims| {
            victims.retain(|other| !changed.contains(other));
            !victims.is_empty() && !changed.contains(place)
        });
        for place in changed {
            let Some(claim) = claims.get(&place.0, place.1) else {
                continue;
            };
            for other in claims.beside(claim) {
                let at = |claim: &Claim| (Arc::clone(&claim.workspace), claim.id);
                if claim.takes_from(other) {
                    self.taken.entry(place.clone()).or_default().insert(at(other));
                }
                if other.takes_from(claim) {
                    self.taken.entry(at(other)).or_default().insert(place.clone());
                }
            }
        }
    }

    /// The routes that take calls of other workspaces, each with one that they take calls of.
    pub fn diagnostics(&self) -> impl Iterator<Item = SkippedDocument> {
        self.taken.iter().filter_map(|((workspace, id), victims)| {
            let (other, victim) = victims.first()?;
            let name = |workspace: &Arc<str>, id: Uuid| {
                let claim = self.claims.as_ref()?.get(workspace, id);
                claim.map(|claim| claim.name.clone())
            };
            let more = match victims.len() - 1 {
                0 => String::new(),
                more => format!(", and of {more} more routes"),
            };
            Some(SkippedDocument {
                document: format!("{workspace}/routes/{id}"),
                reason: format!(
                    "takes calls of the route \"{}\" of the workspace \"{other}\"{more}",
                    name(other, *victim).unwrap_or_else(|| victim.to_string())
                ),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Options;
    use crate::incremental::IncrementalModel;

    const IDS: [&str; 3] = [
        "5f3e1c80-0000-4000-8000-000000000001",
        "5f3e1c80-0000-4000-8000-000000000002",
        "5f3e1c80-0000-4000-8000-000000000003",
    ];

    fn diagnostics(stored: &mut IncrementalModel) -> Vec<String> {
        let _model = stored.model();
        let notes = stored.warnings().into_iter();
        notes
            .map(|it| format!("{}: {}", it.document, it.reason))
            .collect()
    }

    #[test]
    fn routes_that_take_calls_of_another_workspace_are_reported() {
        let mut stored = IncrementalModel::new(Options::default());
        let put = |stored: &mut IncrementalModel, workspace: &str, number: usize, fields: &str| {
            let value = format!("{{{fields},\"protocols\":[\"http\"]}}");
            stored.apply(
                &format!("{workspace}/routes/{}", IDS[number]),
                Some(value.as_bytes()),
            );
        };
        put(&mut stored, "default", 0, "\"name\":\"pay\",\"paths\":[\"/pay\"]");
        put(
            &mut stored,
            "default",
            1,
            "\"name\":\"payroll\",\"paths\":[\"/payroll\"]",
        );
        assert_eq!(diagnostics(&mut stored), [""; 0]);
        put(
            &mut stored,
            "team",
            2,
            "\"paths\":[\"/pay\"],\"hosts\":[\"a.test\"]",
        );
        let expected = format!(
            "team/routes/{}: takes calls of the route \"pay\" of the workspace \"default\", and of 1 more routes",
            IDS[2]
        );
        assert_eq!(diagnostics(&mut stored), [expected]);
        put(&mut stored, "team", 2, "\"paths\":[\"/other\"]");
        assert_eq!(diagnostics(&mut stored), [""; 0]);
        // Whichever of them changes.
        put(&mut stored, "default", 1, "\"name\":\"all\",\"paths\":[\"/\"]");
        assert_eq!(diagnostics(&mut stored).len(), 1);
        stored.apply(&format!("team/routes/{}", IDS[2]), None);
        assert_eq!(diagnostics(&mut stored), [""; 0]);
    }
}
