//! Response heads from upstreams: reading one from bytes, and what the connection must know of it.

use crate::Framing;
use crate::fields::{keep_last_content_type, list_items, parse_length};
use crate::head::{self, MAX_FIELDS, MalformedHead};
use crate::head_cache::{CachedHead, HeadCache, HeadSlot};
use weir_plugin::Response;
use weir_plugin::headers::is_value;

/// What the connection must know of a response besides what filters see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// Bytes of the head, its empty line included.
    pub length: usize,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the upstream keeps the connection.
    pub keep_alive: bool,
    /// The protocol that the upstream switches to (101 only).
    pub upgrade: Option<Vec<u8>>,
    /// Whether there is a header `Via`.
    pub has_via: bool,
}

/// An upstream that does not speak HTTP/1.1; the text says how, for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidResponse(pub &'static str);

/// Reads a response head from the start of `bytes`; `Ok(None)`: more bytes are needed.
#[inline]
pub fn parse(
    bytes: &[u8],
    to_head: bool,
    response: &mut Response,
) -> Result<Option<ResponseHead>, InvalidResponse> {
    let Some((line, first)) = head::start_line(bytes)? else {
        return Ok(None);
    };
    let (minor_version, status, reason) = split_status_line(line).ok_or(NO_RESPONSE)?;
    if status < 100 {
        return Err(InvalidResponse("the status"));
    }
    response.clear();
    let mut fields = Fields::default();
    let note = |name, value| fields.note(name, value);
    let Some(length) = head::field_lines(bytes, first, &mut response.headers, note)? else {
        return Ok(None);
    };
    response.status = status;
    if reason != crate::status::reason(status).as_bytes() && reason.is_ascii() {
        response.reason.extend_from_slice(reason);
    }
    fields
        .finish(status, minor_version, length, to_head, response)
        .map(Some)
}

/// The same, but a head that came before over the connection is not read again. `place` is the connection's.
///
/// # Errors
/// See [`parse`].
#[inline]
pub fn parse_known(
    bytes: &[u8],
    to_head: bool,
    response: &mut Response,
    heads: &mut ResponseHeads,
    place: &mut HeadSlot,
) -> Result<Option<ResponseHead>, InvalidResponse> {
    let is_same = |known: &CachedHead<ResponseFacts>| {
        let lines = bytes.strip_prefix(known.facts.start.as_slice());
        lines.is_some_and(|lines| lines.starts_with(known.headers.loaded()))
    };
    if !to_head && let Some(known) = heads.find(*place, is_same) {
        let facts = &known.facts;
        response.clear();
        response.status = facts.status;
        response.reason.extend_from_slice(&facts.reason);
        response.headers.copy_from(&known.headers);
        return Ok(Some(ResponseHead {
            upgrade: None,
            ..facts.head
        }));
    }
    let parsed = parse(bytes, to_head, response)?;
    if !to_head
        && let Some(head) = &parsed
        && head.upgrade.is_none()
        && let Some(start) = head.length.checked_sub(response.headers.loaded().len())
        && bytes[start..].starts_with(response.headers.loaded())
    {
        heads.note(place, &bytes[..head.length], |headers, facts| {
            headers.copy_from(&response.headers);
            facts.start.clear();
            facts.start.extend_from_slice(&bytes[..start]);
            facts.status = response.status;
            facts.reason.clone_from(&response.reason);
            facts.head = head.clone();
        });
    }
    Ok(parsed)
}

/// The heads of responses that came before, to requests other than HEAD.
pub type ResponseHeads = HeadCache<ResponseFacts>;

/// What a response head says besides its fields.
#[derive(Debug, Default)]
pub struct ResponseFacts {
    /// The status line, with its CRLF.
    start: Vec<u8>,
    status: u16,
    reason: Vec<u8>,
    /// It has no upgrade.
    head: ResponseHead,
}

/// Minor version, status, and reason phrase (RFC 9112, 4).
pub(crate) fn split_status_line(line: &[u8]) -> Option<(u8, u16, &[u8])> {
    let (start, reason) = line.split_first_chunk::<12>()?;
    let [
        b'H',
        b'T',
        b'T',
        b'P',
        b'/',
        b'1',
        b'.',
        minor @ (b'0' | b'1'),
        b' ',
        status @ ..,
    ] = start
    else {
        return None;
    };
    let digit = |at: usize| status[at].is_ascii_digit().then(|| u16::from(status[at] - b'0'));
    let status = digit(0)? * 100 + digit(1)? * 10 + digit(2)?;
    let reason = match reason {
        [] => reason,
        [b' ', reason @ ..] if is_value(reason) => reason,
        _ => return None,
    };
    Some((minor - b'0', status, reason))
}

