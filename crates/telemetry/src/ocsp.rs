//! The results of requests to the responders of certificates (OCSP).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The result of a request: the label `result` of `weir_ocsp_responses_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspResult {
    /// The answer is passed on to clients.
    Taken,
    /// The answer is not passed on: it is not signed as it must be, is of another time, or says that the certificate is
    /// not good.
    Unusable,
    /// There was no answer.
    Failed,
}

impl OcspResult {
    /// All results.
    pub const ALL: [Self; 3] = [Self::Taken, Self::Unusable, Self::Failed];

    /// The label's value.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Unusable => "unusable",
            Self::Failed => "failed",
        }
    }
}

/// Counts of requests by their result.
#[derive(Debug, Default)]
pub struct OcspStats([AtomicU64; OcspResult::ALL.len()]);

impl OcspStats {
    /// Records the result of a request.
    pub fn add(&self, result: OcspResult) {
        self.0[result as usize].fetch_add(1, Relaxed);
    }

    /// Questions of which this became.
    pub fn count(&self, result: OcspResult) -> u64 {
        self.0[result as usize].load(Relaxed)
    }
}
