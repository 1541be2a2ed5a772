//! How it stands with each certificate, for those who ask while it goes on.

use super::documents::{StoredDocument, desired};
use super::plan;
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use weir_model::Acme;

/// The state of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcmeEntryStatus {
    /// Its name.
    pub name: String,
    /// The names that the certificate is for.
    pub hosts: Vec<String>,
    /// `good`, `missing` (no certificate, or none for these names), or `failing` (the last attempt failed).
    pub state: &'static str,
    /// The last second of the certificate that is served, in seconds since the Unix epoch.
    pub expires: Option<i64>,
    /// When it is got next, likewise.
    pub next: i64,
    /// How many attempts have failed, one after the other.
    pub failures: u32,
    /// Why the last one did.
    pub error: Option<String>,
}

/// The state of all entries. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct AcmeStatus(Arc<Mutex<Vec<AcmeEntryStatus>>>);

impl AcmeStatus {
    /// All entries, as they were looked at last.
    pub fn entries(&self) -> Vec<AcmeEntryStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes how it stands.
    pub(super) fn note(&self, wanted: &[Acme], kept: &StoredDocument) {
        let entries = wanted.iter().map(|entry| {
            let issued = kept.issued.get(&entry.name);
            let attempt = kept
                .attempts
                .get(&entry.name)
                .filter(|attempt| attempt.desired == desired(entry));
            AcmeEntryStatus {
                name: entry.name.clone(),
                hosts: entry.hosts.clone(),
                state: match (issued.filter(|issued| issued.fits(entry)), attempt) {
                    (_, Some(_)) => "failing",
                    (Some(_), None) => "good",
                    (None, None) => "missing",
                },
                expires: issued.map(|issued| issued.until),
                next: plan::due(entry, issued, attempt),
                failures: attempt.map_or(0, |attempt| attempt.failures),
                error: attempt.map(|attempt| attempt.error.clone()),
            }
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = entries.collect();
    }
}
