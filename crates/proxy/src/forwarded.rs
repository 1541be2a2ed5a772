//! The request as the upstream sees it: target, Host, `X-Forwarded-*` and `Via`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use weir_http1::fields::push_header;
use weir_model::{PathJoin, PathRewrite};
use weir_plugin::headers::is_value;
use weir_plugin::{Exchange, Headers, Request, client_header_bit, uri};
use weir_snapshot::ForwardedHeaderPolicy;

/// Bytes of a connection's lines that are kept for its next call.
const MAX_KEPT_LINES: usize = 1024;

/// Writes the path and query for the upstream: the route's rewrite of the matched path, escaped if the
/// route table matches decoded paths, and the query as the client wrote it. A decoded path that nothing changes is
/// forwarded as it came (as by NGINX), so that an escaped slash stays one.
pub fn write_target(
    rewrite: &PathRewrite,
    matched_len: usize,
    is_decoded: bool,
    exchange: &Exchange,
    out: &mut Vec<u8>,
) {
    // What is stripped is a part of the path that was matched.
    let path = match rewrite.strip_matched {
        true => exchange.request.path.as_slice(),
        false => exchange.request.forwarded_path(),
    };
    let is_untouched = !rewrite.strip_matched && rewrite.base.is_none();
    let goes_as_it_came = exchange.upstream_path.is_none()
        && is_untouched
        && is_decoded
        && path_is_unambiguous(&exchange.request);
    if let Some(path) = &exchange.upstream_path {
        push_comma_joined(path, out);
    } else if goes_as_it_came {
        push_comma_joined(&exchange.request.raw_path, out);
    } else if is_untouched {
        write_path(path, is_decoded, out);
        if exchange.request.lacks_tail_slash && exchange.request.path_with_parameters.is_empty() {
            out.push(b'/');
        }
    } else if is_decoded {
        let mut joined = Vec::with_capacity(path.len() + 16);
        join(rewrite, matched_len.min(path.len()), path, &mut joined);
        write_path(&joined, is_decoded, out);
    } else {
        join(rewrite, matched_len.min(path.len()), path, out);
    }
    if let Some(query) = &exchange.upstream_query {
        if !query.is_empty() {
            out.push(b'?');
            push_comma_joined(query, out);
        }
    } else if let Some(query) = &exchange.request.query {
        // A decoded path was taken apart; an empty query is not put back (as NGINX does it).
        if !query.is_empty() || goes_as_it_came || !is_decoded {
            out.push(b'?');
            out.extend_from_slice(query);
        }
    }
}

/// Whether an upstream finds the same in the path as it came as the gateway did in its normal form. Where dot segments
/// were resolved, it may not: it could take the call for one of another route.
fn path_is_unambiguous(request: &Request) -> bool {
    let path = &request.raw_path;
    request.path_with_parameters.is_empty()
        && (uri::is_plain(path) || !(uri::has_dot_segments(path) || path.contains(&b'#')))
}

/// Writes what a filter made of parts of the call, with whatever would end the request line escaped: decoded
/// parts must not be able to write a request of their own.
fn push_comma_joined(part: &[u8], out: &mut Vec<u8>) {
    let ends_the_line = |byte: &u8| *byte <= 0x20 || *byte == 0x7f;
    match part.iter().any(ends_the_line) {
        true => uri::escape_controls(part, out),
        false => out.extend_from_slice(part),
    }
}

fn write_path(path: &[u8], is_decoded: bool, out: &mut Vec<u8>) {
    if is_decoded && !uri::is_plain(path) {
        uri::escape_path(path, out);
    } else {
        out.extend_from_slice(path);
    }
}

/// Appends the service's path, joined with what is left of the call's, to `out`.
fn join(rewrite: &PathRewrite, matched_len: usize, path: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let base = rewrite.base.as_deref().unwrap_or("/").as_bytes();
    let is_stripped = rewrite.strip_matched && matched_len > 0;
    let rest = if is_stripped {
        strip(path, matched_len, rewrite.join)
    } else {
        path
    };
    match rewrite.join {
        PathJoin::Segments => {
            // Of the root nothing is left, whether it is cut off or not: the base stays as it is.
            if path == b"/" {
                out.extend_from_slice(base);
                return;
            }
            out.extend_from_slice(base.strip_suffix(b"/").unwrap_or(base));
            if out.len() == start || rest.first().is_some_and(|first| *first != b'/') {
                out.push(b'/');
            }
            let is_joined = out.ends_with(b"/") && rest.starts_with(b"/");
            out.extend_from_slice(&rest[usize::from(is_joined)..]);
        }
        PathJoin::Concatenate => {
            out.extend_from_slice(base);
            let is_double = base.ends_with(b"/") || !is_stripped;
            out.extend_from_slice(rest.strip_prefix(b"/").filter(|_| is_double).unwrap_or(rest));
        }
    }
}

