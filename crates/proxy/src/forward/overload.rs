//! A call's place among those in flight to an upstream whose concurrency is adaptive, and what is learned from the time
//! that its answer takes. A call has its place until the response's head is there: the time of a body depends on its
//! reader, too.

use crate::outcome::ShortCircuit;
use std::cell::Cell;
use std::time::Duration;
use weir_flow::overload::Priority;
use weir_plugin::{RefusalKind, system_clock};
use weir_snapshot::{Upstream, UpstreamOverload};

/// A place among the calls in flight.
pub struct OverloadSlot<'p> {
    overload: &'p UpstreamOverload,
    is_held: Cell<bool>,
}

impl<'p> OverloadSlot<'p> {
    /// Takes a place, if calls in flight are bounded.
    ///
    /// # Errors
    /// If no place is left for a call of this priority.
    #[inline]
    pub fn enter(upstream: &'p Upstream, priority: Priority) -> Result<Option<Self>, ShortCircuit> {
        let Some(overload) = upstream
            .traffic
            .as_ref()
            .and_then(|traffic| traffic.overload.as_ref())
        else {
            return Ok(None);
        };
        match overload.limit.enter(priority) {
            true => Ok(Some(Self {
                overload,
                is_held: Cell::new(true),
            })),
            false => Err(RefusalKind::Overloaded.into()),
        }
    }

    /// Gives the slot back. `latency`: the time that the upstream took; `None`: the call says nothing about its load.
    pub fn leave(&self, latency: Option<Duration>) {
        if self.is_held.replace(false) {
            let latency_us = latency.map(|latency| u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
            let now_ms = latency_us.map_or(0, |_| system_clock());
            self.overload
                .limit
                .leave(latency_us, &self.overload.rules, now_ms);
        }
    }
}

impl Drop for OverloadSlot<'_> {
    fn drop(&mut self) {
        self.leave(None);
    }
}
