//! Request heads.

use super::{Framing, MAX_HEADERS, ends_in_crlf, list_items, parse_length};
use crate::target::{bad, is_same_authority, read_host, read_target};
use std::mem::MaybeUninit;
use weir_plugin::{Exchange, RefusalKind};

/// What the connection must know of a request besides what filters see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// Bytes of the head, its empty line included.
    pub length: usize,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the client wants the connection to go on.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// The protocol that the client wants to switch to.
    pub upgrade: Option<Vec<u8>>,
    /// Whether any header begins with `X-Forwarded-` or is `X-Real-IP`.
    pub has_forwarded: bool,
    /// The minor version.
    pub minor_version: u8,
}

/// What came of reading a head.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More bytes are needed.
    Partial,
    /// The head is complete; the exchange's request is filled.
    Head(RequestHead),
}

/// Reads a request head from the start of `bytes` into `exchange.request`.
///
/// # Errors
/// The refusal with which to answer; the connection must be closed after it, as what follows is not known to
/// be a request.
pub fn parse(bytes: &[u8], exchange: &mut Exchange) -> Result<Parsed, RefusalKind> {
    let mut slots = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    let length = match parsed.parse_with_uninit_headers(bytes, &mut slots) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(Parsed::Partial),
        Err(error) => return Err(refuse_syntax(bytes, error)),
    };
    let (Some(method), Some(target), Some(minor_version)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(bad("no request line"));
    };
    let request = &mut exchange.request;
    request.method.extend_from_slice(method.as_bytes());
    request.version = (1, minor_version);

    let offset_of = |part: &[u8]| part.as_ptr() as usize - bytes.as_ptr() as usize;
    let mut fields = Fields::default();
    // The loaded part begins with the first field line, so that neighbours are written in one copy.
    let first = parsed
        .headers
        .first()
        .map_or(length - 2, |header| offset_of(header.name.as_bytes()));
    let before = offset_of(method.as_bytes());
    if !(ends_in_crlf(bytes, first)
        && ends_in_crlf(bytes, length)
        && (before == 0 || ends_in_crlf(bytes, before)))
    {
        return Err(bad(BARE_LF));
    }
    request.headers.load(&bytes[first..length]);
    for (position, header) in parsed.headers.iter().enumerate() {
        let name = offset_of(header.name.as_bytes());
        let line_end = match parsed.headers.get(position + 1) {
            Some(next) => offset_of(next.name.as_bytes()),
            None => length - 2,
        };
        if !ends_in_crlf(bytes, line_end) {
            return Err(bad(BARE_LF));
        }
        if fields.note(header.name.as_bytes(), header.value)? {
            let value = if header.value.is_empty() {
                line_end - 2
            } else {
                offset_of(header.value)
            };
            let (name, value, line_end) = (name - first, value - first, line_end - first);
            request.headers.push_line(
                name..name + header.name.len(),
                value..value + header.value.len(),
                line_end,
            );
        }
    }
    let target_host = read_target(target.as_bytes(), method.as_bytes(), request)?;
    fields.settle(minor_version, length, target_host, exchange)
}

const BARE_LF: &str = "a line that does not end in CRLF";

fn refuse_syntax(bytes: &[u8], error: httparse::Error) -> RefusalKind {
    match error {
        httparse::Error::TooManyHeaders => RefusalKind::HeadTooLarge,
        httparse::Error::Version if bytes.windows(7).any(|it| it == b" HTTP/2" || it == b" HTTP/3") => {
            RefusalKind::VersionNotSupported
        }
        httparse::Error::Version => bad("the HTTP version"),
        httparse::Error::HeaderName => bad("a header name"),
        httparse::Error::HeaderValue => bad("a header value"),
        httparse::Error::Token => bad("the request line"),
        _ => bad("the request head"),
    }
}

/// What the field lines say about the connection and the body.
#[derive(Default)]
struct Fields<'h> {
    host: Option<&'h [u8]>,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    wants_upgrade: bool,
    upgrade: Option<&'h [u8]>,
    expects_continue: bool,
    has_forwarded: bool,
    named_by_connection: Vec<&'h [u8]>,
}