/// Cuts off the matched part. A pattern that ends in `/` leaves its slash to the rest; dot segments at the
/// start of the rest, which the cut has laid bare, are dropped: they would lead out of the base.
fn strip(path: &[u8], matched_len: usize, join: PathJoin) -> &[u8] {
    let mut from = matched_len;
    if join == PathJoin::Segments && from > 1 && path[from - 1] == b'/' {
        from -= 1;
    }
    let mut rest = &path[from..];
    loop {
        let is_escaped = |start: &[u8]| start.eq_ignore_ascii_case(b"%2e%2e");
        rest = match rest {
            [b'.', b'/', ..] => &rest[2..],
            [b'.', b'.', b'/', ..] => &rest[3..],
            _ if rest.get(..6).is_some_and(is_escaped) => &rest[6..],
            b"." | b".." => b"",
            _ => return rest,
        };
    }
}

/// Whether the client has sent nothing that [`apply`] would have to look at, and is who it seems to be. Then
/// [`write_plain`] does for each try, without touching the header list. `may_have_list`: whether there may be a header
/// `Forwarded`.
pub fn is_plain(forwarded: &ForwardedHeaderPolicy, may_have_list: bool, exchange: &Exchange) -> bool {
    let request = &exchange.request;
    let drops_some = forwarded.drop_forwarded && may_have_list && request.headers.contains(b"forwarded");
    forwarded.standard && !drops_some && request.client == request.peer.ip()
}

/// The `X-Forwarded-*` lines of a connection's last call, except those about its path: most of its calls have the
/// same. Calls that are under way at once share them.
#[derive(Default, Clone)]
pub struct Lines(Rc<RefCell<CachedLines>>);

#[derive(Default)]
struct CachedLines {
    text: Vec<u8>,
    /// The range of `X-Forwarded-Host`'s value in `text`.
    host: Range<usize>,
    port: u16,
}

impl CachedLines {
    fn write(&mut self, request: &Request, host: &[u8], port: u16, out: &mut Vec<u8>) {
        if self.text.is_empty() || self.port != port || &self.text[self.host.clone()] != host {
            self.renew(request, host, port);
        }
        out.extend_from_slice(&self.text);
        if self.text.capacity() > MAX_KEPT_LINES {
            *self = Self::default();
        }
    }

    #[cold]
    fn renew(&mut self, request: &Request, host: &[u8], port: u16) {
        let text = &mut self.text;
        text.clear();
        with_address_text(request.client, |address| {
            push_header(text, b"X-Forwarded-For", address);
            push_header(text, b"X-Real-IP", address);
        });
        push_header(text, b"X-Forwarded-Proto", request.scheme().as_bytes());
        push_header(text, b"X-Forwarded-Host", host);
        self.host = text.len() - 2 - host.len()..text.len() - 2;
        self.port = port;
        push_header(
            text,
            b"X-Forwarded-Port",
            itoa::Buffer::new().format(port).as_bytes(),
        );
    }
}

/// Writes the gateway's `X-Forwarded-*` after a request's own headers.
pub fn write_plain(
    forwarded: &ForwardedHeaderPolicy,
    stripped: Option<usize>,
    exchange: &Exchange,
    lines: &Lines,
    out: &mut Vec<u8>,
) {
    let request = &exchange.request;
    let (mut host, mut port) = (named_host(forwarded, request), request.local.port());
    if forwarded.host_as_written {
        host = request.headers.get(b"host").unwrap_or(host);
        port = request.host_port.unwrap_or(port);
    }
    lines.0.borrow_mut().write(request, host, port, out);
    if forwarded.path {
        push_header(out, b"X-Forwarded-Path", &request.raw_path);
    }
    if let Some(prefix) = stripped
        .and_then(|len| request.path.get(..len))
        .filter(|prefix| prefix.len() > 1)
        && forwarded.prefix
    {
        push_header(out, b"X-Forwarded-Prefix", &prefix_value(prefix));
    }
}

