//! Caches the heads of a connection. Most messages of a connection have the same field lines as an earlier one, so the
//! parsed lines are kept, and a head that begins with the same bytes is not parsed again: comparing costs a tenth of
//! parsing.
//!
//! It is not a cache of messages: the start line of a request is always parsed, and nothing after the head is read.
//! Lines count as the same only if every byte is. A connection's lines are compared only with lines that it has sent
//! itself, so the time of a comparison reveals nothing about other connections. Lines are kept after they came twice,
//! and dropped soon after they came last.

use foldhash::fast::RandomState;
use std::hash::{BuildHasher, Hasher};
use weir_plugin::Headers;

/// Heads that are kept at once.
const SLOTS: usize = 256;
/// Bytes of the longest head that is kept.
const MAX_BYTES: usize = 2048;

/// The heads that one worker keeps, of its clients or of its upstreams: what was read of each, and facts about it.
pub struct HeadCache<F> {
    /// Empty until a head is noted.
    slots: Vec<Slot<F>>,
    random: RandomState,
}

struct Slot<F> {
    /// The hash of a head that came once.
    candidate: u64,
    known: Option<Box<CachedHead<F>>>,
}

/// What was read of a head.
#[derive(Default)]
pub(crate) struct CachedHead<F> {
    hash: u64,
    /// Whether it came since [`HeadCache::trim`].
    is_used: bool,
    /// Its field lines. They begin with all bytes of these lines, as they came.
    pub(crate) headers: Headers,
    pub(crate) facts: F,
}

/// Where the head is kept that came last over a connection.
#[derive(Debug, Default, Clone, Copy)]
pub struct HeadSlot {
    slot: usize,
    /// 0: nowhere.
    hash: u64,
}

impl<F> Default for HeadCache<F> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            random: RandomState::default(),
        }
    }
}

impl<F: Default> HeadCache<F> {
    /// The head that came last over a connection, if `is_same` says that it comes again.
    #[inline]
    pub(crate) fn find(
        &mut self,
        place: HeadSlot,
        is_same: impl FnOnce(&CachedHead<F>) -> bool,
    ) -> Option<&CachedHead<F>> {
        let known = self.slots.get_mut(place.slot)?.known.as_deref_mut()?;
        if known.hash != place.hash || !is_same(known) {
            return None;
        }
        known.is_used = true;
        Some(known)
    }

    /// Notes that a head came whose bytes are `text`. If it came before, `keep` writes down what was read of it.
    pub(crate) fn note(
        &mut self,
        place: &mut HeadSlot,
        text: &[u8],
        keep: impl FnOnce(&mut Headers, &mut F),
    ) {
        if text.len() > MAX_BYTES {
            return;
        }
        let mut hasher = self.random.build_hasher();
        hasher.write(text);
        let hash = hasher.finish() | 1;
        if self.slots.is_empty() {
            let empty = || Slot {
                candidate: 0,
                known: None,
            };
            self.slots.resize_with(SLOTS, empty);
        }
        let at = (hash >> 32) as usize % SLOTS;
        let slot = &mut self.slots[at];
        if slot.known.as_ref().is_none_or(|known| known.hash != hash) {
            if slot.candidate != hash {
                slot.candidate = hash;
                return;
            }
            let known = slot.known.get_or_insert_default();
            known.hash = hash;
            known.is_used = true;
            keep(&mut known.headers, &mut known.facts);
        }
        *place = HeadSlot { slot: at, hash };
    }

