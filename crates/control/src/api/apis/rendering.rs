//! What gateways get of publications and products: the changes of their documents.
//!
//! **What it is not**: how a document is made of a revision is in [`weir_apis::render`]; the commit is in [`super::commit`].

use super::access::{Access, AllAccess, documents_of_product};
use super::entity_snapshot::{self, Changes, EntitySnapshot};
use super::{specs, unrendered};
use crate::api::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_apis::entities::{PRODUCTS, Publication};
use weir_apis::render::{self, Content, Input};
use weir_dialect::ENVIRONMENTS;
use weir_store::Key;

/// The changes of gateways' documents when these publications and products are rendered.
pub fn rendered(snapshot: &EntitySnapshot, targets: &BTreeSet<String>, now: u64) -> Result<Changes, Problem> {
    let mut changes = Changes::new();
    if targets.is_empty() {
        return Ok(changes);
    }
    let all = AllAccess::read(snapshot)?;
    for id in targets {
        let mut wanted: BTreeMap<Key, Arc<[u8]>> = BTreeMap::new();
        let mut put = |environment: &str, document: &render::Document| -> Result<(), Problem> {
            let key =
                Key::new(&document.key(environment)).map_err(|error| Problem::bad(error.to_string()))?;
            wanted.insert(key, document.value.to_string().into_bytes().into());
            Ok(())
        };
        let (prefix, owner) = match id.strip_prefix(PRODUCTS) {
            Some(name) => {
                if let Some(product) = all.product(name) {
                    let documents = documents_of_product(snapshot, &all, product, now)?;
                    for environment in product.environments() {
                        documents.iter().try_for_each(|it| put(&environment, it))?;
                    }
                }
                (ENVIRONMENTS.to_owned(), id.clone())
            }
            None => {
                let environment = id.rsplit('/').next().unwrap_or_default();
                if let Some(publication) =
                    snapshot.find::<Publication>(&entity_snapshot::publication_key(id))?
                {
                    let documents = documents(snapshot, &all, &publication, now)?;
                    documents.iter().try_for_each(|it| put(environment, it))?;
                }
                (render::prefix(environment), format!("publications/{id}"))
            }
        };
        let mark = format!("\"owned_by\":\"{owner}\"");
        let known = snapshot
            .documents()
            .filter(|(key, _)| key.as_str().starts_with(&prefix));
        for (key, value) in known {
            let is_owned = contains_bytes(value, mark.as_bytes());
            if is_owned && !wanted.contains_key(key) {
                changes.insert(key.clone(), None);
            }
        }
        for (key, value) in wanted {
            if snapshot.before(key.as_str()) != Some(&*value) {
                changes.insert(key, Some(value));
            }
        }
    }
    Ok(changes)
}

/// Whether a part stands in a text.
pub(super) fn contains_bytes(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|it| it == part)
}

/// The documents of a publication.
pub fn documents(
    snapshot: &EntitySnapshot,
    all: &AllAccess,
    publication: &Publication,
    now: u64,
) -> Result<Vec<render::Document>, Problem> {
    let (api, version) = (&publication.api, &publication.version);
    let environment = snapshot.environment(&publication.environment)?;
    let revision = snapshot.revision(api, version, publication.revision)?;
    let description = specs::description(snapshot, &revision.spec)?;
    let candidate = match &publication.canary {
        None => None,
        Some(canary) => {
            let revision = snapshot.revision(api, version, canary.revision)?;
            let description = specs::description(snapshot, &revision.spec)?;
            Some((revision, description))
        }
    };
    let access = Access::of_publication(snapshot, all, &publication.id())?;
    let input = Input {
        environment: &environment,
        publication,
        stable: Content {
            revision: &revision,
            description: &description,
        },
        candidate: candidate.as_ref().map(|(revision, description)| Content {
            revision,
            description,
        }),
        plans: &access.plans,
        subscriptions: &access.subscriptions,
        credentials: &access.credentials,
        now,
    };
    render::render(input).map_err(|faults| unrendered(&faults))
}

/// The environments whose documents change.
pub fn environments(rendered: &Changes) -> BTreeSet<String> {
    let names = rendered
        .keys()
        .filter_map(|key| key.as_str().strip_prefix(ENVIRONMENTS)?.split('/').next());
    names.map(str::to_owned).collect()
}
