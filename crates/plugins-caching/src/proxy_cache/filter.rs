//! The work on a request: an answer from the cache, or a fetch whose response is kept.

use super::Config;
use super::conditions::{ANSWERABLE, CONDITIONS, RangeResult, is_for_service, is_not_modified, part};
use super::control::Control;
use super::entry::{CacheEntry, Freshness, Key};
use super::flight::FlightRole;
use super::key::KeyMaker;
use super::pending::{CacheStatus, Fetch, Pending};
use super::record::{MediaType, hides};
use super::redis::{LocalCopy, PurgeState, RedisLookup, RedisStore};
use super::zone::{Zone, ZoneLookup};
use data_encoding::HEXLOWER;
use std::sync::Arc;
use std::time::Duration;
use weir_plugin::{
    Exchange, Filter, Headers, Outcome, Phases, Refusal, RefusalKind, Reply, SharedReply, Suspend, Template,
};
use weir_plugins_shared::graphql;

/// How often a call waits for the disk at most: for the list of headers by which responses differ, and for one of them.
const MAX_DISK_WAITS: u8 = 3;
/// Methods that change nothing (RFC 9110, 9.2.1).
const SAFE: [&[u8]; 4] = [b"GET", b"HEAD", b"OPTIONS", b"TRACE"];

/// An instance of `proxy-cache`.
pub(super) struct CacheFilter {
    pub(super) config: Config,
    pub(super) zone: Arc<Zone>,
    /// Where responses are kept instead.
    pub(super) redis: Option<Arc<RedisStore>>,
    keys: KeyMaker,
    bypass: Vec<Template>,
    pub(super) no_store: Vec<Template>,
    pub(super) content_types: Vec<MediaType>,
}

/// That a call has waited for another one.
struct LeaderAwaited;

/// How often a call has waited for the disk.
struct DiskWaits(u8);

impl CacheFilter {
    pub(super) fn new(config: Config, zone: Arc<Zone>, redis: Option<RedisStore>) -> Self {
        let templates = |texts: &[String]| texts.iter().map(|text| Template::parse(text)).collect();
        Self {
            keys: KeyMaker::new(&config),
            bypass: templates(&config.bypass),
            no_store: templates(&config.no_store),
            content_types: config
                .content_types
                .iter()
                .map(|text| MediaType::parse(text.as_bytes()))
                .collect(),
            config,
            zone,
            redis: redis.map(Arc::new),
        }
    }

    /// Whether RFC 9111 counts in full.
    pub(super) fn is_full(&self) -> bool {
        self.config.cache_control && self.config.revalidate
    }

    fn pass_on(&self, exchange: &mut Exchange, status: CacheStatus) -> Outcome {
        let is_unsafe = !SAFE.contains(&exchange.request.method.as_slice());
        let forgets = self.config.invalidate && !self.config.graphql && is_unsafe;
        let pending = Pending {
            status,
            key: None,
            fetch: None,
            forget: forgets.then(|| self.keys.of(exchange)),
        };
        exchange.filter_state.put(self, pending);
        Outcome::Continue
    }

    /// The reason why the call is not for the cache.
    fn passes(&self, exchange: &Exchange, control: &Control) -> Option<CacheStatus> {
        let method = exchange.request.method.as_slice();
        if !self.config.methods.iter().any(|known| known.as_bytes() == method) {
            return Some(CacheStatus::OtherMethod);
        }
        let is_unwanted = control.no_store || control.no_cache && !self.config.revalidate;
        // What the upstream answers to the wish for another protocol is not for those who have no such wish.
        (is_unwanted
            || exchange.request.wants_upgrade
            || self.may_depend_on_body(exchange)
            || any_is_set(&self.bypass, exchange))
        .then_some(CacheStatus::Bypass)
    }

    /// Whether the response may depend on a body that is not part of the key: then other callers must not get it. The
    /// body of a GET or HEAD has no meaning that a cache could know (RFC 9110, 9.3.1).
    fn may_depend_on_body(&self, exchange: &Exchange) -> bool {
        let request = &exchange.request;
        let has_body_in_key = match request.method.as_slice() {
            b"GET" | b"HEAD" => false,
            _ => self.config.graphql || self.keys.needs_body(),
        };
        (request.has_body || request.body.as_ref().is_some_and(|body| !body.is_empty())) && !has_body_in_key
    }

