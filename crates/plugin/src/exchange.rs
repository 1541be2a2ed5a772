//! The exchange: one request and its response, with what is known about the call.

use crate::background_request::BackgroundRequest;
use crate::consumer::Identity;
use crate::conversation::UpstreamDialogue;
use crate::destination::DestinationId;
use crate::filter_state::FilterState;
use crate::headers::Headers;
use crate::redis::RedisResponse;
use crate::request::Request;
use crate::response::Response;
use crate::subrequest::SubrequestResponse;
use crate::target_override::TargetOverride;
use crate::trace::TraceContext;
use crate::upstream_proxy::UpstreamProxy;
use crate::websocket::MessageFilter;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;
use weir_model::DialectName;

/// One call on its way through the gateway. A worker reuses exchanges, so a warm one allocates nothing.
#[derive(Debug)]
pub struct Exchange {
    /// The request.
    pub request: Request,
    /// The response; its status is 0 until there is one.
    pub response: Response,
    /// Headers that filters want on the response, the gateway's own or the upstream's. Where the upstream sends the same name,
    /// its value stays as a second one.
    pub response_headers: Headers,
    /// Those of [`Exchange::response_headers`] that are on the response.
    own_headers: Headers,
    /// Who calls, once a filter has authenticated the call.
    pub identity: Option<Identity>,
    /// That of the last call that had one, for the next one of the same caller.
    last_identity: Option<Identity>,
    /// What distinguishes this caller from others besides its identity: filters that identify callers in another way
    /// add their evidence. Caches keep responses apart by it.
    pub identity_fingerprint: Vec<u8>,
    /// The names of the request headers about a user that filters have set, each with a line's end.
    user_headers: String,
    /// The route, once matched; set only if a filter or a condition may need it.
    pub route: Option<Arc<RouteInfo>>,
    /// How many bytes of the path (as it was matched) the route's pattern covers; set if [`Exchange::route`] is set.
    pub matched_len: usize,
    /// Named parts that the route's path pattern captured.
    pub captures: Vec<(Arc<str>, Vec<u8>)>,
    /// Overrides the Host that the route would send to the upstream.
    pub upstream_host: Option<Vec<u8>>,
    /// Whether the override is ignored if the route sets a Host of its own instead of the client's.
    pub upstream_host_yields: bool,
    /// The path for the upstream instead of the call's, escaped as on the wire; the route's own changes of the path
    /// (stripping, joining with the service's, escaping again) are skipped.
    pub upstream_path: Option<Vec<u8>>,
    /// The query for the upstream instead of the call's, without its `?`; empty: none.
    pub upstream_query: Option<Vec<u8>>,
    /// The destination that a filter chose instead of the route's own service; see
    /// [`BuildContext::destination`](crate::BuildContext::destination).
    pub destination: Option<DestinationId>,
    /// The target that a filter chose instead of the service's own targets.
    pub target_override: Option<Box<TargetOverride>>,
    /// Timeouts for the upstream, instead of the route's own.
    pub upstream_timeouts: UpstreamTimeouts,
    /// The proxies that the call goes through on its way to the upstream; `None`: it goes there directly.
    pub upstream_proxy: Option<Arc<UpstreamProxy>>,
    /// What is said to the target in place of the call, over a connection of its own.
    pub upstream_dialogue: Option<UpstreamDialogue>,
    /// The statuses of the upstream after which the call is sent once more, after
    /// [`Filter::on_refused`](crate::Filter::on_refused) of the chain; only if its body can be sent again, and the
    /// limits of retries allow it. The response before is dropped.
    pub repeat_on: Option<Arc<[u16]>>,
    /// The target that was asked last.
    pub upstream: Option<SocketAddr>,
    /// The result of the last subrequest of a filter, until it takes it: an answer, or none.
    pub subrequest_response: Option<Option<SubrequestResponse>>,
    /// The result of the last script of a filter, until it takes it: an answer, or none.
    pub redis: Option<Option<RedisResponse>>,
    /// What looks at the messages, if the call becomes a WebSocket.
    pub message_filters: Vec<Arc<dyn MessageFilter>>,
    /// What is sent beside the call once it is forwarded.
    pub background_requests: Vec<BackgroundRequest>,
    /// The call's place in a trace, once a filter has found or made it.
    pub trace: Option<TraceContext>,
    /// What filters keep of the call between their phases; dropped when it is over.
    pub filter_state: FilterState,
    clock: Clock,
    unix_ms: u64,
    random: u64,
    request_id: String,
    /// The id that something has looked at before the call was given one.
    late_request_id: OnceCell<String>,
}

