//! The exchange: one request and its response, with what is known about the call.

use crate::consumer::Identity;
use crate::headers::Headers;
use crate::request::Request;
use crate::response::Response;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_model::Voice;

/// One call on its way through the gateway. A worker reuses exchanges, so a warm one allocates nothing.
#[derive(Debug)]
pub struct Exchange {
    /// The request.
    pub request: Request,
    /// The response; its status is 0 until there is one.
    pub response: Response,
    /// Headers that filters want on the response, whoever makes it. Where the upstream sends the same name,
    /// its value stays as a second one.
    pub response_headers: Headers,
    /// Who calls, once a filter has authenticated the call.
    pub identity: Option<Identity>,
    /// The route, once matched; set only where a filter or a condition may ask.
    pub route: Option<Arc<RouteFacts>>,
    /// Named parts that the route's path pattern captured.
    pub captures: Vec<(Arc<str>, Vec<u8>)>,
    /// Overrides the Host that the route would send to the upstream.
    pub upstream_host: Option<Vec<u8>>,
    /// A filter has set `request.path` and `request.query` to what the upstream gets, escaped as on the wire; the
    /// route's own work on the path (stripping, joining with the service's, escaping anew) is left out.
    pub path_rewritten: bool,
    /// The target that was asked last.
    pub upstream: Option<SocketAddr>,
    clock: Clock,
    unix_ms: u64,
    random: u64,
    request_id: String,
}

/// What filters and conditions may know of the matched route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteFacts {
    /// The route's name.
    pub name: String,
    /// The service's name.
    pub service: String,
    /// The route's voice.
    pub voice: Voice,
}

/// Reads the time, in milliseconds since the Unix epoch.
pub type Clock = fn() -> u64;

/// The system's clock.
pub fn system_clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

impl Exchange {
    /// An empty exchange with a clock and a seed for its random numbers.
    pub fn new(clock: Clock, seed: u64) -> Self {
        Self {
            request: Request::default(),
            response: Response::default(),
            response_headers: Headers::default(),
            identity: None,
            route: None,
            captures: Vec::new(),
            upstream_host: None,
            path_rewritten: false,
            upstream: None,
            clock,
            unix_ms: 0,
            random: seed | 1,
            request_id: String::new(),
        }
    }

    /// Empties the exchange for the next call, keeping its memory.
    pub fn clear(&mut self) {
        self.request.clear();
        self.response.clear();
        self.response_headers.clear();
        self.identity = None;
        self.route = None;
        self.captures.clear();
        self.upstream_host = None;
        self.path_rewritten = false;
        self.upstream = None;
        self.unix_ms = 0;
        self.request_id.clear();
    }

    /// The time at which the call was first asked for it: one reading serves a whole call.
    #[inline]
    pub fn unix_ms(&mut self) -> u64 {
        if self.unix_ms == 0 {
            self.unix_ms = (self.clock)();
        }
        self.unix_ms
    }

    /// A random number; good for ids and sampling, not for secrets.
    #[inline]
    pub fn random_u64(&mut self) -> u64 {
        // splitmix64: full period, passes statistical tests, a few instructions.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Gives the call its id (32 hexadecimal digits) unless it has one.
    pub fn ensure_request_id(&mut self) -> &str {
        if self.request_id.is_empty() {
            let (high, low) = (self.random_u64(), self.random_u64());
            let written = write!(self.request_id, "{high:016x}{low:016x}");
            debug_assert!(written.is_ok());
        }
        &self.request_id
    }

    /// The call's id; empty until somebody needed it.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Moves [`Exchange::response_headers`] into the response. For a name that the upstream sent too, the
    /// gateway's value comes first.
    pub fn merge_response_headers(&mut self) {
        for header in self.response_headers.iter() {
            let upstreams: Vec<Vec<u8>> = match self.response.headers.contains(header.name) {
                true => self
                    .response
                    .headers
                    .get_all(header.name)
                    .map(<[u8]>::to_vec)
                    .collect(),
                false => Vec::new(),
            };
            if !upstreams.is_empty() {
                self.response.headers.remove(header.name);
            }
            self.response.headers.append(header.name, header.value);
            for value in upstreams {
                self.response.headers.append(header.name, &value);
            }
        }
        self.response_headers.clear();
    }
}