    /// Whether the caller takes a response of this age.
    fn is_acceptable(
        &self,
        entry: &CacheEntry,
        freshness: Freshness,
        control: &Control,
        now_ms: u64,
    ) -> bool {
        let times = &entry.times;
        if !self.config.cache_control {
            return freshness == Freshness::Fresh;
        }
        let age = times.age_at(now_ms) / 1000;
        let fresh = times.fresh / 1000;
        let is_young = control.max_age.is_none_or(|most| age <= most);
        let stays = control
            .min_fresh
            .is_none_or(|least| fresh.saturating_sub(age) >= least);
        let stale = age.saturating_sub(fresh);
        let may_be_stale = !times.never_stale && control.max_stale.is_some_and(|most| stale <= most);
        !control.no_cache && is_young && stays && (freshness == Freshness::Fresh || may_be_stale)
    }

    /// An answer of what is kept.
    fn hit(
        &self,
        exchange: &mut Exchange,
        entry: &CacheEntry,
        key: &Key,
        status: CacheStatus,
        now_ms: u64,
    ) -> Outcome {
        let mut reply = Reply::new(entry.status, "", "");
        let mut shared = entry.shared();
        self.apply_conditions_and_range(exchange, &mut reply.status, &mut shared, None);
        if self.config.hide_cache_headers {
            Arc::make_mut(&mut shared.headers).retain(|header| !hides(header.name));
        }
        reply.shared = Some(shared);
        let own = &mut exchange.response_headers;
        if self.config.age {
            let age = entry.times.age_at(now_ms) / 1000;
            own.append(b"Age", itoa::Buffer::new().format(age).as_bytes());
        }
        self.set_status_headers(own, status, Some(key));
        Outcome::Reply(Box::new(reply))
    }

    /// Tells how the call was answered.
    pub(super) fn set_status_headers(&self, headers: &mut Headers, status: CacheStatus, key: Option<&Key>) {
        if let (Some(name), Some(word)) = (&self.config.status_header, self.config.status_values.of(status)) {
            headers.set(name.as_bytes(), word.as_bytes());
        }
        if let (Some(name), Some(key)) = (&self.config.key_header, key) {
            headers.set(name.as_bytes(), HEXLOWER.encode(key).as_bytes());
        }
    }

    /// Turns a whole response into the requested form: 304 Not Modified, or a part of it. `request` are the caller's
    /// headers, if the headers of the exchange are different ones.
    pub(super) fn apply_conditions_and_range(
        &self,
        exchange: &Exchange,
        status: &mut u16,
        shared: &mut SharedReply,
        request: Option<&Headers>,
    ) {
        let request = request.unwrap_or(&exchange.request.headers);
        if *status != 200 || !CONDITIONS.iter().any(|name| request.contains(name)) {
            return;
        }
        if is_not_modified(request, &shared.headers) {
            *status = 304;
            shared.range = 0..0;
            Arc::make_mut(&mut shared.headers).remove(b"content-type");
            return;
        }
        if !self.config.ranges || exchange.request.method != b"GET" {
            return;
        }
        let length = shared.body.len();
        let (new, range, content_range) = match part(request, &shared.headers, length) {
            RangeResult::Whole => return,
            RangeResult::Bytes(range) => {
                let content_range = format!("bytes {}-{}/{length}", range.start, range.end - 1);
                (206, range, content_range)
            }
            RangeResult::Beyond => (416, 0..0, format!("bytes */{length}")),
        };
        *status = new;
        shared.range = range;
        Arc::make_mut(&mut shared.headers).set(b"Content-Range", content_range.as_bytes());
    }

    fn purge(&self, exchange: &mut Exchange) -> Outcome {
        let key = self.keys.of(exchange);
        // A disk says only that something may be there, until it has been read.
        let has_read = exchange.filter_state.take::<_, DiskWaits>(self).is_some();
        if !has_read && self.zone.is_perhaps_on_disk(&key) {
            let now_ms = exchange.unix_ms();
            if let Some(outcome) = self.load_from_disk(exchange, key, now_ms) {
                return outcome;
            }
        }
        let was_in_memory = self.zone.is_in_memory(&key);
        let was_here = self.zone.purge(&key) && (was_in_memory || !has_read);
        let was_there = match (&self.redis, exchange.filter_state.take::<_, PurgeState>(self)) {
            (None, _) => was_here,
            (Some(redis), None) => {
                exchange.filter_state.put(self, PurgeState::Asked);
                return redis.forget(&key);
            }
            (Some(_), Some(_)) => match exchange.redis.take().flatten() {
                Some(answer) => answer.numbers.first().is_some_and(|count| *count > 0),
                None => return answered(503),
            },
        };
        match was_there {
            true => Outcome::Reply(Box::new(Reply::new(200, "text/plain", ""))),
            false => answered(404),
        }
    }

