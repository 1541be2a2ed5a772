//! The search for all that takes calls of a publication. It compiles routes, so that a write calls it on a thread of its own.
//!
//! **What it is not**: the kinds of conflicts are found in [`super::conflicts`], [`super::foreign_conflicts`] and
//! [`super::adopting`].

use super::access::AllAccess;
use super::clock::now;
use super::conflicts::{self, Conflict};
use super::entity_snapshot::EntitySnapshot;
use super::rendering::documents;
use super::{adopting, foreign_conflicts};
use crate::access::{Action, Caller, Scope};
use crate::api::{Api, Problem};
use serde_json::Value;
use std::collections::BTreeSet;
use weir_apis::entities::Publication;

/// What is to be published.
pub struct ConflictSearch {
    pub publication: Publication,
}

/// What was found.
#[derive(Default)]
pub struct ConflictsFound {
    pub conflicts: Vec<Conflict>,
    /// Routes on the same paths that were not looked at, as there are too many.
    pub unchecked: usize,
}

impl ConflictsFound {
    /// In words.
    pub fn messages(&self) -> Vec<String> {
        let more = self.of_unchecked();
        self.conflicts.iter().map(Conflict::text).chain(more).collect()
    }

    fn of_unchecked(&self) -> Option<String> {
        (self.unchecked > 0).then(|| {
            format!(
                "and {} more routes of other dialects on these paths, which were not checked",
                self.unchecked
            )
        })
    }

    /// What no step of a publication was forced by before, in words.
    pub fn new_messages(&self, publication: &Publication) -> Vec<String> {
        let known: BTreeSet<&String> = publication.history.iter().flat_map(|it| &it.forced).collect();
        let mut conflicts = self.messages();
        conflicts.retain(|it| !known.contains(it));
        conflicts
    }

    /// Refuses a caller who forces what others would lose calls by, and may not write these others. What was not looked at may
    /// be of anybody. Only what is told counts.
    pub fn permit_force(&self, caller: &Caller, api: &str, conflicts: &[String]) -> Result<(), Problem> {
        let writes_all = caller.can(Action::ConfigurationWrite, &Scope::Everything);
        let may_write = |with: &str| match with.strip_prefix("publications/") {
            Some(id) => {
                let other = id.split('/').next().unwrap_or_default();
                other == api || caller.can(Action::ApisWrite, &Scope::Api(other.to_owned()))
            }
            None => writes_all,
        };
        let losing = self.conflicts.iter().filter(|it| it.may_lose());
        let refused = losing.filter(|it| !may_write(&it.with)).map(Conflict::text);
        let unchecked = self.of_unchecked().filter(|_| !writes_all);
        match refused.chain(unchecked).find(|it| conflicts.contains(it)) {
            None => Ok(()),
            Some(text) => Err(Problem::forbidden(format!(
                "conflicts: {text}: forcing this also requires the right to write those routes"
            ))),
        }
    }
}

