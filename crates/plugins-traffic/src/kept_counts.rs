//! Counts of limits that outlive a restart: those of windows that go on for a minute and more.

use std::sync::{Arc, Mutex, PoisonError};
use weir_flow::rate_limit::{Counters, Limiter};
use weir_plugin::KeptCounts;

/// Windows that go on for less are not worth it: they are over before the gateway is back.
const LEAST_MS: u64 = 60_000;
/// For how long counts wait for the configuration of their limit.
const LONGEST_WAIT_MS: u64 = 10 * 60_000;

/// The counters of a plugin, as counts that are kept.
pub(crate) struct KeptLimiter {
    limiter: Arc<Limiter>,
    waiting: Mutex<Option<Waiting>>,
}

/// Counters of limits that are not configured yet.
struct Waiting {
    since_ms: u64,
    _counters: Vec<Counters>,
}

impl KeptLimiter {
    pub(crate) fn over(limiter: &Arc<Limiter>) -> Arc<dyn KeptCounts> {
        Arc::new(Self {
            limiter: Arc::clone(limiter),
            waiting: Mutex::default(),
        })
    }
}

impl KeptCounts for KeptLimiter {
    fn export(&self, now_ms: u64) -> Vec<u8> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |it: &mut Waiting| now_ms.saturating_sub(it.since_ms) > LONGEST_WAIT_MS;
        drop(waiting.take_if(is_over));
        self.limiter.export(now_ms, LEAST_MS)
    }

    fn import(&self, bytes: &[u8], now_ms: u64) -> Result<(), &'static str> {
        let counters = self.limiter.import(bytes, now_ms);
        let counters = counters.map_err(|_| "they are not whole")?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = Some(Waiting {
            since_ms: now_ms,
            _counters: counters,
        });
        Ok(())
    }
}
