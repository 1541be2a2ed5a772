//! Request heads.

use super::{Framing, MAX_HEADERS, ends_in_crlf, list_items, parse_length};
use std::mem::MaybeUninit;
use std::net::Ipv6Addr;
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

fn bad(what: &'static str) -> RefusalKind {
    RefusalKind::BadRequest(what)
}

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

/// Reads the request target; gives the authority where the target names one.
fn read_target<'t>(
    target: &'t [u8],
    method: &[u8],
    request: &mut weir_plugin::Request,
) -> Result<Option<&'t [u8]>, RefusalKind> {
    if !method
        .iter()
        .all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_'))
    {
        return Err(bad("the method"));
    }
    if method == b"CONNECT" || method == b"TRACE" {
        return Err(RefusalKind::MethodNotAllowed);
    }
    let (authority, path) = match target {
        [b'/', ..] => (None, target),
        b"*" if method == b"OPTIONS" => (None, &b"*"[..]),
        _ => {
            let rest = strip_scheme(target).ok_or_else(|| bad("the request target"))?;
            let end = rest
                .iter()
                .position(|byte| matches!(byte, b'/' | b'?'))
                .unwrap_or(rest.len());
            // Host decides where the call goes, but a target that says something else must say it properly.
            split_host(&rest[..end]).ok_or_else(|| bad("the request target"))?;
            (Some(&rest[..end]), &rest[end..])
        }
    };
    let is_bad = |bad, byte: &u8| bad | (*byte <= 0x20) | (*byte == 0x7f);
    if target.iter().fold(false, is_bad) {
        return Err(bad("the request target"));
    }
    // A fragment is no part of a request; the originals drop it, and so the upstream never sees one.
    let path = &path[..memchr::memchr(b'#', path).unwrap_or(path.len())];
    match memchr::memchr(b'?', path) {
        Some(at) => {
            request.raw_path.extend_from_slice(&path[..at]);
            request.set_query(&path[at + 1..]);
        }
        None => request.raw_path.extend_from_slice(path),
    }
    if request.raw_path.is_empty() {
        request.raw_path.push(b'/');
    }
    Ok(authority)
}

fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    [&b"http://"[..], b"https://"].iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

/// Reads a Host: a name or an address, in lower case and without a trailing dot, and a port.
fn read_host(host: &[u8], request: &mut weir_plugin::Request) -> Result<(), RefusalKind> {
    let (name, port) = split_host(host).ok_or_else(|| bad("the Host"))?;
    request.host.extend_from_slice(name);
    request.host.make_ascii_lowercase();
    request.host_port = port;
    Ok(())
}

/// Whether two authorities name the same server, a missing port being the usual one.
fn is_same_authority(one: &[u8], other: &[u8]) -> bool {
    let parts =
        |authority| split_host(authority).map(|(name, port)| (name.to_ascii_lowercase(), port.unwrap_or(80)));
    parts(one).is_some_and(|one| Some(one) == parts(other))
}

/// Splits an authority without user information (RFC 3986, 3.2.2) into name, without a trailing dot, and port.
fn split_host(host: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let name_len = match host.first()? {
        b'[' => memchr::memchr(b']', host)? + 1,
        _ => memchr::memchr(b':', host).unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(name_len);
    let port = match port {
        [] | [b':'] => None,
        [b':', port @ ..] => Some(parse_length(port).and_then(|port| u16::try_from(port).ok())?),
        _ => return None,
    };
    let name = name.strip_suffix(b".").unwrap_or(name);
    let is_good = match name {
        [b'[', address @ .., b']'] => {
            std::str::from_utf8(address).is_ok_and(|it| it.parse::<Ipv6Addr>().is_ok())
        }
        [] => false,
        _ => {
            let is_good = |good, byte: &u8| good & HOST_CHARACTERS[usize::from(*byte)];
            name.iter().fold(true, is_good) && !name.windows(2).any(|pair| pair == b"..")
        }
    };
    is_good.then_some((name, port))
}

/// The bytes that a name may hold: what RFC 3986 allows, and what is not ASCII.
const HOST_CHARACTERS: [bool; 256] = {
    let mut characters = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        characters[byte] = (byte as u8).is_ascii_alphanumeric() || byte >= 0x80;
        byte += 1;
    }
    let marks = b"-._~%!$&'()*+,;=";
    let mut index = 0;
    while index < marks.len() {
        characters[marks[index] as usize] = true;
        index += 1;
    }
    characters
};
