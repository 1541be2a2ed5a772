//! The search for all that takes calls of a publication. It compiles routes, so that a write calls it on a thread of its own.
//!
//! **What it is not**: the kinds of conflicts are found in [`super::conflicts`], [`super::foreign_conflicts`] and
//! [`super::adopting`].

use super::access::AllAccess;
use super::commit::{documents, now};
use super::conflicts::{self, Conflict};
use super::library::Library;
use super::{adopting, foreign_conflicts};
use crate::access::{Action, Caller, Scope};
use crate::api::{Api, Problem};
use serde_json::Value;
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
        let more = (self.unchecked > 0).then(|| {
            format!(
                "and {} more routes of other dialects on these paths, which were not looked at",
                self.unchecked
            )
        });
        self.conflicts.iter().map(Conflict::text).chain(more).collect()
    }

    /// Refuses a caller who forces what others would lose calls by, and may not write these others. Only what is told counts.
    pub fn permit_force(&self, caller: &Caller, api: &str, told: &[String]) -> Result<(), Problem> {
        let may_write = |with: &str| match with.strip_prefix("publications/") {
            Some(id) => {
                let other = id.split('/').next().unwrap_or_default();
                other == api || caller.can(Action::ApisWrite, &Scope::Api(other.to_owned()))
            }
            None => caller.can(Action::ConfigurationWrite, &Scope::Everything),
        };
        let losing = self.conflicts.iter().filter(|it| it.may_lose());
        let mut refused = losing.filter(|it| !may_write(&it.with) && told.contains(&it.text()));
        match refused.next() {
            None => Ok(()),
            Some(conflict) => Err(Problem::forbidden(format!(
                "conflicts: {}: to force this takes a right to write that, too",
                conflict.text()
            ))),
        }
    }
}

impl ConflictSearch {
    /// Searches. It takes its time with many routes.
    pub fn find(&self, api: &Api, library: &Library) -> Result<ConflictsFound, Problem> {
        let publication = &self.publication;
        let version = library.version(&publication.api, &publication.version)?;
        let documents = documents(library, &AllAccess::read(library)?, publication, now())?;
        let services = documents.iter().filter(|it| it.kind == "services");
        let services: Vec<Value> = services.map(|it| it.value.clone()).collect();
        let mut conflicts = conflicts::find(library, &api.options.files.get().1, publication, &services);
        let foreign = foreign_conflicts::find(api, library, publication, &documents)?;
        conflicts.extend(foreign.found);
        conflicts.extend(adopting::conflicts(library, &version, &conflicts));
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
    }
}
