//! Fetching something through the engine, once for all calls that need it at the same time: a document, a key set, a
//! token, a decision. What is fetched, and how long it is good, is for those who ask.

use std::sync::Arc;
use std::time::Duration;
use weir_flow::expiring::{ExpiringMap, Fetch, Lifetime, Lookup};
use weir_flow::rate_limit::KeyPrefix;
use weir_plugin::{Exchange, Outcome, SubrequestResponse, Suspend};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules};

/// How often a call waits for others before it gives up.
const MAX_WAITS: u8 = 8;

/// What a call needs from the engine, or answers, before it can go on.
pub(crate) type Step<T> = Result<T, Box<Outcome>>;

/// A fetch of this call, or its wait for another one's.
struct Progress<V: Clone> {
    key: Vec<u8>,
    fetch: Option<Fetch<V>>,
    stale: Option<V>,
    waits: u8,
    /// How long nothing is fetched if this fetch fails.
    retry_ms: u64,
}

/// What there is.
#[derive(Debug)]
pub(crate) enum FetchResult<V> {
    /// The value.
    Value(V),
    /// There is no value: fetching it has failed, just now or a short time ago.
    Nothing,
    /// The engine has to do this first; then the filter asks again.
    Wait(Outcome),
}

/// What a call looks for.
pub(crate) struct FetchRequest<'w, V: Clone> {
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

impl<V: Clone + 'static> FetchRequest<'_, V> {
    /// Finds the value. `ask` says how it is fetched, and `read` takes the answer out of the exchange: the value, its size in
    /// bytes, and how long it is good.
    pub(crate) fn find<O: 'static>(
        &self,
        owner: &O,
        exchange: &mut Exchange,
        ask: impl FnOnce(&mut Exchange) -> Outcome,
        read: impl FnOnce(&mut Exchange) -> Option<(V, usize, Lifetime)>,
    ) -> FetchResult<V> {
        let now_ms = exchange.unix_ms();
        let mut waits = 0;
        if let Some(progress) = exchange.filter_state.take::<_, Progress<V>>(owner) {
            match (progress.key == self.key, progress.fetch) {
                (true, Some(fetch)) => {
                    let answer = read(exchange);
                    return self.fetched(fetch, progress.stale, answer, progress.retry_ms, now_ms);
                }
                (true, None) => waits = progress.waits,
                (false, _) => {}
            }
        }
        let (fetch, stale) = match self.map.lookup_since(self.key, self.since_ms, now_ms) {
            Lookup::Hit(value) => return FetchResult::Value(value),
            Lookup::Failed => return FetchResult::Nothing,
            Lookup::Pending(_) if waits == MAX_WAITS => return FetchResult::Nothing,
            Lookup::Pending(pending) => {
                self.keep(owner, exchange, None, None, waits + 1);
                return FetchResult::Wait(Outcome::Suspend(Suspend::event(pending, self.timeout)));
            }
            Lookup::Stale(value, fetch) => (fetch, Some(value)),
            Lookup::Miss(fetch) => (fetch, None),
        };
        let outcome = ask(exchange);
        self.keep(owner, exchange, Some(fetch), stale, waits);
        FetchResult::Wait(outcome)
    }

    fn keep<O: 'static>(
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
            retry_ms: self.retry_ms,
        };
        exchange.filter_state.put(owner, progress);
    }

    fn fetched(
        &self,
        fetch: Fetch<V>,
        stale: Option<V>,
        answer: Option<(V, usize, Lifetime)>,
        retry_ms: u64,
        now_ms: u64,
    ) -> FetchResult<V> {
        match answer {
            Some((value, bytes, lifetime)) => {
                fetch.store(value.clone(), bytes, lifetime, now_ms);
                FetchResult::Value(value)
            }
            None => {
                fetch.fail(retry_ms, now_ms);
                // The fetch may have been a renewal. Callers that accept any value use the old value that it did not
                // replace.
                let kept = || self.map.get(self.key, now_ms).filter(|_| self.since_ms == 0);
                stale
                    .or_else(kept)
                    .map_or(FetchResult::Nothing, FetchResult::Value)
            }
        }
    }
}

/// A question of this call, whose answer no other call gets.
struct PrivateFetch(Vec<u8>);

/// Asks for this call only: nothing is looked up, and nothing is kept.
pub(crate) fn unshared<O: 'static, V>(
    key: &[u8],
    owner: &O,
    exchange: &mut Exchange,
    ask: impl FnOnce(&mut Exchange) -> Outcome,
    read: impl FnOnce(&mut Exchange) -> Option<V>,
) -> FetchResult<V> {
    let asked = exchange.filter_state.take::<_, PrivateFetch>(owner);
    if asked.is_some_and(|asked| asked.0 == key) {
        return read(exchange).map_or(FetchResult::Nothing, FetchResult::Value);
    }
    let outcome = ask(exchange);
    exchange.filter_state.put(owner, PrivateFetch(key.to_vec()));
    FetchResult::Wait(outcome)
}

