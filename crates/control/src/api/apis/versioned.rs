//! Writes of one document, which a call may bind to the version that it has read. What is written, and what comes of it
//! for gateways, is the work of `commit`.

use super::entity_snapshot::EntitySnapshot;
use super::write_effects::WriteEffects;
use crate::access::Caller;
use crate::api::precondition::{Precondition, tagged};
use crate::api::resources::note_or;
use crate::api::{Api, Problem};
use axum::http::HeaderMap;
use axum::response::Response;
use std::sync::Arc;
use weir_store::{Key, Revision};

/// A document that was written, or would be.
pub struct VersionedResponse<A> {
    pub answer: A,
    /// The version that it has now; `None`: it was only tried.
    version: Option<Revision>,
}

impl<A> VersionedResponse<A> {
    /// The answer with the version that the document has from now on.
    pub fn tagged(&self, answer: Response) -> Response {
        tagged(answer, self.version)
    }
}

impl Api {
    /// Writes the document under a key, if it is the version that the call names. The note is the caller's, if there is
    /// one.
    pub(super) async fn manage_document<A: Send>(
        self: &Arc<Self>,
        caller: &Caller,
        headers: &HeaderMap,
        key: &str,
        mut work: impl FnMut(&mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> + Send,
    ) -> Result<VersionedResponse<A>, Problem> {
        let key = Key::new(key).map_err(|error| Problem::bad(error.to_string()))?;
        let precondition = Precondition::of(headers);
        let (mut before, mut is_stale, mut is_changed) = (None, false, false);
        let written = self
            .manage(caller, headers, |snapshot| {
                before = snapshot.version_of(key.as_str());
                is_stale = !precondition.holds(before);
                if is_stale {
                    return Err(Problem::precondition("another version", None));
                }
                let done = work(snapshot)?;
                is_changed = snapshot.changes().contains_key(&key);
                let note = note_or(headers, &done.note);
                Ok(WriteEffects { note, ..done })
            })
            .await;
        match written {
            Ok(written) => {
                // What was written as it stood keeps its version.
                let version = match is_changed {
                    true => Some(Revision(written.revision)),
                    false => before,
                };
                Ok(VersionedResponse {
                    answer: written.answer,
                    version: version.filter(|_| !written.is_dry),
                })
            }
            Err(_) if is_stale => Err(precondition.refusal(&*self.store, &key, before).await),
            Err(problem) => Err(problem),
        }
    }
}

#[cfg(test)]
mod tests;