    /// Waits for what is on the disk under this key; `None`: it is not worth waiting for any more.
    fn load_from_disk(&self, exchange: &mut Exchange, place: Key, now_ms: u64) -> Option<Outcome> {
        let DiskWaits(waits) = exchange.filter_state.take(self).unwrap_or(DiskWaits(0));
        if waits == MAX_DISK_WAITS {
            return None;
        }
        exchange.filter_state.put(self, DiskWaits(waits + 1));
        let landing = self.zone.load_from_disk(place, now_ms, self.config.wait_ms)?;
        let at_most = Duration::from_millis(self.config.wait_ms);
        Some(Outcome::Suspend(Suspend::event(landing, at_most)))
    }

    /// Fetches the response, or waits for who fetches it already.
    fn fetch(
        &self,
        exchange: &mut Exchange,
        fetch: Fetch,
        status: CacheStatus,
        shares: bool,
        now_ms: u64,
    ) -> Outcome {
        let mut fetch = fetch;
        let has_waited = exchange.filter_state.take::<_, LeaderAwaited>(self).is_some();
        if shares && exchange.request.method != b"HEAD" {
            match self.zone.lead(fetch.place, now_ms, self.config.wait_ms) {
                FlightRole::FetchLeader(lead) => fetch.lead = Some(lead),
                seat => {
                    let stored = fetch.stored.as_ref();
                    let does = |entry: &&Arc<CacheEntry>| {
                        entry.times.may_be_stale(entry.times.while_revalidate, now_ms)
                    };
                    if status == CacheStatus::Expired
                        && let Some(entry) = stored.filter(does)
                    {
                        return self.hit(exchange, entry, &fetch.key, CacheStatus::Stale, now_ms);
                    }
                    // A call for which there is no room among those that wait fetches it for itself.
                    if let FlightRole::Wait(landing) = seat
                        && !has_waited
                    {
                        exchange.filter_state.put(self, LeaderAwaited);
                        let at_most = Duration::from_millis(self.config.wait_ms);
                        return Outcome::Suspend(Suspend::event(landing, at_most));
                    }
                }
            }
        }
        if self.config.revalidate
            && exchange.request.method == b"GET"
            && let Some(entry) = fetch.stored.as_ref().filter(|entry| entry.has_validator())
        {
            fetch.asks = true;
            ask_about(entry, &mut exchange.request.headers);
        }
        let pending = Pending {
            status,
            key: Some(fetch.key),
            fetch: Some(fetch),
            forget: None,
        };
        exchange.filter_state.put(self, pending);
        Outcome::Continue
    }
}

/// Makes a request one for what has changed since (RFC 9111, 4.3.1).
fn ask_about(entry: &CacheEntry, request: &mut Headers) {
    for name in ANSWERABLE {
        request.remove(name);
    }
    if let Some(tag) = entry.headers.get(b"etag") {
        request.append(b"If-None-Match", tag);
    }
    if let Some(modified) = entry.headers.get(b"last-modified") {
        request.append(b"If-Modified-Since", modified);
    }
}

/// Whether one of the texts is neither empty nor `0`.
pub(super) fn any_is_set(templates: &[Template], exchange: &Exchange) -> bool {
    templates.iter().any(|template| {
        let mut text = Vec::new();
        template.render(exchange, &mut text);
        !matches!(text.as_slice(), b"" | b"0")
    })
}

fn answered(status: u16) -> Outcome {
    let kind = RefusalKind::Answered {
        plugin: "proxy-cache",
    };
    Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
}

/// What is known of a GraphQL call: `None`, that it is one to be kept, or what becomes of it.
fn graphql_outcome(exchange: &Exchange, max_bytes: usize) -> Option<Result<CacheStatus, Outcome>> {
    match graphql::query(&exchange.request, max_bytes) {
        Ok(None) => Some(Err(Outcome::NeedBody { max_bytes })),
        Ok(Some(query)) => match graphql::Query::read(&query) {
            Ok(query) if query.has_mutation => Some(Ok(CacheStatus::Bypass)),
            Ok(_) => None,
            Err(fault) => Some(Err(graphql::GraphqlError::from(fault).outcome("proxy-cache"))),
        },
        Err(fault) => Some(Err(fault.outcome("proxy-cache"))),
    }
}