/// The key of something in a shared map. It shows none of its parts: see [`weir_flow::rate_limit::key`].
pub(crate) type SharedKey = [u8; 16];

/// The parts of a key, kept apart: no two lists of parts look the same. What many keys begin with is hashed once, and
/// cloned for each of them.
#[derive(Clone)]
pub(crate) struct KeyParts(KeyPrefix);

impl KeyParts {
    /// These parts.
    pub(crate) fn of<P: AsRef<[u8]>>(parts: &[P]) -> Self {
        let mut key = Self(KeyPrefix::new(&[]));
        parts.iter().for_each(|part| key.add(part.as_ref()));
        key
    }

    pub(crate) fn add(&mut self, part: &[u8]) {
        self.0.extend(&[part]);
    }

    /// Adds a part that may be missing: before it stands whether it is there.
    pub(crate) fn add_if_there(&mut self, part: Option<&[u8]>) {
        self.add(&[u8::from(part.is_some())]);
        self.add(part.unwrap_or_default());
    }

    /// The key of these parts with more behind them.
    pub(crate) fn finish(&self, more: &[&[u8]]) -> SharedKey {
        self.0.key(more).to_le_bytes()
    }
}

/// Parts as one key, which shows none of them.
pub(crate) fn hashed<P: AsRef<[u8]>>(parts: &[P]) -> SharedKey {
    KeyParts::of(parts).finish(&[])
}

/// How far an answer can be trusted, and how long it is kept. It belongs to the key of what instances share: an instance with
/// stricter rules does not use what one with laxer rules has fetched.
pub(crate) fn trust(rules: &ServerCallRules, cache_seconds: u64) -> String {
    let proxy = rules.connector.as_ref().and_then(|it| it.proxy.as_ref());
    let proxy = proxy.map(|it| (&it.host, it.port, &it.authorization));
    format!("{} {cache_seconds} {proxy:?}", rules.verify_tls)
}

/// An answer with status 200.
pub(crate) fn good(answer: Option<SubrequestResponse>) -> Option<SubrequestResponse> {
    answer.filter(|answer| answer.status == 200)
}

/// What was found, or what the engine has to do first.
pub(crate) fn require_value<V>(found: FetchResult<V>) -> Step<Option<V>> {
    match found {
        FetchResult::Value(value) => Ok(Some(value)),
        FetchResult::Nothing => Ok(None),
        FetchResult::Wait(outcome) => Err(Box::new(outcome)),
    }
}

/// How long nothing is fetched after a failure.
pub(crate) const RETRY_MS: u64 = 2_000;
/// A key that is not in a document fetches the document again, at most so often.
pub(crate) const ROTATION_MS: u64 = 30_000;
/// How long documents are used when their server does not answer.
pub(crate) const STALE_MS: u64 = 86_400_000;

/// A document with keys on a server, fetched once for all calls.
pub(crate) struct KeyDocument<'k, V: Clone> {
    /// Where it is kept when it is read.
    pub(crate) map: &'k Arc<ExpiringMap<V>>,
    /// By what.
    pub(crate) key: &'k [u8],
    /// Where it is.
    pub(crate) server: &'k HttpServer,
    /// How its server is asked.
    pub(crate) rules: &'k ServerCallRules,
    /// `Authorization` for the server.
    pub(crate) authorization: Option<&'k str>,
    /// How long it is good.
    pub(crate) lifetime: Lifetime,
}

impl<V: Clone + 'static> KeyDocument<'_, V> {
    /// The document, as `read` reads it; `None`: it cannot be had. With `renewed` it is fetched again unless that was done a
    /// short time ago.
    pub(crate) fn find<O: 'static>(
        &self,
        owner: &O,
        exchange: &mut Exchange,
        renewed: bool,
        read: impl FnOnce(&[u8]) -> Option<V>,
    ) -> Step<Option<V>> {
        let since_ms = exchange.unix_ms().saturating_sub(ROTATION_MS);
        let wanted = FetchRequest {
            map: self.map,
            key: self.key,
            since_ms: if renewed { since_ms } else { 0 },
            retry_ms: if renewed { ROTATION_MS } else { RETRY_MS },
            timeout: self.rules.timeout,
        };
        let headers = self.authorization.map(|value| ("Authorization", value));
        let request = HttpRequest {
            headers: headers.as_slice(),
            ..HttpRequest::GET
        };
        require_value(wanted.find(
            owner,
            exchange,
            |_| Outcome::Subrequest(Box::new(self.server.request(request, self.rules))),
            |exchange| {
                let answer = good(exchange.subrequest_response.take()?)?;
                Some((read(&answer.body)?, answer.body.len() * 4, self.lifetime))
            },
        ))
    }
}
