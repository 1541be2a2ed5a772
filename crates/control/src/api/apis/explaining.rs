//! Explanations of calls with API management: a draft's changes of gateways' documents, and the plans of a
//! publication for a caller.

use super::access::{Access, AllAccess};
use super::commit::{now, rendered};
use super::entities::parse;
use super::library::{self, Library, PREFIX};
use super::versions;
use crate::api::Problem;
use crate::api::explain::DraftRef;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_apis::diagnosis::{self, Input};
use weir_apis::entities::{Publication, PublicationState, Runtime, Subscription};
use weir_store::Document;

pub use weir_apis::diagnosis::{CallerInfo, PlanDiagnosis};

/// The changed documents, by their keys; `None`: they are removed.
pub type ChangedDocuments = BTreeMap<String, Option<Arc<[u8]>>>;

/// The changes of gateways' documents if a draft were published to an environment.
pub fn documents_of_draft(
    documents: Vec<Document>,
    draft: &DraftRef,
    environment: &str,
) -> Result<ChangedDocuments, Problem> {
    let mut library = Library::new(documents);
    library.environment(environment)?;
    let revision = versions::freeze(&mut library, (&draft.api, &draft.version), "", "", now())?;
    let id = format!("{}/{}/{environment}", draft.api, draft.version);
    let key = library::publication_key(&id);
    let known: Option<Publication> = library.find(&key)?;
    let mut publication = known.unwrap_or_else(|| Publication {
        api: draft.api.clone(),
        version: draft.version.clone(),
        environment: environment.to_owned(),
        ..Publication::default()
    });
    if let Some(runtime) = &draft.runtime {
        publication.runtime = parse::<Runtime>(runtime)?;
    }
    (publication.revision, publication.hash) = (revision.number, revision.hash);
    publication.state = PublicationState::Live;
    library.put(&key, &publication)?;
    let changes = rendered(&library, &BTreeSet::from([id]), now())?;
    Ok(changes
        .into_iter()
        .map(|(key, value)| (key.as_str().to_owned(), value))
        .collect())
}

/// How the plans of a publication stand to a caller.
pub fn diagnose_plans(
    documents: Vec<Document>,
    publication: &str,
    caller: &CallerInfo,
) -> Result<Vec<PlanDiagnosis>, Problem> {
    let library = Library::new(documents);
    let access = Access::of_publication(&library, &AllAccess::read(&library)?, publication)?;
    // A key of another publication is known, too: it has no subscription here.
    let all: Vec<Subscription> = library.list(&format!("{PREFIX}subscriptions/"))?;
    let is_other = |it: &Subscription| !access.subscriptions.iter().any(|own| own.id == it.id);
    let others = all.into_iter().filter(is_other);
    let subscriptions: Vec<Subscription> = access.subscriptions.iter().cloned().chain(others).collect();
    Ok(diagnosis::diagnose(&Input {
        publication,
        plans: &access.plans,
        subscriptions: &subscriptions,
        credentials: &library.list(&format!("{PREFIX}credentials/"))?,
        caller,
        now: now(),
    }))
}
