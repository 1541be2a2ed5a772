//! Fetching something through the engine, once for all calls that need it at the same time: a document, a key set, a
//! token, a decision. What is fetched, and how long it is good, is for those who ask.

use std::sync::Arc;
use std::time::Duration;
use weir_flow::expiring::{ExpiringMap, Fetch, Lifetime, Lookup};
use weir_plugin::{Exchange, Outcome, Suspend};

/// How often a call waits for others before it gives up.
const MAX_WAITS: u8 = 8;

/// A fetch of this call, or its wait for another one's.
struct Progress<V: Clone> {
    key: Vec<u8>,
    fetch: Option<Fetch<V>>,
    stale: Option<V>,
    waits: u8,
}

/// What there is.
#[derive(Debug)]
pub(crate) enum Found<V> {
    /// The value.
    Value(V),
    /// There is none: it could not be fetched, just now or a short time ago.
    Nothing,
    /// The engine has to do this first; then the filter asks again.
    Wait(Outcome),
}

/// What a call looks for.
pub(crate) struct Wanted<'w, V: Clone> {
    /// Where it is kept.
    pub(crate) map: &'w Arc<ExpiringMap<V>>,
    /// By what.
    pub(crate) key: &'w [u8],
    /// It must have been stored then or later; 0: whenever.
    pub(crate) since_ms: u64,
    /// How long nothing is fetched after a failure.
    pub(crate) retry_ms: u64,
    /// The longest that other calls are waited for.
    pub(crate) timeout: Duration,
}

impl<V: Clone + 'static> Wanted<'_, V> {
    /// Finds the value. `ask` says how it is fetched, and `read` takes the answer out of the exchange: the value, its size in
    /// bytes, and how long it is good.
    pub(crate) fn find<O>(
        &self,
        owner: &O,
        exchange: &mut Exchange,
        ask: impl FnOnce(&mut Exchange) -> Outcome,
        read: impl FnOnce(&mut Exchange) -> Option<(V, usize, Lifetime)>,
    ) -> Found<V> {
        let now_ms = exchange.unix_ms();
        let mut waits = 0;
        if let Some(progress) = exchange.filter_state.take::<_, Progress<V>>(owner) {
            match (progress.key == self.key, progress.fetch) {
                (true, Some(fetch)) => return self.fetched(fetch, progress.stale, read(exchange), now_ms),
                (true, None) => waits = progress.waits,
                (false, _) => {}
            }
        }
        let (fetch, stale) = match self.map.lookup_since(self.key, self.since_ms, now_ms) {
            Lookup::Hit(value) => return Found::Value(value),
            Lookup::Failed => return Found::Nothing,
            Lookup::Pending(_) if waits == MAX_WAITS => return Found::Nothing,
            Lookup::Pending(pending) => {
                self.keep(owner, exchange, None, None, waits + 1);
                return Found::Wait(Outcome::Suspend(Suspend::event(pending, self.timeout)));
            }
            Lookup::Stale(value, fetch) => (fetch, Some(value)),
            Lookup::Miss(fetch) => (fetch, None),
        };
        let outcome = ask(exchange);
        self.keep(owner, exchange, Some(fetch), stale, waits);
        Found::Wait(outcome)
    }

    fn keep<O>(
        &self,
        owner: &O,
        exchange: &mut Exchange,
        fetch: Option<Fetch<V>>,
        stale: Option<V>,
        waits: u8,
    ) {
        let progress = Progress {
            key: self.key.to_vec(),
            fetch,
            stale,
            waits,
        };
        exchange.filter_state.put(owner, progress);
    }

    fn fetched(
        &self,
        fetch: Fetch<V>,
        stale: Option<V>,
        answer: Option<(V, usize, Lifetime)>,
        now_ms: u64,
    ) -> Found<V> {
        match answer {
            Some((value, bytes, lifetime)) => {
                fetch.store(value.clone(), bytes, lifetime, now_ms);
                Found::Value(value)
            }
            None => {
                fetch.fail(self.retry_ms, now_ms);
                stale.map_or(Found::Nothing, Found::Value)
            }
        }
    }
}