/// Timeouts for an upstream in milliseconds, instead of a route's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpstreamTimeouts {
    /// To establish a connection.
    pub connect_ms: Option<u64>,
    /// Between two successful writes of the request.
    pub write_ms: Option<u64>,
    /// Between two successful reads of the response.
    pub read_ms: Option<u64>,
    /// For all tries of the call together; 0: no bound.
    pub total_ms: Option<u64>,
}

/// What filters and conditions may know of the matched route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteInfo {
    /// The route's name.
    pub name: String,
    /// The service's name.
    pub service: String,
    /// The route's dialect.
    pub dialect: DialectName,
    /// Further facts about the route, for variables; see [`weir_model::Route::labels`].
    pub labels: BTreeMap<String, String>,
}

/// By byte: its two hexadecimal digits.
const HEXADECIMAL: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        let digits = b"0123456789abcdef";
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Reads the time, in milliseconds since the Unix epoch.
pub type Clock = fn() -> u64;

/// The system's clock.
pub fn system_clock() -> u64 {
    weir_model::unix_time::millis(SystemTime::now())
}

impl Exchange {
    /// An empty exchange with a clock and a seed for its random numbers.
    pub fn new(clock: Clock, seed: u64) -> Self {
        Self {
            request: Request::default(),
            response: Response::default(),
            response_headers: Headers::default(),
            own_headers: Headers::default(),
            identity: None,
            last_identity: None,
            identity_fingerprint: Vec::new(),
            user_headers: String::new(),
            route: None,
            matched_len: 0,
            captures: Vec::new(),
            upstream_host: None,
            upstream_host_yields: false,
            upstream_path: None,
            upstream_query: None,
            destination: None,
            target_override: None,
            upstream_timeouts: UpstreamTimeouts::default(),
            upstream_proxy: None,
            upstream_dialogue: None,
            repeat_on: None,
            upstream: None,
            subrequest_response: None,
            redis: None,
            message_filters: Vec::new(),
            background_requests: Vec::new(),
            trace: None,
            filter_state: FilterState::default(),
            clock,
            unix_ms: 0,
            random: seed | 1,
            request_id: String::new(),
            late_request_id: OnceCell::new(),
        }
    }

    /// Empties the exchange for the next call, keeping its memory.
    pub fn clear(&mut self) {
        self.request.clear();
        self.response.clear();
        self.response_headers.clear();
        self.own_headers.clear();
        if self.identity.is_some() {
            self.last_identity = self.identity.take();
        }
        self.identity_fingerprint.clear();
        self.user_headers.clear();
        self.route = None;
        self.matched_len = 0;
        self.captures.clear();
        self.upstream_host = None;
        self.upstream_host_yields = false;
        self.upstream_path = None;
        self.upstream_query = None;
        self.destination = None;
        self.target_override = None;
        self.upstream_timeouts = UpstreamTimeouts::default();
        self.upstream_proxy = None;
        self.upstream_dialogue = None;
        self.repeat_on = None;
        self.subrequest_response = None;
        self.redis = None;
        self.message_filters.clear();
        self.background_requests.clear();
        self.trace = None;
        self.filter_state.clear();
        self.upstream = None;
        self.unix_ms = 0;
        self.request_id.clear();
        if self.late_request_id.take().is_some() {
            // Its numbers are used: the next call's are others.
            self.random_u64();
        }
    }

