//! Receipts of entries: whether a target has taken one, for calls that wait for it.
//!
//! They do no I/O. The engine keeps one end beside the entry, and the filter that made the entry has the other.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The engine's end: it is dropped with an entry that no target has taken.
pub struct LogReceipt(Arc<Mutex<ReceiptState>>);

/// The filter's end.
#[derive(Clone)]
pub struct LogDelivery(Arc<Mutex<ReceiptState>>);

#[derive(Default)]
struct ReceiptState {
    is_taken: Option<bool>,
    waiting: Option<Waker>,
}

/// Both ends of a receipt.
pub fn log_receipt() -> (LogReceipt, LogDelivery) {
    let state = Arc::default();
    (LogReceipt(Arc::clone(&state)), LogDelivery(state))
}

fn lock(state: &Mutex<ReceiptState>) -> MutexGuard<'_, ReceiptState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogReceipt {
    /// The target has taken the entry.
    pub fn confirm(self) {
        self.end(true);
    }

    fn end(&self, is_taken: bool) {
        let mut state = lock(&self.0);
        if state.is_taken.is_none() {
            state.is_taken = Some(is_taken);
        }
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl Drop for LogReceipt {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl LogDelivery {
    /// Whether the target has taken the entry; `None`: that is not known yet.
    pub fn is_taken(&self) -> Option<bool> {
        lock(&self.0).is_taken
    }

    /// Waits until it is known. One call waits at a time.
    pub fn known(&self) -> impl Future<Output = ()> + 'static {
        let state = Arc::clone(&self.0);
        poll_fn(move |context| {
            let mut state = lock(&state);
            if state.is_taken.is_some() {
                return Poll::Ready(());
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
    }
}

impl fmt::Debug for LogReceipt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LogReceipt")
    }
}

/// Receipts are alike only if they are one.
impl PartialEq for LogReceipt {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LogReceipt {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Context;

    #[test]
    fn what_becomes_of_an_entry_is_known_once_and_for_all() {
        for (confirms, expected) in [(true, Some(true)), (false, Some(false))] {
            let (receipt, delivery) = log_receipt();
            let mut known = pin!(delivery.known());
            let mut context = Context::from_waker(Waker::noop());
            assert_eq!(delivery.is_taken(), None);
            assert!(known.as_mut().poll(&mut context).is_pending());
            match confirms {
                true => receipt.confirm(),
                false => drop(receipt),
            }
            assert!(known.as_mut().poll(&mut context).is_ready());
            assert_eq!(delivery.is_taken(), expected);
        }
    }
}