/// The host that the call is for.
fn named_host<'h>(forwarded: &'h ForwardedHeaderPolicy, request: &'h Request) -> &'h [u8] {
    match (&forwarded.default_host, request.host.is_empty()) {
        (Some(host), true) => host,
        _ => &request.host,
    }
}

/// The values of a header that other hops have written before this one, ready for another element; `None`: none has.
pub fn list_so_far(forwarded: &ForwardedHeaderPolicy, headers: &Headers, name: &[u8]) -> Option<Vec<u8>> {
    let lines = if forwarded.first_line_only { 1 } else { usize::MAX };
    let mut list = Vec::new();
    for value in headers.get_all(name).take(lines) {
        list.extend_from_slice(value);
        list.extend_from_slice(b", ");
    }
    (!list.is_empty()).then_some(list)
}

/// The part of the path that was cut off, as a header can hold it: a decoded path can hold anything. Escapes of characters
/// that mean nothing in a path are decoded.
fn prefix_value(prefix: &[u8]) -> Cow<'_, [u8]> {
    if is_value(prefix) {
        return match prefix.contains(&b'%') {
            true => Cow::Owned(without_escapes(prefix)),
            false => Cow::Borrowed(prefix),
        };
    }
    let mut escaped = Vec::with_capacity(prefix.len() + 16);
    uri::escape_path(prefix, &mut escaped);
    Cow::Owned(escaped)
}

/// Decodes all escapes but those of reserved characters (RFC 3986, 2.2), of `%` and of control characters.
fn without_escapes(path: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let is_kept = |byte: u8| byte.is_ascii_control() || b"!#$%&'()*+,/:;=?@[]".contains(&byte);
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        let escaped = match rest {
            [b'%', high, low, ..] => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        match escaped.filter(|byte| !is_kept(*byte)) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[3..];
            }
            None => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    out
}

/// The headers that [`apply`] sets, in addition to the list of addresses.
const SET: [&[u8]; 6] = [
    b"X-Forwarded-Proto",
    b"X-Forwarded-Host",
    b"X-Forwarded-Port",
    b"X-Real-IP",
    b"X-Forwarded-Path",
    b"X-Forwarded-Prefix",
];
const PROTO: usize = 0;
const HOST: usize = 1;
const PORT: usize = 2;
const REAL_IP: usize = 3;
const PATH: usize = 4;
const PREFIX: usize = 5;

/// The first header of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderPresence {
    Absent,
    /// An empty one counts as absent.
    Empty,
    Text,
}

/// Reads the headers of [`SET`], in one pass over the list.
fn look(headers: &Headers) -> [HeaderPresence; SET.len()] {
    let mut presence = [HeaderPresence::Absent; SET.len()];
    for header in headers.iter() {
        if header.name.first().is_none_or(|first| first | 0x20 != b'x') {
            continue;
        }
        let found = SET.iter().position(|name| header.name.eq_ignore_ascii_case(name));
        if let Some(place) = found
            && presence[place] == HeaderPresence::Absent
        {
            presence[place] = match header.value.is_empty() {
                true => HeaderPresence::Empty,
                false => HeaderPresence::Text,
            };
        }
    }
    presence
}

