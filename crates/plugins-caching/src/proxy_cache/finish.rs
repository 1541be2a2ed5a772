//! The work on a response: keeping it, renewing what is kept by it, or answering with what is kept in its place.

use super::control::{Control, age_ms};
use super::entry::{CacheEntry, Times};
use super::filter::{CacheFilter, any_is_set};
use super::pending::{CacheStatus, Fetch, Pending};
use super::record::{MediaType, Recorder, is_kept};
use super::redis::PurgeState;
use std::sync::Arc;
use weir_plugin::{Exchange, Headers};

/// Headers about a body, which a 304 says nothing new of.
const ABOUT_BODY: [&[u8]; 4] = [
    b"content-encoding",
    b"content-type",
    b"content-range",
    b"content-length",
];

impl CacheFilter {
    pub(super) fn finish(&self, exchange: &mut Exchange, pending: Pending) {
        let Pending {
            mut status,
            key,
            fetch,
            forget,
        } = pending;
        if let Some(key) = forget
            && (200..400).contains(&exchange.response.status)
            && !exchange.response.is_gateway
        {
            self.zone.purge(&key);
            if self.redis.is_some() {
                // The next call must not find it, whichever gateway it comes to.
                exchange.filter_state.put(self, PurgeState::Due(key));
                exchange.response.waits = true;
            }
        }
        if let Some(fetch) = fetch {
            status = self.take(exchange, fetch, status);
        }
        let headers = &mut exchange.response.headers;
        if self.config.hide_cache_headers {
            headers.remove(b"expires");
            headers.remove(b"cache-control");
        }
        self.set_status_headers(headers, status, key.as_ref());
    }

    /// Makes what there is to make of what a fetch brought.
    fn take(&self, exchange: &mut Exchange, fetch: Fetch, status: CacheStatus) -> CacheStatus {
        let now_ms = exchange.unix_ms();
        if let Some(stored) = fetch.stored.clone() {
            let response = &exchange.response;
            if fetch.asks && response.status == 304 && !response.is_gateway {
                return self.renew(exchange, fetch, &stored, now_ms);
            }
            // Of the gateway's own answers, these are for a service that has failed.
            let has_failed = match response.is_gateway {
                true => matches!(response.status, 502 | 504),
                false => matches!(response.status, 500 | 502 | 503 | 504),
            };
            if has_failed && stored.times.may_be_stale(stored.times.if_error, now_ms) {
                // What filters before this one wanted with the failed service's body does not touch the kept one.
                exchange.response.body_filters.clear();
                exchange.response.hold = None;
                self.answer_with(exchange, &stored, Some(&fetch.request));
                let age = stored.times.age_at(now_ms) / 1000;
                let age = age.to_string();
                exchange.response.headers.set(b"Age", age.as_bytes());
                return CacheStatus::Stale;
            }
        }
        match Recorder::begin(self, exchange, fetch) {
            Some(recorder) => {
                exchange.response.body_filters.push(recorder);
                status
            }
            None if self.config.status_values.not_stored.is_some() => CacheStatus::NotKept,
            None => status,
        }
    }

    /// The service has said that what is kept still holds (RFC 9111, 4.3.4).
    fn renew(&self, exchange: &mut Exchange, fetch: Fetch, stored: &CacheEntry, now_ms: u64) -> CacheStatus {
        let mut headers = Headers::default();
        let status = &exchange.response.headers;
        let is_about_body = |name: &[u8]| ABOUT_BODY.iter().any(|it| it.eq_ignore_ascii_case(name));
        for header in stored.headers.iter() {
            if is_about_body(header.name) || !status.contains(header.name) {
                headers.append(header.name, header.value);
            }
        }
        for header in status.iter() {
            if is_kept(header.name, &self.config) && !is_about_body(header.name) {
                headers.append(header.name, header.value);
            }
        }
        let entry = CacheEntry {
            status: stored.status,
            headers: Arc::new(headers),
            body: Arc::clone(&stored.body),
            times: Times::default(),
        };
        self.answer_with(exchange, &entry, Some(&fetch.request));
        let judged = self.times(exchange, &entry.headers, entry.status, &fetch, now_ms);
        let redis = self.redis.as_ref().zip(fetch.location.as_ref());
        match (judged, redis) {
            (Some(times), Some((redis, location))) => {
                redis.renew(location, &fetch.place, &CacheEntry { times, ..entry });
            }
            (Some(times), None) => self.zone.renew(&fetch.place, CacheEntry { times, ..entry }),
            (None, Some((redis, location))) => redis.forget_later(location),
            (None, None) => drop(self.zone.purge(&fetch.place)),
        }
        CacheStatus::Revalidated
    }

