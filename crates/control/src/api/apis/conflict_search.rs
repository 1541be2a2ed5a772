//! The search for all that takes calls of a publication. It compiles routes, so that a write calls it on a thread of its own.
//!
//! **What it is not**: the kinds of conflicts are found in [`super::conflicts`], [`super::foreign_conflicts`] and
//! [`super::adopting`].

use super::access::AllAccess;
use super::commit::{documents, now};
use super::conflicts::{self, Conflict};
use super::library::Library;
use super::{adopting, foreign_conflicts};
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
