//! Request heads: reading one from bytes, and what the connection must know of it. Its body is read elsewhere.

use crate::Framing;
use crate::fields::{is_forwarded, is_framing_with_underscore, list_items, parse_length};
use crate::head::{self, MAX_FIELDS, MalformedHead};
use crate::head_cache::{CachedHead, HeadCache, HeadSlot};
use crate::target::{bad, is_same_authority, read_connect_target, read_host, read_target};
use weir_plugin::headers::is_token;
use weir_plugin::{Exchange, OWN_CALL_HEADER, RefusalKind, Request};

/// What the connection must know of a request besides what filters see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// The port to which the client wants a tunnel (`CONNECT`); the host is that of the request.
    pub connect_port: Option<u16>,
    /// Whether any header begins with `X-Forwarded-` or is `X-Real-IP`.
    pub has_forwarded: bool,
    /// Whether there is a header `Forwarded` (RFC 7239).
    pub has_forwarded_list: bool,
    /// Whether there is a header `Via`.
    pub has_via: bool,
    /// The minor version.
    pub minor_version: u8,
}

/// The result of parsing a head.
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
#[inline]
pub fn parse(bytes: &[u8], exchange: &mut Exchange) -> Result<Parsed, RefusalKind> {
    match head::start_line(bytes)? {
        Some((line, first)) => parse_lines(bytes, first, split_request_line(line)?, exchange),
        None => begins_a_request(bytes),
    }
}

/// The same, but field lines that came before over the connection are not read again. `place` is the connection's.
///
/// # Errors
/// See [`parse`].
#[inline]
pub fn parse_known(
    bytes: &[u8],
    exchange: &mut Exchange,
    heads: &mut RequestHeads,
    place: &mut HeadSlot,
) -> Result<Parsed, RefusalKind> {
    let Some((line, first)) = head::start_line(bytes)? else {
        return begins_a_request(bytes);
    };
    let line = split_request_line(line)?;
    let (method, target, minor_version) = line;
    let is_path = target.first() == Some(&b'/');
    let is_same = |known: &CachedHead<RequestFacts>| {
        bytes[first..].starts_with(known.headers.loaded()) && known.facts.head.minor_version == minor_version
    };
    if is_path && let Some(known) = heads.find(*place, is_same) {
        let request = &mut exchange.request;
        request.headers.copy_from(&known.headers);
        request.method.extend_from_slice(method);
        request.version = (1, minor_version);
        read_target(target, method, request)?;
        return Ok(Parsed::Head(known.facts.copy_to(first, request)));
    }
    let parsed = parse_lines(bytes, first, line, exchange)?;
    if is_path
        && let Parsed::Head(head) = &parsed
        && head.upgrade.is_none()
    {
        let request = &exchange.request;
        heads.note(place, &bytes[first..head.length], |headers, facts| {
            headers.copy_from(&request.headers);
            facts.keep(head, first, request);
        });
    }
    Ok(parsed)
}

/// Reads the field lines, and what they say together with the request line: method, target, minor version.
#[inline]
fn parse_lines(
    bytes: &[u8],
    first: usize,
    (method, target, minor_version): (&[u8], &[u8], u8),
    exchange: &mut Exchange,
) -> Result<Parsed, RefusalKind> {
    let request = &mut exchange.request;
    let mut fields = Fields::default();
    let note = |name, value| fields.note(name, value);
    let Some(length) = head::field_lines(bytes, first, &mut request.headers, note)? else {
        return Ok(Parsed::Partial);
    };
    request.method.extend_from_slice(method);
    request.version = (1, minor_version);
    if method == b"CONNECT" && target.first() != Some(&b'/') {
        let (authority, port) = read_connect_target(target, request)?;
        let parsed = fields.finish(minor_version, length, Some(authority), exchange)?;
        return finish_connect(parsed, port, exchange);
    }
    let target_host = read_target(target, method, request)?;
    fields.finish(minor_version, length, target_host, exchange)
}

/// Makes a head one of `CONNECT`: what follows it is neither a body nor a request.
#[cold]
fn finish_connect(parsed: Parsed, port: u16, exchange: &mut Exchange) -> Result<Parsed, RefusalKind> {
    let Parsed::Head(head) = parsed else {
        return Ok(parsed);
    };
    if head.minor_version == 0 {
        return Err(RefusalKind::MethodNotAllowed);
    }
    if !head.framing.is_empty() {
        return Err(bad("a body with CONNECT"));
    }
    exchange.request.host_port = Some(port);
    Ok(Parsed::Head(RequestHead {
        framing: Framing::None,
        keep_alive: false,
        upgrade: None,
        connect_port: Some(port),
        ..head
    }))
}

/// The heads of requests that came before.
pub type RequestHeads = HeadCache<RequestFacts>;