impl ConflictSearch {
    /// Searches. It takes its time with many routes.
    pub fn find(&self, api: &Api, snapshot: &EntitySnapshot) -> Result<ConflictsFound, Problem> {
        let publication = &self.publication;
        let version = snapshot.version(&publication.api, &publication.version)?;
        let documents = documents(snapshot, &AllAccess::read(snapshot)?, publication, now())?;
        let services = documents.iter().filter(|it| it.kind == "services");
        let services: Vec<Value> = services.map(|it| it.value.clone()).collect();
        let mut conflicts = conflicts::find(snapshot, &api.options.files.get().1, publication, &services);
        let foreign = foreign_conflicts::find(api, snapshot, publication, &documents)?;
        conflicts.extend(foreign.found);
        conflicts.extend(adopting::conflicts(snapshot, &version, &conflicts));
        Ok(ConflictsFound {
            conflicts,
            unchecked: foreign.unchecked,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Right, Role, User};
    use crate::api::apis::conflicts::ConflictEffect;
    use std::sync::Arc;
    use weir_apis::entities::HistoryItem;

    /// The defect: the owner of one API could force its way to the calls of any other.
    #[test]
    fn calls_of_others_are_taken_by_who_may_write_these() {
        let caller = |role, scope: &str| {
            let scope = Scope::parse(scope).expect("a scope");
            Caller::User(Arc::new(User {
                name: "ada".to_owned(),
                token_hash: None,
                password_hash: None,
                rights: vec![Right { role, scope }],
                created: 0,
            }))
        };
        let (takes, loses) = (ConflictEffect::Takes, ConflictEffect::Loses);
        let owner = (Role::ApiOwner, "api:a");
        for ((role, scope), with, effect, is_tie, expected) in [
            (owner, "publications/b/1/test", loses, false, false),
            (owner, "publications/b/1/test", takes, true, false),
            (owner, "publications/b/1/test", takes, false, true),
            (owner, "publications/a/2/test", loses, false, true),
            (owner, "native/routes/r", loses, false, false),
            (owner, "other", loses, false, false),
            (owner, "other", takes, false, true),
            (
                (Role::ApiOwner, "everything"),
                "publications/b/1/test",
                loses,
                false,
                true,
            ),
            ((Role::ApiOwner, "everything"), "other", loses, false, false),
            ((Role::Write, "everything"), "other", loses, false, true),
        ] {
            let found = ConflictsFound {
                conflicts: vec![Conflict {
                    with: with.to_owned(),
                    route: "r".to_owned(),
                    example: "GET /t".to_owned(),
                    effect,
                    is_tie,
                }],
                unchecked: 0,
            };
            let caller = caller(role, scope);
            let permitted = found.permit_force(&caller, "a", &found.messages());
            assert_eq!(permitted.is_ok(), expected, "{role:?} {scope} {with} {effect:?}");
            assert!(
                found.permit_force(&caller, "a", &[]).is_ok(),
                "it was forced before"
            );
        }
        // The defect: routes that were not looked at were forced without any right.
        for ((role, scope), unchecked, expected) in [
            (owner, 0, true),
            (owner, 3, false),
            ((Role::ApiOwner, "everything"), 3, false),
            ((Role::Write, "everything"), 3, true),
        ] {
            let found = ConflictsFound {
                conflicts: Vec::new(),
                unchecked,
            };
            let permitted = found.permit_force(&caller(role, scope), "a", &found.messages());
            assert_eq!(permitted.is_ok(), expected, "{role:?} {scope} {unchecked}");
        }
    }

    /// The defect: what somebody with the right had forced once, the owner could not publish or roll back any more.
    #[test]
    fn what_was_forced_before_is_not_new() {
        let conflict = |example: &str| Conflict {
            with: "other".to_owned(),
            route: "r".to_owned(),
            example: example.to_owned(),
            effect: ConflictEffect::Loses,
            is_tie: false,
        };
        let found = ConflictsFound {
            conflicts: vec![conflict("GET /a"), conflict("GET /b")],
            unchecked: 1,
        };
        let all = found.messages();
        // Which messages the steps before were forced by, and which are new.
        for (before, expected) in [
            (vec![], vec![0, 1, 2]),
            (vec![vec![0]], vec![1, 2]),
            (vec![vec![0], vec![], vec![2]], vec![1]),
            (vec![vec![0, 1, 2]], vec![]),
        ] {
            let texts = |of: &[usize]| of.iter().map(|it| all[*it].clone()).collect::<Vec<_>>();
            let step = |of: &Vec<usize>| HistoryItem {
                forced: texts(of),
                ..HistoryItem::default()
            };
            let publication = Publication {
                history: before.iter().map(step).collect(),
                ..Publication::default()
            };
            assert_eq!(found.new_messages(&publication), texts(&expected), "{before:?}");
        }
    }
}