/// Replaces the `X-Forwarded-*` of a request by the gateway's, once for all tries. `is_proxy`: the dialect trusts the peer
/// as one.
pub fn apply(
    forwarded: &ForwardedHeaderPolicy,
    has_forwarded: bool,
    is_proxy: bool,
    stripped: Option<usize>,
    exchange: &mut Exchange,
) {
    if !(forwarded.standard || forwarded.path || forwarded.prefix) {
        return;
    }
    let is_trusted = has_forwarded && (is_proxy || forwarded.trusts(exchange.request.peer.ip()));
    let request = &mut exchange.request;
    let presence = look(&request.headers);
    let set = |request: &mut Request, which: usize, value: &[u8]| {
        let name = SET[which];
        if request.overridden_headers != 0 && is_decided(request, name) {
            return;
        }
        match presence[which] {
            HeaderPresence::Absent => {}
            // What a trusted proxy calls the client has been read.
            HeaderPresence::Text if is_trusted && !(is_proxy && which == REAL_IP) => return,
            _ if has_forwarded => {
                request.headers.remove(name);
            }
            // Not the client's: a filter has set it.
            _ => return,
        }
        request.headers.append_trusted(name, value);
    };
    if forwarded.drop_forwarded && !forwarded.trusts(request.peer.ip()) {
        request.headers.remove(b"Forwarded");
        if has_forwarded && !forwarded.trusted.is_empty() && !is_decided(request, b"X-Forwarded-For") {
            request.headers.remove(b"X-Forwarded-For");
        }
    }
    if forwarded.standard {
        append_forwarded_for(forwarded, request, has_forwarded, is_proxy);
        let scheme = request.scheme();
        set(request, PROTO, scheme.as_bytes());
        set_host(request, forwarded, set);
        with_address_text(request.client, |address| set(request, REAL_IP, address));
    }
    if forwarded.path {
        let path = std::mem::take(&mut request.raw_path);
        set(request, PATH, &path);
        request.raw_path = path;
    }
    if forwarded.prefix {
        match stripped {
            Some(matched_len) if matched_len > 1 => {
                let matched = &request.path[..matched_len.min(request.path.len())];
                let prefix = prefix_value(matched).into_owned();
                set(request, PREFIX, &prefix);
            }
            _ if has_forwarded && !is_trusted && presence[PREFIX] != HeaderPresence::Absent => {
                request.headers.remove(SET[PREFIX]);
            }
            _ => {}
        }
    }
}

/// Whether a filter has decided about a header.
#[cold]
fn is_decided(request: &Request, name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| request.overridden_headers & client_header_bit(name) != 0)
}

fn set_host(
    request: &mut Request,
    forwarded: &ForwardedHeaderPolicy,
    set: impl Fn(&mut Request, usize, &[u8]),
) {
    let as_written = forwarded.host_as_written;
    let port = request
        .host_port
        .filter(|_| as_written)
        .unwrap_or(request.local.port());
    let written = if as_written {
        request.headers.get(b"host")
    } else {
        None
    };
    match written.map(<[u8]>::to_vec) {
        Some(written) => set(request, HOST, &written),
        // Lent for as long as the list changes.
        None => {
            let host = std::mem::take(&mut request.host);
            match (&forwarded.default_host, host.is_empty()) {
                (Some(other), true) => set(request, HOST, other),
                _ => set(request, HOST, &host),
            }
            request.host = host;
        }
    }
    set(request, PORT, itoa::Buffer::new().format(port).as_bytes());
}

fn append_forwarded_for(
    forwarded: &ForwardedHeaderPolicy,
    request: &mut Request,
    has_forwarded: bool,
    is_proxy: bool,
) {
    let addresses = || list_so_far(forwarded, &request.headers, b"x-forwarded-for");
    if let Some(mut list) = has_forwarded.then(addresses).flatten() {
        // The client is in a trusted proxy's list already.
        let last = if is_proxy {
            request.peer.ip()
        } else {
            request.client
        };
        with_address_text(last, |address| list.extend_from_slice(address));
        request.headers.set(b"X-Forwarded-For", &list);
    } else {
        with_address_text(request.client, |address| {
            request.headers.append_trusted(b"X-Forwarded-For", address)
        });
    }
}

/// The text of an IPv6 address, of at most 39 bytes, or 45 with an IPv4 address in it.
struct AddressText {
    bytes: [u8; 45],
    len: usize,
}

impl std::fmt::Write for AddressText {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        let end = self.len + part.len();
        let space = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        space.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Formats an address without an allocation.
fn with_address_text(address: IpAddr, take: impl FnOnce(&[u8])) {
    let IpAddr::V4(address) = address.to_canonical() else {
        let mut text = AddressText {
            bytes: [0; 45],
            len: 0,
        };
        return match write!(text, "{address}") {
            Ok(()) => take(&text.bytes[..text.len]),
            Err(_) => take(address.to_string().as_bytes()),
        };
    };
    let mut text = [0u8; 15];
    let mut length = 0;
    for (position, octet) in address.octets().into_iter().enumerate() {
        if position > 0 {
            text[length] = b'.';
            length += 1;
        }
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(octet).as_bytes();
        text[length..length + digits.len()].copy_from_slice(digits);
        length += digits.len();
    }
    take(&text[..length]);
}

#[cfg(test)]
mod tests;