/// What the field lines of a request say, on a connection whose requests are for paths.
#[derive(Debug, Default)]
pub struct RequestFacts {
    /// Its length is that of the field lines, and it has no upgrade.
    head: RequestHead,
    host: Vec<u8>,
    host_port: Option<u16>,
    has_body: bool,
    expects_continue: bool,
    content_length: Option<u64>,
    own_call: u128,
}

impl RequestFacts {
    fn keep(&mut self, head: &RequestHead, first: usize, request: &Request) {
        self.head = RequestHead {
            length: head.length - first,
            ..head.clone()
        };
        self.host.clone_from(&request.host);
        self.host_port = request.host_port;
        self.has_body = request.has_body;
        self.expects_continue = request.expects_continue;
        self.content_length = request.content_length;
        self.own_call = request.own_call;
    }

    /// Tells a request whose field lines begin at `first`.
    #[inline]
    fn copy_to(&self, first: usize, request: &mut Request) -> RequestHead {
        request.host.extend_from_slice(&self.host);
        request.host_port = self.host_port;
        request.has_body = self.has_body;
        request.expects_continue = self.expects_continue;
        request.content_length = self.content_length;
        request.own_call = self.own_call;
        RequestHead {
            length: first + self.head.length,
            upgrade: None,
            ..self.head
        }
    }
}

/// Method, target and minor version.
pub(crate) fn split_request_line(line: &[u8]) -> Result<(&[u8], &[u8], u8), RefusalKind> {
    let method_len = line.iter().position(|byte| *byte == b' ');
    let (method, rest) = line.split_at(
        method_len
            .filter(|len| *len > 0)
            .ok_or_else(|| bad(REQUEST_LINE))?,
    );
    let minor_version = match rest.last_chunk() {
        Some(b" HTTP/1.1") => 1,
        Some(b" HTTP/1.0") => 0,
        _ => return Err(refuse_version(rest)),
    };
    // Of "GET HTTP/1.1" one space is both.
    let target = rest.get(1..rest.len() - 9).ok_or_else(|| bad(REQUEST_LINE))?;
    Ok((method, target, minor_version))
}

/// Whether what may become a request line begins like one: a client of another protocol should not have to wait.
#[cold]
fn begins_a_request(bytes: &[u8]) -> Result<Parsed, RefusalKind> {
    let method = bytes.split(|byte| *byte == b' ').next().unwrap_or_default();
    match method
        .strip_suffix(b"\r")
        .unwrap_or(method)
        .iter()
        .all(|byte| is_token(*byte))
    {
        true => Ok(Parsed::Partial),
        false => Err(bad(REQUEST_LINE)),
    }
}

const REQUEST_LINE: &str = "the request line";

#[cold]
fn refuse_version(rest: &[u8]) -> RefusalKind {
    match rest.rsplit(|byte| *byte == b' ').next() {
        Some([b'H', b'T', b'T', b'P', b'/', b'2' | b'3', ..]) => RefusalKind::VersionNotSupported,
        Some([b'H' | b'h', b'T' | b't', b'T' | b't', b'P' | b'p', ..]) => bad("the HTTP version"),
        _ => bad(REQUEST_LINE),
    }
}

impl From<MalformedHead> for RefusalKind {
    #[cold]
    fn from(broken: MalformedHead) -> Self {
        match broken {
            MalformedHead::BareLf => bad("a line that does not end in CRLF"),
            MalformedHead::Name => bad("a header name"),
            MalformedHead::Value => bad("a header value"),
            MalformedHead::TooManyFields => Self::HeadTooLarge,
        }
    }
}

/// What the field lines say about the connection and the body.
#[derive(Default)]
struct Fields<'h> {
    host: Option<&'h [u8]>,
    length: Option<u64>,
    has_authorization: bool,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    wants_upgrade: bool,
    upgrade: Option<&'h [u8]>,
    expects_continue: bool,
    has_forwarded: bool,
    has_forwarded_list: bool,
    has_via: bool,
    own_call: u128,
    named_by_connection: Vec<&'h [u8]>,
}

