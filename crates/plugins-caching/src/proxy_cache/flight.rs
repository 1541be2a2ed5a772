//! One fetch for many who wait: the first caller leads, the others wait for the end of its fetch.

use super::entry::Key;
use super::zone::Zone;
use slab::Slab;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Callers that wait for one fetch at most; each is a call that holds memory.
pub(super) const MAX_WAITING: usize = 1024;

/// A fetch under way.
#[derive(Debug)]
pub(super) struct Flight {
    started_ms: u64,
    waiting: Mutex<FlightWaiters>,
}

#[derive(Debug, Default)]
struct FlightWaiters {
    has_landed: bool,
    /// One for each caller that waits, from its first look to its last.
    wakers: Slab<Option<Waker>>,
}

/// What a caller gets that wants what stands under a key.
pub(super) enum FlightRole {
    /// The duty to fetch it.
    FetchLeader(FetchLeader),
    /// Another caller fetches it.
    Wait(FetchCompleted),
    /// Another caller fetches it, and too many wait for that already.
    Full,
}

impl Flight {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            started_ms: now_ms,
            waiting: Mutex::default(),
        }
    }

    /// Whether it takes longer than a caller waits: then it is nothing to wait for any more.
    pub(super) fn is_overdue(&self, now_ms: u64, wait_ms: u64) -> bool {
        now_ms.saturating_sub(self.started_ms) > wait_ms
    }

    fn waiting(&self) -> MutexGuard<'_, FlightWaiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn waiters(&self) -> usize {
        self.waiting().wakers.len()
    }
}

/// The duty to fetch. Dropping it wakes all waiting calls, whatever the result.
pub(super) struct FetchLeader {
    zone: Arc<Zone>,
    key: Key,
    flight: Arc<Flight>,
}

impl FetchLeader {
    pub(super) fn new(zone: Arc<Zone>, key: Key, flight: Arc<Flight>) -> Self {
        Self { zone, key, flight }
    }

    /// How others wait for the end of the fetch; `None`: too many do.
    pub(super) fn completion(&self) -> Option<FetchCompleted> {
        FetchCompleted::of(&self.flight)
    }
}

impl Drop for FetchLeader {
    fn drop(&mut self) {
        self.zone.land(&self.key, &self.flight);
        let wakers = {
            let mut waiting = self.flight.waiting();
            waiting.has_landed = true;
            std::mem::take(&mut waiting.wakers)
        };
        wakers
            .into_iter()
            .filter_map(|(_, waker)| waker)
            .for_each(Waker::wake);
    }
}

/// The end of a fetch, to be waited for. A caller that leaves takes its waker along.
pub(super) struct FetchCompleted {
    flight: Arc<Flight>,
    /// The place of its waker.
    place: usize,
}

impl FetchCompleted {
    /// `None`: too many wait.
    pub(super) fn of(flight: &Arc<Flight>) -> Option<Self> {
        let mut waiting = flight.waiting();
        (waiting.wakers.len() < MAX_WAITING).then(|| Self {
            place: waiting.wakers.insert(None),
            flight: Arc::clone(flight),
        })
    }
}

impl Future for FetchCompleted {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.flight.waiting();
        if waiting.has_landed {
            return Poll::Ready(());
        }
        match waiting.wakers.get_mut(self.place) {
            Some(Some(waker)) => waker.clone_from(context.waker()),
            Some(empty) => *empty = Some(context.waker().clone()),
            // Its place goes only with the fetch, or with itself.
            None => return Poll::Ready(()),
        }
        Poll::Pending
    }
}

impl Drop for FetchCompleted {
    fn drop(&mut self) {
        let mut waiting = self.flight.waiting();
        if !waiting.has_landed {
            drop(waiting.wakers.try_remove(self.place));
        }
    }
}
