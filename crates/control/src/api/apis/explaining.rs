//! Explanations of calls with API management: a draft's changes of gateways' documents, and the plans of a
//! publication for a caller.

use super::access::{Access, AllAccess};
use super::clock::now;
use super::entities::parse;
use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use super::rendering::rendered;
use super::versions;
use crate::api::Problem;
use crate::api::explain::DraftRef;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_apis::diagnosis::{self, Input, PlanVerdict};
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
    let mut snapshot = EntitySnapshot::new(documents);
    snapshot.environment(environment)?;
    let revision = versions::freeze(&mut snapshot, (&draft.api, &draft.version), "", "", now())?;
    let id = format!("{}/{}/{environment}", draft.api, draft.version);
    let key = entity_snapshot::publication_key(&id);
    let known: Option<Publication> = snapshot.find(&key)?;
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
    snapshot.put(&key, &publication)?;
    let changes = rendered(&snapshot, &BTreeSet::from([id]), now())?;
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
    let snapshot = EntitySnapshot::new(documents);
    let access = Access::of_publication(&snapshot, &AllAccess::read(&snapshot)?, publication)?;
    // A key of another publication is known, too: it has no subscription here.
    let all: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
    let is_other = |it: &Subscription| !access.subscriptions.iter().any(|own| own.id == it.id);
    let others = all.into_iter().filter(is_other);
    let subscriptions: Vec<Subscription> = access.subscriptions.iter().cloned().chain(others).collect();
    let mut found = diagnosis::diagnose(&Input {
        publication,
        plans: &access.plans,
        subscriptions: &subscriptions,
        credentials: &snapshot.list(&format!("{PREFIX}credentials/"))?,
        caller,
        now: now(),
    });
    let known: Option<Publication> = snapshot.find(&entity_snapshot::publication_key(publication))?;
    if found.is_empty() && known.is_some_and(|it| it.needs_plan) {
        found.push(PlanDiagnosis {
            plan: String::new(),
            verdict: PlanVerdict::NoSubscription,
            reason: "needs a plan: the publication no longer has a plan that accepts calls".to_owned(),
            subscription: None,
            application: None,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use weir_apis::entities::{Plan, PlanSecurity, PlanState};
    use weir_store::{Key, Revision};

    fn document(key: &str, value: &Value) -> Document {
        Document {
            key: Key::new(key).expect("a key"),
            value: value.to_string().into_bytes().into(),
            created: Revision(1),
            modified: Revision(1),
        }
    }

    /// The defect: all calls of a publication whose last plan was closed got 401, and nothing said why.
    #[test]
    fn a_publication_that_needs_a_plan_says_so() {
        for (needs_plan, state, expected) in [
            (true, PlanState::Closed, Some("needs a plan")),
            (true, PlanState::Published, Some("it accepts calls without a key")),
            (false, PlanState::Staging, None),
        ] {
            let publication = Publication {
                api: "a".to_owned(),
                version: "1".to_owned(),
                environment: "test".to_owned(),
                needs_plan,
                ..Publication::default()
            };
            let plan = Plan {
                api: "a".to_owned(),
                version: "1".to_owned(),
                name: "free".to_owned(),
                security: PlanSecurity::Keyless,
                state,
                ..Plan::default()
            };
            let documents = vec![
                document(&entity_snapshot::publication_key("a/1/test"), &json!(publication)),
                document(&entity_snapshot::plan_key("a", "1", "free"), &json!(plan)),
            ];
            let found = diagnose_plans(documents, "a/1/test", &CallerInfo::default());
            let found = found.expect("a diagnosis");
            let reason = found.first().map(|it| it.reason.as_str());
            assert_eq!(reason.is_some(), expected.is_some(), "{found:?}");
            assert!(
                reason.unwrap_or_default().contains(expected.unwrap_or_default()),
                "{found:?}"
            );
        }
    }
}
