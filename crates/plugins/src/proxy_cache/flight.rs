//! One fetch for many who wait: who comes first leads, the others wait for the landing.

use super::zone::{Key, Zone};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A fetch under way.
#[derive(Debug, Default)]
pub(super) struct Flight(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    has_landed: bool,
    /// One for each that waits; those who left are woken for nothing.
    wakers: Vec<Waker>,
}

/// The duty to fetch. Dropping it wakes all who wait, whatever came of it.
pub(super) struct Lead {
    zone: Arc<Zone>,
    key: Key,
    flight: Arc<Flight>,
}

impl Lead {
    pub(super) fn new(zone: Arc<Zone>, key: Key, flight: Arc<Flight>) -> Self {
        Self { zone, key, flight }
    }

    /// How others wait for the end of the fetch.
    pub(super) fn landing(&self) -> Landing {
        Landing::of(&self.flight)
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.zone.land(&self.key);
        let mut waiting = self.flight.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.has_landed = true;
        waiting.wakers.drain(..).for_each(Waker::wake);
    }
}

/// The end of a fetch, to be waited for.
pub(super) struct Landing {
    flight: Arc<Flight>,
    /// The place of its waker.
    place: Option<usize>,
}

impl Landing {
    pub(super) fn of(flight: &Arc<Flight>) -> Self {
        Self {
            flight: Arc::clone(flight),
            place: None,
        }
    }
}

impl Future for Landing {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let flight = Arc::clone(&self.flight);
        let mut waiting = flight.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.has_landed {
            return Poll::Ready(());
        }
        match self.place.and_then(|place| waiting.wakers.get_mut(place)) {
            Some(waker) => waker.clone_from(context.waker()),
            None => {
                self.place = Some(waiting.wakers.len());
                waiting.wakers.push(context.waker().clone());
            }
        }
        Poll::Pending
    }
}
