//! Keeping a response while it passes: what of its head and body is kept, and when it is given up.

use super::Config;
use super::entry::{CacheEntry, Times};
use super::filter::CacheFilter;
use super::pending::Fetch;
use std::sync::Arc;
use weir_plugin::{BodyFilter, Exchange, Headers};

/// Milliseconds in which no call waits for a response, after one that could not be stored.
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

/// Whether a header gives clients instructions about caching.
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

    pub(super) fn takes(&self, other: &Self) -> bool {
        (self.kind == b"*" || self.kind == other.kind)
            && (self.subtype == b"*" || self.subtype == other.subtype)
            && self.parameters == other.parameters
    }
}

/// Notes a body as it passes, and stores the response when it is complete.
pub(super) struct Recorder {
    fetch: Fetch,
    zone: Arc<super::zone::Zone>,
    redis: Option<Arc<super::redis::RedisStore>>,
    /// `None`: it is larger than what is kept.
    noted: Option<RecordedResponse>,
    vary: Vec<String>,
    now_ms: u64,
}

/// A response as far as it has passed.
struct RecordedResponse {
    status: u16,
    headers: Headers,
    times: Times,
    body: Vec<u8>,
}

impl Recorder {
    /// Begins to note the response; `None`: it is not to be kept.
    pub(super) fn begin(cache: &CacheFilter, exchange: &mut Exchange, fetch: Fetch) -> Option<Self> {
        let now_ms = exchange.unix_ms();
        let response = &exchange.response;
        let times = match response.is_gateway {
            true => None,
            false => cache.times(exchange, &response.headers, response.status, &fetch, now_ms),
        };
        let vary = vary(&response.headers);
        let (Some(times), Some(vary)) = (times, vary) else {
            // The response to a conditional request says nothing about the next call.
            if !response.is_gateway && response.status != 304 && response.status != 206 {
                cache.zone.pass(&fetch.place, now_ms + PASS_MS);
            }
            return None;
        };
        let mut recorder = Self {
            fetch,
            zone: Arc::clone(&cache.zone),
            redis: cache.redis.clone(),
            noted: None,
            vary,
            now_ms,
        };
        // To a HEAD there is no body to keep; the next GET fetches one.
        if exchange.request.method != b"HEAD" {
            let mut headers = Headers::default();
            for header in response.headers.iter() {
                // What describes this call, such as its limits, is determined for each call.
                let is_own = exchange.is_own_header(header.name, header.value);
                if !is_own && is_kept(header.name, &cache.config) {
                    headers.append(header.name, header.value);
                }
            }
            let length = response.content_length.and_then(|it| usize::try_from(it).ok());
            recorder.noted = Some(RecordedResponse {
                status: response.status,
                headers,
                times,
                body: Vec::with_capacity(length.unwrap_or(0).min(cache.zone.max_body())),
            });
        }
        Some(recorder)
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

/// Whether a header is stored: not if it belongs to the connection or the caller, or describes this cache.
pub(super) fn is_kept(name: &[u8], config: &Config) -> bool {
    let name = name.to_ascii_lowercase();
    let own = [&config.status_header, &config.key_header];
    let is_own = |it: &&Option<String>| {
        it.as_ref()
            .is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(&name))
    };
    !NOT_KEPT.contains(&name.as_slice())
        && memchr::memmem::find(&name, b"ratelimit-remaining").is_none()
        && !own.iter().any(is_own)
}

impl BodyFilter for Recorder {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(data);
        if let Some(noted) = &mut self.noted {
            if noted.body.len() + data.len() <= self.zone.max_body() {
                noted.body.extend_from_slice(data);
                return;
            }
            self.noted = None;
            self.zone.pass(&self.fetch.place, self.now_ms + PASS_MS);
            // No call needs to wait for the rest.
            self.fetch.lead = None;
        }
    }

    fn end(&mut self, _: &mut Vec<u8>) {
        if let Some(noted) = self.noted.take() {
            let entry = CacheEntry {
                status: noted.status,
                headers: Arc::new(noted.headers),
                body: noted.body.into(),
                times: noted.times,
            };
            if let (Some(redis), Some(location)) = (&self.redis, &self.fetch.location) {
                redis.keep(location, &self.vary, &self.fetch.request, &entry, &self.zone);
            }
            self.zone
                .store(&self.fetch.key, &self.vary, &self.fetch.request, entry);
        }
        self.fetch.lead = None;
    }

    fn keeps_length(&self) -> bool {
        true
    }
}
