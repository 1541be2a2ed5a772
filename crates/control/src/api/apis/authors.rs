//! Who has made revisions: those do not agree to what they have made.

use super::entity_snapshot::{self, EntitySnapshot};
use crate::api::Problem;
use std::collections::BTreeSet;
use weir_apis::entities::Revision;

/// Who has made the revisions behind one, up to another one and with it.
pub fn authors_between(
    snapshot: &EntitySnapshot,
    (name, version): (&str, &str),
    (after, up_to): (u32, u32),
) -> Result<BTreeSet<String>, Problem> {
    let all: Vec<Revision> = snapshot.list(&entity_snapshot::revisions_key(name, version))?;
    let is_between = |it: &&Revision| it.number > after && it.number <= up_to;
    let mut authors = BTreeSet::new();
    for it in all.iter().filter(is_between) {
        authors.extend(it.authors.iter().cloned());
        authors.insert(it.author.clone());
    }
    authors.remove("");
    Ok(authors)
}
