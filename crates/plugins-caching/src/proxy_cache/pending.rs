//! What is known of a call between its request and its response.

use super::CacheStatusTexts;
use super::entry::{CacheEntry, Key};
use super::flight::FetchLeader;
use super::redis::Location;
use std::sync::Arc;
use weir_plugin::Headers;

/// How a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheStatus {
    Hit,
    Miss,
    Expired,
    Refresh,
    Bypass,
    OtherMethod,
    OnlyIfCached,
    Revalidated,
    Stale,
    NotKept,
}

impl CacheStatusTexts {
    /// The word for the status header.
    pub(super) fn of(&self, status: CacheStatus) -> Option<&str> {
        match status {
            CacheStatus::Hit => Some(&self.hit),
            CacheStatus::Miss => Some(&self.miss),
            CacheStatus::Expired => Some(&self.expired),
            CacheStatus::Refresh => Some(&self.refresh),
            CacheStatus::Bypass => Some(&self.bypass),
            CacheStatus::OtherMethod => Some(&self.other_method),
            CacheStatus::OnlyIfCached => self.only_if_cached.as_deref(),
            CacheStatus::Revalidated => Some(&self.revalidated),
            CacheStatus::Stale => Some(&self.stale),
            CacheStatus::NotKept => self.not_stored.as_deref(),
        }
    }
}

/// What is known of a call between its request and its response.
pub(super) struct Pending {
    pub(super) status: CacheStatus,
    /// The key, if the call has one.
    pub(super) key: Option<Key>,
    /// Where its response is to be kept, and under which key others wait for it.
    pub(super) fetch: Option<Fetch>,
    /// What the cache is to forget if the call succeeds.
    pub(super) forget: Option<Key>,
}

/// A fetch for the cache.
pub(super) struct Fetch {
    pub(super) key: Key,
    /// The place that the next caller reads; a different key if responses vary.
    pub(super) place: Key,
    pub(super) lead: Option<FetchLeader>,
    /// The request's headers as the caller sent them.
    pub(super) request: Headers,
    /// What is there already.
    pub(super) stored: Option<Arc<CacheEntry>>,
    /// Whether the service is asked whether that still holds.
    pub(super) asks: bool,
    /// Where it stands in the Redis, if it is kept in one.
    pub(super) location: Option<Location>,
}