    /// Forgets the heads that did not come since the last time.
    pub fn trim(&mut self) {
        for slot in &mut self.slots {
            if let Some(known) = &mut slot.known
                && !std::mem::take(&mut known.is_used)
            {
                slot.known = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{self, Parsed, RequestHeads};
    use crate::response::{self, ResponseHeads};
    use weir_plugin::{Exchange, Response};

    /// What is read of a request head: with what is known of heads before, and without.
    fn read_request(bytes: &[u8], heads: &mut RequestHeads, place: &mut HeadSlot) -> (String, String) {
        let mut exchanges = [Exchange::new(|| 0, 1), Exchange::new(|| 0, 1)];
        let known = request::parse_known(bytes, &mut exchanges[0], heads, place);
        let plain = request::parse(bytes, &mut exchanges[1]);
        let describe = |parsed, exchange: &Exchange| format!("{parsed:?} {:?}", exchange.request);
        (describe(known, &exchanges[0]), describe(plain, &exchanges[1]))
    }

    fn read_response(
        bytes: &[u8],
        to_head: bool,
        heads: &mut ResponseHeads,
        place: &mut HeadSlot,
    ) -> (String, String) {
        let mut responses = [Response::default(), Response::default()];
        let known = response::parse_known(bytes, to_head, &mut responses[0], heads, place);
        let plain = response::parse(bytes, to_head, &mut responses[1]);
        let describe = |parsed, response: &Response| format!("{parsed:?} {response:?}");
        (describe(known, &responses[0]), describe(plain, &responses[1]))
    }

    /// All whose field lines are the same, or begin alike.
    const REQUESTS: [&str; 18] = [
        "GET / HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n\r\n",
        "GET /other?q=1 HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n\r\nGET / HTTP/1.1\r\n",
        "GET / HTTP/1.0\r\nHost: A.example:81\r\nAccept: *\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: A.example:81\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
        "GET http://a.example:81/x HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n\r\n",
        "GET http://b.example/x HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\nX.odd: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n",
        "GET / HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n\r",
        "GET /\x01 HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: A.example:81\r\nAccept: *\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, x-a\r\nUpgrade: websocket\r\nX-A: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, x-a\r\nX-A: 1\r\nVia: 1.1 b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nForwarded: for=b\r\n\r\n",
        "GET / HTTP/1.1\r\nAccept: *\r\n\r\n",
    ];

    const RESPONSES: [&str; 12] = [
        "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 Fine\r\nServer: a\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 404 Not Found\r\nServer: a\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.0 200 OK\r\nServer: a\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 304 Not Modified\r\nServer: a\r\nContent-Length: 3\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nServer: a\r\nTransfer-Encoding: chunked\r\nVia: 1.1 b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nServer: a\r\nConnection: close, server\r\n\r\n",
        "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 3\r\n",
        "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    ];

    #[test]
    fn known_requests_are_read_as_if_they_were_not() {
        let mut heads = RequestHeads::default();
        let mut places = [HeadSlot::default(); 3];
        // Each after each, several times, over connections that share what is known.
        for (turn, round) in (0..4).flat_map(|_| 0..REQUESTS.len()).enumerate() {
            for head in [REQUESTS[round], REQUESTS[turn % REQUESTS.len()], REQUESTS[0]] {
                for place in &mut places {
                    let (known, plain) = read_request(head.as_bytes(), &mut heads, place);
                    assert_eq!(known, plain, "{head:?}");
                }
            }
        }
        assert!(places.iter().all(|place| place.hash != 0), "{places:?}");
    }

    #[test]
    fn known_responses_are_read_as_if_they_were_not() {
        let mut heads = ResponseHeads::default();
        let mut places = [HeadSlot::default(); 3];
        for (turn, round) in (0..4).flat_map(|_| 0..RESPONSES.len()).enumerate() {
            for head in [RESPONSES[round], RESPONSES[turn % RESPONSES.len()], RESPONSES[0]] {
                for to_head in [false, true] {
                    for place in &mut places {
                        let (known, plain) = read_response(head.as_bytes(), to_head, &mut heads, place);
                        assert_eq!(known, plain, "{head:?} {to_head}");
                    }
                }
            }
        }
        assert!(places.iter().all(|place| place.hash != 0), "{places:?}");
    }

    /// Whether the lines of a request are known after so many times.
    fn is_known(head: &str, times: usize) -> bool {
        let (mut heads, mut place) = (RequestHeads::default(), HeadSlot::default());
        for _ in 0..times {
            read_request(head.as_bytes(), &mut heads, &mut place);
        }
        place.hash != 0
    }

    #[test]
    fn known_heads_are_those_that_came_twice_and_are_not_long() {
        let long = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n",
            "x".repeat(MAX_BYTES)
        );
        for (head, times, wanted) in [
            (REQUESTS[0], 1, false),
            (REQUESTS[0], 2, true),
            (long.as_str(), 4, false),
            // What is refused, or is not for every call of the connection, is always read.
            (REQUESTS[6], 4, false),
            (REQUESTS[8], 4, false),
            (REQUESTS[10], 4, false),
            (REQUESTS[14], 4, false),
            (REQUESTS[17], 4, false),
        ] {
            assert_eq!(is_known(head, times), wanted, "{head:?} {times}");
        }
    }

    #[test]
    fn known_heads_are_forgotten_when_they_come_no_more() {
        let (mut heads, mut place) = (RequestHeads::default(), HeadSlot::default());
        let mut read = |heads: &mut RequestHeads| {
            let mut exchange = Exchange::new(|| 0, 1);
            let parsed = request::parse_known(REQUESTS[0].as_bytes(), &mut exchange, heads, &mut place);
            assert!(matches!(parsed, Ok(Parsed::Head(_))));
        };
        let count = |heads: &RequestHeads| heads.slots.iter().filter(|slot| slot.known.is_some()).count();
        read(&mut heads);
        assert_eq!(count(&heads), 0);
        read(&mut heads);
        heads.trim();
        assert_eq!(count(&heads), 1, "it came since the last time");
        read(&mut heads);
        heads.trim();
        assert_eq!(count(&heads), 1, "it came again");
        heads.trim();
        assert_eq!(count(&heads), 0);
        read(&mut heads);
        assert_eq!(count(&heads), 1, "it came before");
    }
}