impl<'h> Fields<'h> {
    /// Notes one field line; says whether it goes on to the upstream (hop-by-hop ones do not: RFC 9110, 7.6.1).
    fn note(&mut self, name: &'h [u8], value: &'h [u8]) -> Result<bool, RefusalKind> {
        // Most are written like this.
        let is = |usual: &[u8]| name == usual || name.eq_ignore_ascii_case(usual);
        match name.len() {
            3 if is(b"Via") => self.has_via = true,
            4 if is(b"Host") => {
                if self.host.replace(value).is_some() {
                    return Err(bad("more than one Host"));
                }
            }
            5 if is(b"Proxy") => return Ok(false),
            6 if is(b"Expect") => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(RefusalKind::ExpectationFailed);
                }
                self.expects_continue = true;
                return Ok(false);
            }
            7 if is(b"Upgrade") => {
                // A switch to HTTP/2 behind the gateway's back would carry requests that no filter sees.
                let switches_http =
                    list_items(value).any(|it| it.get(..2).is_some_and(|it| it.eq_ignore_ascii_case(b"h2")));
                self.upgrade = Some(value).filter(|_| !switches_http);
                return Ok(false);
            }
            9 if is(b"Forwarded") => self.has_forwarded_list = true,
            10 if is(b"Connection") => return self.note_connection(value).map(|()| false),
            10 if is(b"Keep-Alive") => return Ok(false),
            10 if is(OWN_CALL_HEADER.as_bytes()) => {
                let text = std::str::from_utf8(value).ok();
                self.own_call = text.and_then(|it| u128::from_str_radix(it, 16).ok()).unwrap_or(0);
                return Ok(false);
            }
            13 if is(b"Authorization") => {
                // Who checks it might look at another one than who acts upon it.
                if std::mem::replace(&mut self.has_authorization, true) {
                    return Err(bad("more than one Authorization"));
                }
            }
            14 if is(b"Content-Length") => {
                let length = parse_length(value).ok_or_else(|| bad("the Content-Length"))?;
                if self.length.replace(length).is_some() {
                    return Err(bad("more than one Content-Length"));
                }
                return Ok(false);
            }
            16 if is(b"Proxy-Connection") => return Ok(false),
            17 if is(b"Transfer-Encoding") => {
                if self.chunked {
                    return Err(bad("more than one Transfer-Encoding"));
                }
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(RefusalKind::NotImplemented);
                }
                self.chunked = true;
                return Ok(false);
            }
            14 | 17 if is_framing_with_underscore(name) => {
                return Err(bad("a header that frames the body, with an underscore"));
            }
            2 if is(b"TE") => return Ok(value.eq_ignore_ascii_case(b"trailers")),
            _ => self.has_forwarded |= is_forwarded(name),
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
                _ if self.named_by_connection.len() == MAX_FIELDS => {
                    return Err(bad("the Connection header"));
                }
                _ => self.named_by_connection.push(option),
            }
        }
        Ok(())
    }

    fn finish(
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
        request.own_call = self.own_call;
        let upgrade = self
            .upgrade
            .filter(|_| self.wants_upgrade && minor_version == 1)
            .map(<[u8]>::to_vec);
        request.wants_upgrade = upgrade.is_some();
        let keep_alive = !self.close && (minor_version == 1 || self.keep_alive);
        Ok(Parsed::Head(RequestHead {
            length,
            framing,
            keep_alive,
            expects_continue: self.expects_continue && minor_version == 1 && !framing.is_empty(),
            upgrade,
            connect_port: None,
            has_forwarded: self.has_forwarded,
            has_forwarded_list: self.has_forwarded_list,
            has_via: self.has_via,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_own_calls_are_no_headers() {
        for (line, wanted) in [
            ("Weir-Batch: ff", 0xff),
            ("weir-batch: 1", 1),
            ("Weir-Batch: x", 0),
            ("Weir-Batches: 1", 0),
        ] {
            let mut exchange = Exchange::new(|| 0, 1);
            let head = format!("GET / HTTP/1.1\r\nHost: h\r\n{line}\r\n\r\n");
            assert!(matches!(
                parse(head.as_bytes(), &mut exchange),
                Ok(Parsed::Head(_))
            ));
            assert_eq!(exchange.request.own_call, wanted, "{line}");
            assert!(!exchange.request.headers.contains(b"weir-batch"), "{line}");
        }
    }

    #[test]
    fn heads_note_headers_of_other_hops() {
        for (line, wanted) in [
            ("X-A: 1", [false; 3]),
            ("X-Forwarded-For: 1.2.3.4", [true, false, false]),
            ("x-real-ip: 1.2.3.4", [true, false, false]),
            ("forwarded: for=1.2.3.4", [false, true, false]),
            ("VIA: 1.1 a", [false, false, true]),
            ("X-Via: 1.1 a", [false; 3]),
        ] {
            let mut exchange = Exchange::new(|| 0, 1);
            let head = format!("GET / HTTP/1.1\r\nHost: h\r\n{line}\r\n\r\n");
            let Ok(Parsed::Head(head)) = parse(head.as_bytes(), &mut exchange) else {
                panic!("{line}: it is not read");
            };
            let flags = [head.has_forwarded, head.has_forwarded_list, head.has_via];
            assert_eq!(flags, wanted, "{line}");
            assert_eq!(exchange.request.headers.len(), 2, "{line}");
        }
    }
}
