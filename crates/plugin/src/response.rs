//! The response side of an exchange: what upstreams have answered, and what filters answer in their place.

use crate::body_filter::BodyFilters;
use crate::headers::Headers;
use std::ops::Range;
use std::sync::Arc;

/// The head of a response on its way to the client, and a body if a filter has replaced the upstream's.
#[derive(Debug, Default)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The reason phrase as the upstream sent it; empty: the standard one.
    pub reason: Vec<u8>,
    /// The header fields, without hop-by-hop ones and without framing.
    pub headers: Headers,
    /// The length of the upstream's body, if it was announced; for the gateway's own responses, their length. It is not
    /// among the headers: framing is the engine's.
    pub content_length: Option<u64>,
    /// A body that replaces the upstream's.
    pub replaced_body: Option<Vec<u8>>,
    /// What works on the body as it passes; filters add to it in their response work.
    pub body_filters: BodyFilters,
    /// The head waits for the body to pass the filters, which may then still [change it](crate::BodyFilter::head).
    pub hold: Option<BufferResponse>,
    /// A filter has to wait before the head goes on: the engine then calls
    /// [`Filter::on_waiting_response`](crate::Filter::on_waiting_response). Set in the response work.
    pub waits: bool,
    /// Whether the gateway itself answers, rather than an upstream.
    pub is_gateway: bool,
    /// Whether it comes out of a cache, and stands where that cache has kept it: the
    /// [rewriting](crate::Filter::rewrites_responses) filters before the cache have done their work on it already.
    pub is_kept: bool,
    /// Whether it comes out of a cache, wherever it stands: an upstream has made it, and the gateway answers with it.
    pub is_from_cache: bool,
}

/// How long the head of a response waits for the upstream's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferResponse {
    /// Until the end of the body. One of more bytes is a failure of the upstream.
    Whole(usize),
    /// Until the end of the body, or until more than so many bytes of it have passed.
    Prefix(usize),
}

impl Response {
    /// Lets a whole body pass the filters, which may change the head.
    pub fn filter_whole(&mut self, body: Vec<u8>) -> Vec<u8> {
        if self.body_filters.is_empty() {
            return body;
        }
        let mut out = Vec::with_capacity(body.len());
        self.body_filters.piece(&body, &mut out);
        self.body_filters
            .end_with_head(&mut self.status, &mut self.headers, &mut out);
        out
    }

    /// Empties the response, keeping its memory.
    pub fn clear(&mut self) {
        self.status = 0;
        self.reason.clear();
        self.headers.clear();
        self.content_length = None;
        self.replaced_body = None;
        self.body_filters.clear();
        self.hold = None;
        self.waits = false;
        self.is_gateway = false;
        self.is_kept = false;
        self.is_from_cache = false;
    }
}

/// A whole answer made by the gateway: a rendered refusal, or what a filter answers by itself.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// `Content-Type`; not sent if empty.
    pub content_type: std::borrow::Cow<'static, str>,
    /// Further headers.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
    /// Headers and a body that other responses share; the headers come before those above, the body replaces the one
    /// above.
    pub shared: Option<SharedReply>,
}

/// The part of an answer that many calls get. Sending it copies no more than goes on the wire.
#[derive(Debug, Clone)]
pub struct SharedReply {
    /// The headers.
    pub headers: Arc<Headers>,
    /// A body.
    pub body: Arc<[u8]>,
    /// The part of it that is sent.
    pub range: Range<usize>,
}

impl SharedReply {
    /// The part of the body that is sent.
    pub fn part(&self) -> &[u8] {
        self.body.get(self.range.clone()).unwrap_or_default()
    }
}

impl Reply {
    /// An answer with a body of this type.
    pub fn new(
        status: u16,
        content_type: impl Into<std::borrow::Cow<'static, str>>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            status,
            content_type: content_type.into(),
            headers: Vec::new(),
            body: body.into(),
            shared: None,
        }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}