    /// Answers with the cached response, instead of the one that was received.
    fn answer_with(&self, exchange: &mut Exchange, entry: &CacheEntry, request: Option<&Headers>) {
        let (mut status, mut shared) = (entry.status, entry.shared());
        self.apply_conditions_and_range(exchange, &mut status, &mut shared, request);
        let response = &mut exchange.response;
        response.status = status;
        response.reason.clear();
        response.headers.copy_from(&shared.headers);
        response.content_length = Some(shared.part().len() as u64);
        response.replaced_body = Some(shared.part().to_vec());
    }

    /// The times of a response with these headers; `None`: it is not to be kept.
    pub(super) fn times(
        &self,
        exchange: &Exchange,
        headers: &Headers,
        status: u16,
        fetch: &Fetch,
        now_ms: u64,
    ) -> Option<Times> {
        let config = &self.config;
        let targeted = Control::targeted(headers).filter(|_| self.is_full());
        let control = targeted.unwrap_or_else(|| Control::of(headers));
        // A part must never be taken for the whole.
        if !config.statuses.contains(&status) || status == 206 {
            return None;
        }
        if !self.content_types.is_empty() {
            let own = headers.get(b"content-type").map(MediaType::parse)?;
            self.content_types.iter().find(|known| known.takes(&own))?;
        }
        let is_full = self.is_full();
        let obeys = config.cache_control || config.obey_private;
        let is_private = obeys && (control.forbids() || control.no_cache && !is_full)
            || !config.store_cookies && headers.contains(b"set-cookie")
            || any_is_set(&self.no_store, exchange);
        let is_known = (exchange.identity.as_ref()).is_some_and(|identity| identity.credential_id.is_some());
        let is_own = config.per_consumer && (is_known || exchange.has_fingerprint());
        let is_for_one = config.cache_control
            && !is_own
            && fetch.request.contains(b"authorization")
            && !control.allows_sharing();
        if is_private || is_for_one {
            return None;
        }
        let seconds = match config.cache_control {
            true if control.no_cache => 0,
            // What is meant for caches like this one is all that counts (RFC 9213, 2.2).
            true if targeted.is_some() => control.s_maxage.or(control.max_age).unwrap_or(0),
            true => control.lifetime(headers, now_ms).unwrap_or(0),
            false if config.obey_lifetime => {
                let status = control.lifetime(headers, now_ms);
                status.unwrap_or(config.ttl_seconds)
            }
            false => config.ttl_seconds,
        };
        let fresh = seconds.saturating_mul(1000);
        let age = if is_full { age_ms(headers, now_ms) } else { 0 };
        let has_validator = headers.contains(b"etag") || headers.contains(b"last-modified");
        let beyond = |status: Option<u64>, usual: u64| {
            let status = status.filter(|_| is_full).unwrap_or(usual);
            status.saturating_mul(1000)
        };
        let while_revalidate = beyond(
            control.stale_while_revalidate,
            config.stale_while_revalidate_seconds,
        );
        let if_error = beyond(control.stale_if_error, config.stale_if_error_seconds);
        let kept = config
            .storage_ttl_seconds
            .unwrap_or(0)
            .saturating_mul(1000)
            .max(fresh);
        let times = Times {
            stored: now_ms,
            age,
            fresh,
            keep: kept.max(fresh.saturating_add(while_revalidate.max(if_error))),
            while_revalidate,
            if_error,
            never_stale: is_full && control.forbids_stale(),
            always_ask: control.no_cache,
        };
        let is_useful = fresh > age || is_full && (status == 200 && has_validator);
        is_useful.then_some(times)
    }
}
