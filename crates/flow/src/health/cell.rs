//! The health of one address, shared by all workers without a lock.

use super::{Health, HealthState, Signal, Thresholds};
use std::sync::atomic::{AtomicU64, Ordering};

/// A [`Health`] that many threads read and renew. What confirms it costs one load.
#[derive(Debug, Default)]
pub struct HealthCell(AtomicU64);

impl HealthCell {
    /// What is remembered now.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Health {
        Health::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Whether calls may go to the target now.
    #[inline]
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.get().state.is_usable()
    }

    /// Records an event. Returns the new state if the target became usable or unusable.
    pub fn observe(&self, signal: Signal, thresholds: &Thresholds) -> Option<HealthState> {
        self.renew(|health| health.after(signal, thresholds))
    }

    /// Sets the health. Returns the new state if the target became usable or unusable.
    pub fn set(&self, health: Health) -> Option<HealthState> {
        self.renew(|_| health)
    }

    fn renew(&self, next: impl Fn(Health) -> Health) -> Option<HealthState> {
        let mut bits = self.0.load(Ordering::Relaxed);
        loop {
            let old = Health::from_bits(bits);
            let new = next(old);
            if new == old {
                return None;
            }
            match self
                .0
                .compare_exchange_weak(bits, new.to_bits(), Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return (old.state.is_usable() != new.state.is_usable()).then_some(new.state),
                Err(current) => bits = current,
            }
        }
    }
}