const NO_RESPONSE: InvalidResponse = InvalidResponse("not an HTTP/1.1 response");

impl From<MalformedHead> for InvalidResponse {
    #[cold]
    fn from(broken: MalformedHead) -> Self {
        match broken {
            MalformedHead::BareLf => Self("a line that does not end in CRLF"),
            MalformedHead::TooManyFields => Self("too many header fields"),
            MalformedHead::Name | MalformedHead::Value => NO_RESPONSE,
        }
    }
}

#[derive(Default)]
struct Fields<'h> {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    upgrade: Option<&'h [u8]>,
    has_via: bool,
    content_types: usize,
    named_by_connection: Vec<&'h [u8]>,
}

impl<'h> Fields<'h> {
    /// Notes one field line; says whether it goes on to the client.
    fn note(&mut self, name: &'h [u8], value: &'h [u8]) -> Result<bool, InvalidResponse> {
        // Most are written like this.
        let is = |usual: &[u8]| name == usual || name.eq_ignore_ascii_case(usual);
        match name.len() {
            3 if is(b"Via") => self.has_via = true,
            7 if is(b"Upgrade") => {
                self.upgrade = Some(value);
                return Ok(false);
            }
            10 if is(b"Connection") => {
                if value == b"keep-alive" {
                    self.keep_alive = true;
                    return Ok(false);
                }
                for option in list_items(value) {
                    match option.len() {
                        5 if option.eq_ignore_ascii_case(b"close") => self.close = true,
                        10 if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
                        7 if option.eq_ignore_ascii_case(b"upgrade") => {}
                        _ if self.named_by_connection.len() == MAX_FIELDS => {
                            return Err(InvalidResponse("the Connection header"));
                        }
                        _ => self.named_by_connection.push(option),
                    }
                }
                return Ok(false);
            }
            10 if is(b"Keep-Alive") => return Ok(false),
            12 if is(b"Content-Type") => self.content_types += 1,
            14 if is(b"Content-Length") => {
                let length = parse_length(value).ok_or(InvalidResponse("the Content-Length"))?;
                if self.length.replace(length).is_some_and(|other| other != length) {
                    return Err(InvalidResponse("two lengths"));
                }
                return Ok(false);
            }
            16 if is(b"Proxy-Connection") => return Ok(false),
            17 if is(b"Transfer-Encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(InvalidResponse("the Transfer-Encoding"));
                }
                self.chunked = true;
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    }

    fn finish(
        self,
        status: u16,
        minor_version: u8,
        length: usize,
        to_head: bool,
        response: &mut Response,
    ) -> Result<ResponseHead, InvalidResponse> {
        if self.chunked && (self.length.is_some() || minor_version == 0) {
            return Err(InvalidResponse(
                "Transfer-Encoding with Content-Length or HTTP/1.0",
            ));
        }
        for name in &self.named_by_connection {
            response.headers.remove(name);
        }
        if self.content_types > 1 {
            keep_last_content_type(&mut response.headers);
        }
        let bodyless = to_head || status < 200 || status == 204 || status == 304;
        // The length that a HEAD or 304 answer states is a fact about another message; it is passed on.
        if bodyless
            && status >= 200
            && status != 204
            && let Some(length) = self.length
        {
            response
                .headers
                .append(b"Content-Length", itoa::Buffer::new().format(length).as_bytes());
        }
        let framing = match (bodyless, self.chunked, self.length) {
            (true, ..) => Framing::None,
            (false, true, _) => Framing::Chunked,
            (false, false, Some(length)) => Framing::Length(length),
            (false, false, None) => Framing::UntilClose,
        };
        let keep_alive =
            !self.close && (minor_version == 1 || self.keep_alive) && framing != Framing::UntilClose;
        Ok(ResponseHead {
            length,
            framing,
            keep_alive,
            upgrade: self.upgrade.filter(|_| status == 101).map(<[u8]>::to_vec),
            has_via: self.has_via,
        })
    }
}
