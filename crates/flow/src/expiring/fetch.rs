//! One fetch at a time: the ticket of the caller that fetches a value, and the wait of all others.

use super::{ExpiringMap, Lifetime};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A fetch that is under way, and who waits for it.
#[derive(Default)]
pub(super) struct Flight(Mutex<FetchWaiters>);

#[derive(Default)]
struct FetchWaiters {
    has_ended: bool,
    wakers: Vec<Option<Waker>>,
}

impl Flight {
    /// Wakes all that wait.
    pub(super) fn land(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.has_ended = true;
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

/// The right and the duty to fetch a value. All others wait until it is stored, has failed, or is dropped; then one of
/// them fetches.
pub struct Fetch<V: Clone> {
    map: Arc<ExpiringMap<V>>,
    key: Arc<[u8]>,
    flight: Arc<Flight>,
}

impl<V: Clone> Fetch<V> {
    pub(super) fn new(map: &Arc<ExpiringMap<V>>, key: Arc<[u8]>, flight: Arc<Flight>) -> Self {
        Self {
            map: Arc::clone(map),
            key,
            flight,
        }
    }

    /// Stores the value that was fetched, of so many bytes.
    pub fn store(self, value: V, bytes: usize, lifetime: Lifetime, now_ms: u64) {
        self.map.insert(&self.key, value, bytes, lifetime, now_ms);
    }

    /// Notes that there is no value, and that it is not fetched again for so long. An older value stays.
    pub fn fail(self, retry_ms: u64, now_ms: u64) {
        self.map.fail(&self.key, retry_ms, now_ms);
    }
}

impl<V: Clone> Drop for Fetch<V> {
    fn drop(&mut self) {
        self.map.end(&self.key, &self.flight);
    }
}

/// Keys may be derived from secrets.
impl<V: Clone> fmt::Debug for Fetch<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Fetch")
    }
}

/// The wait for another caller's fetch. It ends when that has ended, however.
pub struct Pending {
    flight: Arc<Flight>,
    place: Option<usize>,
}

impl Pending {
    pub(super) fn new(flight: Arc<Flight>) -> Self {
        Self { flight, place: None }
    }
}

impl Future for Pending {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut waiting = this.flight.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.has_ended {
            return Poll::Ready(());
        }
        match this.place {
            Some(place) => match &mut waiting.wakers[place] {
                Some(waker) => waker.clone_from(context.waker()),
                empty => *empty = Some(context.waker().clone()),
            },
            None => {
                let free = waiting.wakers.iter().position(Option::is_none);
                let place = free.unwrap_or_else(|| {
                    waiting.wakers.push(None);
                    waiting.wakers.len() - 1
                });
                waiting.wakers[place] = Some(context.waker().clone());
                this.place = Some(place);
            }
        }
        Poll::Pending
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut waiting = self.flight.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = self.place.and_then(|place| waiting.wakers.get_mut(place)) {
            *waker = None;
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pending")
    }
}
