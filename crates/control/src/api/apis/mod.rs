//! API management over HTTP: environments, APIs with their versions, publications, plans, subscriptions, approvals. What
//! these are, and what comes of them for gateways, is the work of `weir-apis`; here it is read from the store, checked
//! against what gateways serve, and committed.
//!
//! Every write that gateways notice is one commit: the entities, and the native documents that [`weir_apis::render`] makes
//! of them, below `env/ENVIRONMENT/native/`. Gateways of an environment follow only those.

mod access;
mod adopting;
mod approvals;
mod authors;
mod call_tests;
mod calls;
mod chains;
mod clock;
mod commit;
mod conflict_search;
pub(super) mod conflicts;
mod credentials;
mod document_body;
mod entities;
mod entity_snapshot;
mod environment_check;
mod erasing;
mod erasing_messages;
mod erasing_names;
mod explaining;
mod fetching;
mod foreign_conflicts;
mod guards;
mod hooks;
mod lifecycle;
mod owned;
mod plans;
mod portal_files;
mod portals;
mod products;
mod publish;
mod publish_approval;
mod reading;
mod regex_conflicts;
mod renaming;
mod rendering;
mod reviews;
mod secrecy;
mod specs;
mod step;
mod subscriptions;
mod test_runner;
mod ticker;
mod trial_keys;
mod versioned;
mod versions;
mod visible;
mod webhooks;
mod write_effects;

pub use calls::operations;
pub use entity_snapshot::{ENVIRONMENT_KEYS, EntitySnapshot, PREFIX};
pub use erasing::{ErasureSummary, erase};
pub use explaining::{CallerInfo, PlanDiagnosis, diagnose_plans, documents_of_draft};
pub use guards::{acknowledge as acknowledge_canary, alerts as alerts_of_canaries, publication_of_alert};
pub use owned::refuse_owned;
pub use ticker::Ticker;

use super::Problem;
use axum::http::StatusCode;
use weir_apis::render::RenderError;
use weir_apis::states::Refusal;

/// A change of state that is not possible, or not this caller's.
impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::NotYours(_) => StatusCode::FORBIDDEN,
            Refusal::NoStep { .. } | Refusal::Because(_) => StatusCode::CONFLICT,
        };
        Self::new(status, refusal.to_string())
    }
}

/// The problem for what cannot be rendered.
fn unrendered(faults: &[RenderError]) -> Problem {
    let errors = faults
        .iter()
        .map(|it| (it.place.clone(), it.message.clone()))
        .collect();
    Problem::step("render", errors)
}