impl<'h> Fields<'h> {
    /// Notes one field line; says whether it goes on to the upstream (hop-by-hop ones do not: RFC 9110, 7.6.1).
    fn note(&mut self, name: &'h [u8], value: &'h [u8]) -> Result<bool, RefusalKind> {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        match name.len() {
            4 if is(b"host") => {
                if self.host.replace(value).is_some() {
                    return Err(bad("more than one Host"));
                }
            }
            5 if is(b"proxy") => return Ok(false),
            6 if is(b"expect") => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(RefusalKind::ExpectationFailed);
                }
                self.expects_continue = true;
                return Ok(false);
            }
            7 if is(b"upgrade") => {
                // A switch to HTTP/2 behind the gateway's back would carry requests that nobody looks at.
                let switches_http =
                    list_items(value).any(|it| it.get(..2).is_some_and(|it| it.eq_ignore_ascii_case(b"h2")));
                self.upgrade = Some(value).filter(|_| !switches_http);
                return Ok(false);
            }
            10 if is(b"connection") => return self.note_connection(value).map(|()| false),
            10 if is(b"keep-alive") => return Ok(false),
            14 if is(b"content-length") => {
                let length = parse_length(value).ok_or_else(|| bad("the Content-Length"))?;
                if self.length.replace(length).is_some() {
                    return Err(bad("more than one Content-Length"));
                }
                return Ok(false);
            }
            16 if is(b"proxy-connection") => return Ok(false),
            17 if is(b"transfer-encoding") => {
                if self.chunked {
                    return Err(bad("more than one Transfer-Encoding"));
                }
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(RefusalKind::NotImplemented);
                }
                self.chunked = true;
                return Ok(false);
            }
            2 if is(b"te") => return Ok(value.eq_ignore_ascii_case(b"trailers")),
            _ => self.has_forwarded |= crate::forwarded::is_forwarded(name),
        }
        Ok(true)
    }

    fn note_connection(&mut self, value: &'h [u8]) -> Result<(), RefusalKind> {
        if value == b"keep-alive" {
            self.keep_alive = true;
            return Ok(());
        }
        for option in list_items(value) {
            match option.len() {
                5 if option.eq_ignore_ascii_case(b"close") => self.close = true,
                7 if option.eq_ignore_ascii_case(b"upgrade") => self.wants_upgrade = true,
                10 if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
                _ if self.named_by_connection.len() == MAX_HEADERS => {
                    return Err(bad("the Connection header"));
                }
                _ => self.named_by_connection.push(option),
            }
        }
        Ok(())
    }

    fn settle(
        self,
        minor_version: u8,
        length: usize,
        target_host: Option<&[u8]>,
        exchange: &mut Exchange,
    ) -> Result<Parsed, RefusalKind> {
        let request = &mut exchange.request;
        // Only the connection that is read here has these names; they never reach headers that end-to-end
        // semantics depend on (RFC 9110, 7.6.1).
        for name in &self.named_by_connection {
            if !is_end_to_end(name) {
                request.headers.remove(name);
            }
        }
        match (self.host, minor_version) {
            (Some(host), _) if target_host.is_some_and(|target| !is_same_authority(target, host)) => {
                return Err(bad("a target and a Host that differ"));
            }
            (Some(host), _) => read_host(host, request)?,
            (None, 0) => target_host.map_or(Ok(()), |host| read_host(host, request))?,
            (None, _) => return Err(bad("no Host")),
        }
        if self.chunked && (self.length.is_some() || minor_version == 0) {
            return Err(bad("Transfer-Encoding with Content-Length or HTTP/1.0"));
        }
        let framing = match (self.chunked, self.length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::None,
        };
        request.has_body = !framing.is_empty();
        request.expects_continue = self.expects_continue;
        request.content_length = self.length;
        let keep_alive = !self.close && (minor_version == 1 || self.keep_alive);
        Ok(Parsed::Head(RequestHead {
            length,
            framing,
            keep_alive,
            expects_continue: self.expects_continue && minor_version == 1 && !framing.is_empty(),
            upgrade: self
                .upgrade
                .filter(|_| self.wants_upgrade && minor_version == 1)
                .map(<[u8]>::to_vec),
            has_forwarded: self.has_forwarded,
            minor_version,
        }))
    }
}

/// Fields that a client cannot have removed by naming them in `Connection`.
fn is_end_to_end(name: &[u8]) -> bool {
    [
        &b"host"[..],
        b"content-length",
        b"authorization",
        b"cookie",
        b"content-type",
    ]
    .iter()
    .any(|other| name.eq_ignore_ascii_case(other))
}
