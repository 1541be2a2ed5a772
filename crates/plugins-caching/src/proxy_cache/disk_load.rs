//! How responses come back from a disk into memory.

use super::disk_codec::read;
use super::entry::Key;
use super::flight::{FetchCompleted, FlightRole};
use super::zone::Zone;
use std::sync::Arc;

impl Zone {
    /// Brings what is on the disk under a key into memory; the landing is the end of that. `None`: there is no disk, or
    /// too many wait for that already.
    pub(super) fn load_from_disk(
        self: &Arc<Self>,
        key: Key,
        now_ms: u64,
        wait_ms: u64,
    ) -> Option<FetchCompleted> {
        let disk_cache = self.disk_cache()?;
        let lead = match self.lead(key, now_ms, wait_ms) {
            FlightRole::FetchLeader(lead) => lead,
            // Another caller does so already, or fetches it.
            FlightRole::Wait(landing) => return Some(landing),
            FlightRole::Full => return None,
        };
        let landing = lead.completion()?;
        let zone = Arc::clone(self);
        disk_cache.read(
            key,
            Box::new(move |data| {
                if let Some(slot) = data.as_deref().and_then(read) {
                    zone.put_if_absent(&key, slot);
                }
                drop(lead);
            }),
        );
        Some(landing)
    }
}