    /// Notes who calls; `unnamed` stands for the name of a credential without one. Callers come again and again: the identity of
    /// the last call is taken if it is the same, as all workers share its reference counts.
    pub fn identify(&mut self, identity: &Identity, unnamed: &Arc<str>) {
        let credential = identity.credential_id.as_ref().unwrap_or(unnamed);
        let is_same = |last: &Identity| {
            let is_it = |known: &Arc<str>| Arc::ptr_eq(known, credential);
            Arc::ptr_eq(&last.consumer, &identity.consumer) && last.credential_id.as_ref().is_some_and(is_it)
        };
        let last = self.last_identity.take().filter(is_same);
        self.identity = Some(last.unwrap_or_else(|| Identity {
            consumer: Arc::clone(&identity.consumer),
            credential_id: Some(Arc::clone(credential)),
        }));
    }

    /// Sets the time, if it is known from another clock.
    #[inline]
    pub fn set_unix_ms(&mut self, unix_ms: u64) {
        self.unix_ms = unix_ms;
    }

    /// The time at which this was first called during the call: one reading serves a whole call.
    #[inline]
    pub fn unix_ms(&mut self) -> u64 {
        if self.unix_ms == 0 {
            self.unix_ms = (self.clock)();
        }
        self.unix_ms
    }

    /// The call's time, or that of its clock if nothing has asked for it before: for work that only looks at the call.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        match self.unix_ms {
            0 => (self.clock)(),
            known => known,
        }
    }

    /// The time now. It is later than [`Self::unix_ms`] once a call has waited: what is issued while it waits is not from the
    /// future.
    #[inline]
    pub fn current_ms(&self) -> u64 {
        (self.clock)()
    }

    /// A random number; good for ids and sampling, not for secrets.
    #[inline]
    pub fn random_u64(&mut self) -> u64 {
        // splitmix64: full period, passes statistical tests, a few instructions.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.random)
    }

    /// Gives the call its id (32 hexadecimal digits) unless it has one.
    pub fn ensure_request_id(&mut self) -> &str {
        if self.request_id.is_empty() {
            match self.late_request_id.take() {
                Some(late) => {
                    self.request_id.push_str(&late);
                    self.random_u64();
                }
                None => {
                    let numbers = (self.random_u64(), self.random_u64());
                    push_digits(numbers, &mut self.request_id);
                }
            }
        }
        &self.request_id
    }

    /// The call's id; empty until it is needed.
    pub fn request_id(&self) -> &str {
        match self.request_id.is_empty() {
            true => self.late_request_id.get().map_or("", String::as_str),
            false => &self.request_id,
        }
    }

    /// The call's id, which it gets now unless it has one: for work that only looks at the call.
    pub fn request_id_or_new(&self) -> &str {
        match self.request_id.is_empty() {
            true => self.late_request_id.get_or_init(|| {
                // Others than the numbers that come next.
                let numbers = (mixed(!self.random), mixed(self.random.rotate_left(32)));
                let mut id = String::with_capacity(32);
                push_digits(numbers, &mut id);
                id
            }),
            false => &self.request_id,
        }
    }

    /// Whether a filter knows the caller by anything, other than by [`Exchange::identity`].
    pub fn has_fingerprint(&self) -> bool {
        // Marks without content have nothing but their lengths, which are 0.
        self.identity_fingerprint.iter().any(|byte| *byte != 0)
    }

    /// Notes what a filter knows the caller by, other than by [`Exchange::identity`].
    pub fn add_fingerprint(&mut self, mark: &[u8]) {
        self.identity_fingerprint
            .extend_from_slice(&(mark.len() as u64).to_le_bytes());
        self.identity_fingerprint.extend_from_slice(mark);
    }

    /// Notes that a filter has set this request header: it tells the upstream about a user, and is not the client's.
    pub fn note_user_header(&mut self, name: &str) {
        self.user_headers.push_str(name);
        self.user_headers.push('\n');
    }

    /// Whether a filter has set this request header, in any case of its letters.
    pub fn is_user_header(&self, name: &str) -> bool {
        self.user_headers.lines().any(|it| it.eq_ignore_ascii_case(name))
    }

    /// A place in the notes of [`Exchange::note_user_header`], for [`Exchange::drop_user_headers`].
    pub fn user_headers_place(&self) -> usize {
        self.user_headers.len()
    }

    /// Removes the user headers that filters have set since a place: who set them does not let the caller in.
    pub fn drop_user_headers(&mut self, place: usize) {
        for name in self.user_headers.get(place..).unwrap_or_default().lines() {
            self.request.headers.remove_owned(name.as_bytes());
        }
        self.user_headers.truncate(place);
    }

    /// Moves [`Exchange::response_headers`] into the response. For a name that the upstream sent too, the
    /// gateway's value comes first.
    pub fn merge_response_headers(&mut self) {
        self.own_headers.clear();
        if !self.response_headers.is_empty() {
            self.response.headers.prepend_all(&self.response_headers);
            std::mem::swap(&mut self.own_headers, &mut self.response_headers);
        }
    }

    /// Whether a filter, and not the upstream, set this header of the response. The filter may not set it on another
    /// response with the same content.
    pub fn is_own_header(&self, name: &[u8], value: &[u8]) -> bool {
        !self.own_headers.is_empty() && self.own_headers.get_all(name).any(|own| own == value)
    }
}

