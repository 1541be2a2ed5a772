//! Keeping a response while it passes.

use super::control::Control;
use super::filter::{CacheFilter, Fetch, any_is_set};
use super::zone::Entry;
use weir_plugin::{BodyFilter, Exchange, Headers};

/// Milliseconds for which nobody waits for a response after one that could not be kept.
const PASS_MS: u64 = 5_000;
/// Request headers by which responses may vary, at most.
const MAX_VARY: usize = 8;

/// Headers that are no part of what is kept, in lower case.
const NOT_KEPT: [&[u8]; 10] = [
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"content-length",
    b"age",
];

/// Whether a header tells clients about caching.
pub(super) fn hides(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"expires") || name.eq_ignore_ascii_case(b"cache-control")
}

/// A media type of a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MediaType {
    kind: Vec<u8>,
    subtype: Vec<u8>,
    parameters: Vec<Vec<u8>>,
}

impl MediaType {
    pub(super) fn parse(text: &[u8]) -> Self {
        let lower = text.to_ascii_lowercase();
        let mut parts = lower
            .split(|byte| *byte == b';')
            .map(|part| part.trim_ascii().to_vec());
        let essence = parts.next().unwrap_or_default();
        let slash = essence
            .iter()
            .position(|byte| *byte == b'/')
            .unwrap_or(essence.len());
        let mut parameters: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        parameters.sort();
        Self {
            kind: essence[..slash].to_vec(),
            subtype: essence.get(slash + 1..).unwrap_or_default().to_vec(),
            parameters,
        }
    }

    fn takes(&self, other: &Self) -> bool {
        (self.kind == b"*" || self.kind == other.kind)
            && (self.subtype == b"*" || self.subtype == other.subtype)
            && self.parameters == other.parameters
    }
}

/// Notes a body as it passes, and stores the response when it is complete.
pub(super) struct Recorder {
    fetch: Fetch,
    zone: std::sync::Arc<super::zone::Zone>,
    /// `None`: it is larger than what is kept.
    entry: Option<Entry>,
    vary: Vec<String>,
    /// The request's headers by which the response varies.
    request: Headers,
    now_ms: u64,
}

impl Recorder {
    /// Begins to note the response; `None`: it is not to be kept.
    pub(super) fn begin(cache: &CacheFilter, exchange: &mut Exchange, fetch: Fetch) -> Option<Self> {
        let now_ms = exchange.unix_ms();
        let lifetime = cache.lifetime_ms(exchange, now_ms);
        let vary = vary(&exchange.response.headers);
        let (Some(fresh_ms), Some(vary)) = (lifetime, vary) else {
            if !exchange.response.is_gateway {
                cache.zone.pass(&fetch.place, now_ms + PASS_MS);
            }
            return None;
        };
        if exchange.request.method == b"HEAD" {
            // There is no body to keep; the next GET fetches one.
            return Some(Self::looking_on(cache, fetch, now_ms));
        }
        let mut request = Headers::default();
        for name in &vary {
            for value in exchange.request.headers.get_all(name.as_bytes()) {
                request.append(name.as_bytes(), value);
            }
        }
        let keep_ms = cache
            .config
            .keep_seconds
            .map_or(fresh_ms, |seconds| seconds.saturating_mul(1000).max(fresh_ms));
        let mut headers = Vec::new();
        for header in exchange
            .response
            .headers
            .iter()
            .filter(|header| is_kept(header.name))
        {
            headers.push((
                String::from_utf8_lossy(header.name).into_owned(),
                header.value.to_vec(),
            ));
        }
        let entry = Entry {
            status: exchange.response.status,
            headers,
            body: Vec::new(),
            stored_ms: now_ms,
            fresh_ms,
            keep_ms,
        };
        Some(Self {
            fetch,
            zone: cache.zone.clone(),
            entry: Some(entry),
            vary,
            request,
            now_ms,
        })
    }

    fn looking_on(cache: &CacheFilter, fetch: Fetch, now_ms: u64) -> Self {
        Self {
            fetch,
            zone: cache.zone.clone(),
            entry: None,
            vary: Vec::new(),
            request: Headers::default(),
            now_ms,
        }
    }
}

impl CacheFilter {
    /// For how long the response is fresh; `None`: it is not to be kept.
    fn lifetime_ms(&self, exchange: &Exchange, now_ms: u64) -> Option<u64> {
        let response = &exchange.response;
        let control = Control::of(&response.headers);
        let is_kind = self.config.statuses.contains(&response.status) && !response.is_gateway;
        let is_type = self.content_types.is_empty() || {
            let content_type = response.headers.get(b"content-type").map(MediaType::parse);
            content_type.is_some_and(|own| self.content_types.iter().any(|known| known.takes(&own)))
        };
        let obeys = self.config.cache_control || self.config.obey_private;
        let is_private = (obeys && control.forbids())
            || (!self.config.store_cookies && response.headers.contains(b"set-cookie"))
            || any_is_set(&self.no_store, exchange);
        if !is_kind || !is_type || is_private {
            return None;
        }
        let seconds = match self.config.cache_control {
            true => control.lifetime(&response.headers, now_ms),
            false => self.config.ttl_seconds,
        };
        (seconds > 0).then(|| seconds.saturating_mul(1000))
    }
}

/// The request headers by which a response varies, in order; `None`: by everything.
fn vary(headers: &Headers) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for value in headers.get_all(b"vary") {
        for name in value
            .split(|byte| *byte == b',')
            .map(<[u8]>::trim_ascii)
            .filter(|name| !name.is_empty())
        {
            if name == b"*" || names.len() == MAX_VARY {
                return None;
            }
            names.push(String::from_utf8_lossy(name).to_ascii_lowercase());
        }
    }
    names.sort();
    names.dedup();
    Some(names)
}

/// Whether a header is part of what is kept: neither the connection's nor the caller's.
fn is_kept(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    !NOT_KEPT.contains(&name.as_slice()) && memchr::memmem::find(&name, b"ratelimit-remaining").is_none()
}

impl BodyFilter for Recorder {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(data);
        if let Some(entry) = &mut self.entry {
            if entry.body.len() + data.len() <= self.zone.max_body() {
                entry.body.extend_from_slice(data);
                return;
            }
            self.entry = None;
            self.zone.pass(&self.fetch.place, self.now_ms + PASS_MS);
            // Nobody needs to wait for the rest.
            self.fetch.lead = None;
        }
    }

    fn end(&mut self, _: &mut Vec<u8>) {
        if let Some(entry) = self.entry.take() {
            self.zone.store(&self.fetch.key, &self.vary, &self.request, entry);
        }
        self.fetch.lead = None;
    }

    fn keeps_length(&self) -> bool {
        true
    }
}
