//! Shared records: data that plugins keep for all gateways of one store, such as issued tokens.
//!
//! A plugin has a copy of all its records in memory and answers calls from there. The program, which knows the store,
//! reports changes of the store to the plugin, and commits the plugin's changes. A plugin without a store keeps its
//! records in memory alone.
//!
//! **What it is not**: no place for data that changes with every call. A change costs a commit.

use crate::suspend::Suspend;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The records of a plugin.
pub trait SharedRecords: Send + Sync {
    /// From now on the store holds the records. Called once, before any call.
    fn share(&self, store: Arc<dyn SharedStore>);

    /// Applies the changes of a commit in the store. Commits are reported in their order.
    fn apply(&self, revision: u64, changes: Vec<(String, Option<SharedRecord>)>);

    /// The records that people may see, in the order of their names.
    fn list(&self, now_ms: u64) -> Vec<(String, Value)>;

    /// The name of the record that a secret text stands for, if that is one that people may see.
    fn name_of(&self, text: &str) -> String;

    /// Removes a record.
    fn remove(&self, name: &str, then: Committed);
}

/// A record in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedRecord {
    /// What it says.
    pub value: Value,
    /// From when on it is gone, in milliseconds since the Unix epoch; `None`: it stays.
    pub ends_ms: Option<u64>,
}

/// Records that are put and removed together, or not at all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedChange {
    /// What these names must stand for; `None`: nothing. If not, nothing is changed.
    pub expected: Vec<(String, Option<Value>)>,
    /// What is put, whatever was there.
    pub puts: Vec<(String, SharedRecord)>,
    /// What is removed, if it is there.
    pub removes: Vec<String>,
}

/// The store did not answer, or too much waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreUnavailable;

/// What becomes of a change: the revision that it has made of the store; `None`, if something was not as expected. Dropped,
/// if too much waits.
pub type Committed = Box<dyn FnOnce(Result<Option<u64>, StoreUnavailable>) + Send>;

/// What happens to a read: the record, and the revision of the store then. Dropped, if too much waits.
pub type RecordRead = Box<dyn FnOnce(Result<(Option<SharedRecord>, u64), StoreUnavailable>) + Send>;

/// The part of a store that is a plugin's. It never blocks.
pub trait SharedStore: Send + Sync {
    /// Reads a record.
    fn read(&self, name: &str, then: RecordRead);

    /// Makes a change.
    fn commit(&self, change: SharedChange, then: Committed);
}

/// Where the result of something appears that a call waits for.
pub struct PendingResult<T>(Arc<Mutex<PendingState<T>>>);

struct PendingState<T> {
    result: Option<T>,
    has_ended: bool,
    waker: Option<Waker>,
}

/// Hands a result to a call that waits. Dropped without one, the wait ends too.
pub struct Deliver<T>(Arc<Mutex<PendingState<T>>>);

/// Both ends of a wait.
pub fn awaited<T>() -> (Deliver<T>, PendingResult<T>) {
    let waiting = Arc::new(Mutex::new(PendingState {
        result: None,
        has_ended: false,
        waker: None,
    }));
    (Deliver(Arc::clone(&waiting)), PendingResult(waiting))
}

impl<T> Deliver<T> {
    /// Ends the wait with a result.
    pub fn deliver(self, result: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).result = Some(result);
    }
}

impl<T> Drop for Deliver<T> {
    fn drop(&mut self) {
        let waker = {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.has_ended = true;
            waiting.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T: 'static> PendingResult<T> {
    /// The wait, for the engine.
    pub fn suspend(&self, at_most: Duration) -> Suspend {
        let waiting = Arc::clone(&self.0);
        let event = std::future::poll_fn(move |context: &mut Context<'_>| {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.has_ended {
                return Poll::Ready(());
            }
            waiting.waker = Some(context.waker().clone());
            Poll::Pending
        });
        Suspend::event(event, at_most)
    }

    /// The result, if there is one.
    pub fn take(&self) -> Option<T> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .result
            .take()
    }
}

impl<T> fmt::Debug for PendingResult<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PendingResult")
    }
}

impl<T> fmt::Debug for Deliver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Deliver")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wait of a call, as the engine polls it.
    fn is_over(awaited: &PendingResult<u8>) -> bool {
        let mut event = awaited.suspend(Duration::ZERO).event.expect("an event");
        let mut context = Context::from_waker(Waker::noop());
        event.as_mut().poll(&mut context).is_ready()
    }

    #[test]
    fn a_wait_ends_with_its_result_or_without() {
        let (deliver, awaited) = awaited::<u8>();
        assert!(!is_over(&awaited));
        deliver.deliver(7);
        assert!(is_over(&awaited));
        assert_eq!((awaited.take(), awaited.take()), (Some(7), None));
        let (deliver, awaited) = super::awaited::<u8>();
        drop(deliver);
        assert!(is_over(&awaited));
        assert_eq!(awaited.take(), None);
    }
}