/// The output of splitmix64 for a state.
#[inline]
fn mixed(state: u64) -> u64 {
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Appends two numbers in hexadecimal digits.
fn push_digits((high, low): (u64, u64), out: &mut String) {
    let mut digits = [0; 32];
    let bytes = [high.to_be_bytes(), low.to_be_bytes()];
    for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(bytes.as_flattened()) {
        *pair = HEXADECIMAL[usize::from(*byte)];
    }
    out.push_str(std::str::from_utf8(&digits).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of calls differ, whether something has only looked at them or the call was given one, on one exchange.
    #[test]
    fn calls_of_one_exchange_have_ids_of_their_own() {
        let mut exchange = Exchange::new(system_clock, 7);
        let mut ids = std::collections::BTreeSet::new();
        for is_given in [false, false, true, false, true, true] {
            let late = exchange.request_id_or_new().to_owned();
            assert_eq!(exchange.request_id(), late);
            if is_given {
                assert_eq!(exchange.ensure_request_id(), late);
            }
            assert!(ids.insert(late), "{ids:?}");
            exchange.clear();
        }
    }
    use crate::consumer::ConsumerIdentity;

    #[test]
    fn identities_of_the_last_call_are_used_again_for_the_same_caller_only() {
        let consumer = |id: &str| {
            Arc::new(ConsumerIdentity {
                id: id.to_owned(),
                ..ConsumerIdentity::default()
            })
        };
        let (one, other) = (consumer("one"), consumer("other"));
        let (key, unnamed): (Arc<str>, Arc<str>) = (Arc::from("key"), Arc::from(""));
        let identity = |consumer: &Arc<ConsumerIdentity>, credential: Option<&Arc<str>>| Identity {
            consumer: Arc::clone(consumer),
            credential_id: credential.cloned(),
        };
        let mut exchange = Exchange::new(|| 0, 1);
        for (caller, credential, credential_id) in [
            (&one, Some(&key), "key"),
            (&one, Some(&key), "key"),
            (&one, None, ""),
            (&one, None, ""),
            (&other, Some(&key), "key"),
            (&one, Some(&key), "key"),
        ] {
            exchange.identify(&identity(caller, credential), &unnamed);
            let known = exchange.identity.as_ref().expect("a caller");
            assert!(Arc::ptr_eq(&known.consumer, caller), "{}", caller.id);
            assert_eq!(
                known.credential_id.as_deref(),
                Some(credential_id),
                "{}",
                caller.id
            );
            let counts = || (Arc::strong_count(caller), Arc::strong_count(&key));
            let before = counts();
            exchange.clear();
            assert!(exchange.identity.is_none(), "no caller is known yet");
            assert_eq!(counts(), before, "counts stay as they are");
        }
        assert_eq!(Arc::strong_count(&other), 1, "only the last caller is known");
    }
}
