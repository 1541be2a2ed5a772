//! Counts of limits that outlive a restart: those of windows that go on for a minute and more.

use crate::rate_key::{RateKey, RateLimitKey};
use std::sync::{Arc, Mutex, PoisonError};
use weir_flow::rate_limit::{Counters, Limiter, Window, WindowLimit, WindowState};
use weir_plugin::{ConsumerCount, CountWindow, PersistentCounters, WindowUsage};

/// Windows that go on for less are not worth it: they are over before the gateway is back.
const LEAST_MS: u64 = 60_000;
/// For how long counts wait for the configuration of their limit.
const LONGEST_WAIT_MS: u64 = 10 * 60_000;

/// The counters of a plugin, as counts that are kept.
pub(crate) struct PersistentLimiter {
    limiter: Arc<Limiter>,
    waiting: Mutex<Option<UnclaimedCounters>>,
}

/// Counters of limits that are not configured yet.
struct UnclaimedCounters {
    since_ms: u64,
    _counters: Vec<Counters>,
}

impl PersistentLimiter {
    pub(crate) fn over(limiter: &Arc<Limiter>) -> Arc<dyn PersistentCounters> {
        Arc::new(Self {
            limiter: Arc::clone(limiter),
            waiting: Mutex::default(),
        })
    }
}

impl PersistentCounters for PersistentLimiter {
    fn export(&self, now_ms: u64) -> Vec<u8> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |it: &mut UnclaimedCounters| now_ms.saturating_sub(it.since_ms) > LONGEST_WAIT_MS;
        drop(waiting.take_if(is_over));
        self.limiter.export(now_ms, LEAST_MS)
    }

    fn import(&self, bytes: &[u8], now_ms: u64) -> Result<(), &'static str> {
        let counters = self.limiter.import(bytes, now_ms);
        let counters = counters.map_err(|_| "they are not whole")?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = Some(UnclaimedCounters {
            since_ms: now_ms,
            _counters: counters,
        });
        Ok(())
    }

    fn counted(&self, of: &ConsumerCount<'_>, now_ms: u64) -> Option<WindowUsage> {
        let window = window(of.window);
        // The limits without a key of their own are the first group of a configuration.
        let key = RateKey::new(of.limit, 0, RateLimitKey::Consumer).key_of_consumer(of.consumer);
        let counters = self.limiter.counters(of.limit);
        let limit = WindowLimit {
            limit: u64::MAX,
            window,
        };
        let mut state = [WindowState::default()];
        let _passes = counters.peek(key, &[limit], now_ms, &mut state);
        Some(WindowUsage {
            used: counters.used(key, window, now_ms),
            reset_ms: state[0].reset_ms,
        })
    }
}

fn window(of: CountWindow) -> Window {
    match of {
        CountWindow::Second => Window::Second,
        CountWindow::Minute => Window::Minute,
        CountWindow::Hour => Window::Hour,
        CountWindow::Day => Window::Day,
        CountWindow::Week => Window::Week,
        CountWindow::Month => Window::Month,
    }
}