impl Filter for CacheFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn needs_body(&self) -> bool {
        self.keys.needs_body()
            || self.bypass.iter().any(Template::needs_body)
            || self.no_store.iter().any(Template::needs_body)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.config.purge && exchange.request.method == b"PURGE" {
            return self.purge(exchange);
        }
        if self.config.graphql {
            match graphql_outcome(exchange, self.config.graphql_max_body_bytes) {
                None => {}
                Some(Ok(status)) => return self.pass_on(exchange, status),
                Some(Err(outcome)) => return outcome,
            }
        }
        let control = match self.config.cache_control {
            true => Control::of(&exchange.request.headers),
            false => Control::default(),
        };
        if let Some(status) = self.passes(exchange, &control) {
            return self.pass_on(exchange, status);
        }
        if self.keys.is_indeterminate(exchange) {
            return self.pass_on(exchange, CacheStatus::Bypass);
        }
        let now_ms = exchange.unix_ms();
        let key = self.keys.of(exchange);
        let (look, location) = match &self.redis {
            None => (self.zone.look(&key, &exchange.request.headers, now_ms), None),
            Some(redis) => {
                let has_waited = exchange.filter_state.get_mut::<_, LeaderAwaited>(self).is_some();
                let here = LocalCopy {
                    zone: &self.zone,
                    waited_ms: has_waited.then_some(self.config.wait_ms),
                };
                match redis.look(exchange, &key, now_ms, &here) {
                    RedisLookup::Wait(outcome) => return outcome,
                    RedisLookup::Known(look, location) => (look, Some(location)),
                    RedisLookup::Unavailable => return self.pass_on(exchange, CacheStatus::Bypass),
                }
            }
        };
        let (status, stored, place, shares) = match look {
            ZoneLookup::Hit(entry, freshness, place) => {
                let over = freshness == Freshness::Over;
                if !over && self.is_acceptable(&entry, freshness, &control, now_ms) {
                    return self.hit(exchange, &entry, &key, CacheStatus::Hit, now_ms);
                }
                let is_old = self.config.revalidate && freshness == Freshness::Stale;
                let status = match over || is_old && control == Control::default() {
                    true => CacheStatus::Expired,
                    false => CacheStatus::Refresh,
                };
                // What each caller has to ask about itself is nothing to wait for.
                let shares = entry.times.fresh > 0;
                (status, Some(entry), place, shares)
            }
            ZoneLookup::OnDisk(place) => match self.load_from_disk(exchange, place, now_ms) {
                Some(outcome) => return outcome,
                None => (CacheStatus::Miss, None, place, true),
            },
            ZoneLookup::Nothing(place) => (CacheStatus::Miss, None, place, true),
            ZoneLookup::Pass(place) => (CacheStatus::Miss, None, place, false),
        };
        if control.only_if_cached {
            let pending = Pending {
                status: CacheStatus::OnlyIfCached,
                key: Some(key),
                fetch: None,
                forget: None,
            };
            exchange.filter_state.put(self, pending);
            return answered(504);
        }
        let request = exchange.request.headers.clone();
        let is_for_service = is_for_service(&request);
        let is_conditional = ANSWERABLE.iter().any(|name| request.contains(name));
        let is_answerable = !is_for_service && (!is_conditional || stored.is_some());
        let fetch = Fetch {
            key,
            place,
            lead: None,
            request,
            stored: stored.filter(|_| !is_for_service),
            asks: false,
            location,
        };
        self.fetch(exchange, fetch, status, shares && is_answerable, now_ms)
    }

    fn on_waiting_response(&self, exchange: &mut Exchange) -> Outcome {
        match (&self.redis, exchange.filter_state.take(self)) {
            (Some(redis), Some(PurgeState::Due(key))) => {
                exchange.filter_state.put(self, PurgeState::Asked);
                redis.forget(&key)
            }
            (_, Some(PurgeState::Asked)) => {
                // If the Redis is away, what is there is forgotten in its time.
                drop(exchange.redis.take());
                Outcome::Continue
            }
            _ => Outcome::Continue,
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        // An answer from the cache has been made ready already. What comes behind it has work to do on all answers.
        exchange.response.is_kept = false;
        if let Some(pending) = exchange.filter_state.take::<_, Pending>(self) {
            self.finish(exchange, pending);
        }
    }
}
