//! Header fields between HTTP/1.1's lines, as which the engine keeps and writes them, and the field lists of HTTP/2 and
//! HTTP/3.

use base64::Engine;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, request};
use weir_http1::MAX_FIELDS;
use weir_http1::fields::{keep_last_content_type, parse_length};
use weir_http2::fields::belongs;
use weir_http2::{FieldList, PseudoHeader};
use weir_plugin::{Exchange, Headers, OWN_CALL_HEADER, RefusalKind, Response};

use crate::limits::Limits;
use weir_http1::Framing;
use weir_http1::request::RequestHead;
use weir_http1::response::{InvalidResponse, ResponseHead};
use weir_http1::target::{bad, is_same_authority, read_host, read_target};

/// The overhead of a field beyond its name and value (RFC 9113, 6.5.2, counts 32; lines have four).
const LINE_OVERHEAD: usize = 4;

/// Makes a field list of header lines; `Host` is given apart. What belongs to an HTTP/1.1 connection is left out.
pub fn to_map(lines: &[u8]) -> (HeaderMap, Option<HeaderValue>) {
    let all = Bytes::copy_from_slice(lines);
    let mut map = HeaderMap::with_capacity(16);
    let mut host = None;
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', lines) {
        let line = &lines[start..end];
        if let Some(colon) = memchr::memchr(b':', line) {
            let name = &line[..colon];
            let value = line[colon + 1..].trim_ascii();
            let from = if value.is_empty() {
                start
            } else {
                value.as_ptr() as usize - lines.as_ptr() as usize
            };
            let value = HeaderValue::from_maybe_shared(all.slice(from..from + value.len()));
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), value) {
                if name == header::HOST {
                    host = Some(value);
                } else if belongs(name.as_str().as_bytes(), value.as_bytes()) {
                    map.append(name, value);
                }
            }
        }
        start = end + 1;
    }
    (map, host)
}

/// The fields of a map, as bytes.
pub fn of_map(map: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    map.iter()
        .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
}

/// The head of a request as its stream brought it.
pub struct StreamRequest {
    /// Method, target and fields.
    pub list: Box<FieldList>,
    /// The version of HTTP.
    pub version: (u8, u8),
    /// The protocol of the stream in place of a call (`:protocol`; RFC 8441, 4).
    pub protocol: Option<Vec<u8>>,
}

impl StreamRequest {
    /// Of a head that has been taken apart already.
    pub fn of(parts: &request::Parts, version: (u8, u8), protocol: Option<Vec<u8>>) -> Self {
        let mut list = Box::<FieldList>::default();
        list.set(PseudoHeader::Method, parts.method.as_str().as_bytes());
        if let Some(target) = parts.uri.path_and_query() {
            list.set(PseudoHeader::Path, target.as_str().as_bytes());
        }
        if let Some(authority) = parts.uri.authority() {
            list.set(PseudoHeader::Authority, authority.as_str().as_bytes());
        }
        for (name, value) in of_map(&parts.headers) {
            list.push(name, value);
        }
        Self {
            list,
            version,
            protocol,
        }
    }

    /// The value of a field that stands there once.
    pub fn get<'s>(&'s self, name: &'s [u8]) -> Option<&'s [u8]> {
        self.list.all(name).next()
    }
}

/// Reads a request's head into the exchange; `at_hand`: the length of a body that has come whole.
///
/// # Errors
/// The refusal with which to answer.
pub fn read_request(
    asked: &StreamRequest,
    at_hand: Option<usize>,
    limits: &Limits,
    exchange: &mut Exchange,
) -> Result<RequestHead, RefusalKind> {
    let (list, protocol) = (&asked.list, asked.protocol.as_deref());
    let request = &mut exchange.request;
    request.version = asked.version;
    let method = match protocol {
        None => list.get(PseudoHeader::Method).unwrap_or_default(),
        // A WebSocket (RFC 8441): in HTTP/1.1 it begins with a GET.
        Some(b"websocket") => b"GET",
        Some(_) => return Err(RefusalKind::NotImplemented),
    };
    request.method.extend_from_slice(method);
    let target = list.get(PseudoHeader::Path).unwrap_or_default();
    if target.len() > limits.max_target_bytes {
        return Err(RefusalKind::UriTooLong);
    }
    if list.is_too_large || list.len() > MAX_FIELDS {
        return Err(RefusalKind::HeadTooLarge);
    }
    read_target(target, method, request)?;
    let mut hosts = list.all(b"host");
    let written = hosts.next();
    if hosts.next().is_some() {
        return Err(bad("more than one Host"));
    }
    let host = match (list.get(PseudoHeader::Authority), written) {
        (Some(authority), Some(host)) if !is_same_authority(authority, host) => {
            return Err(bad("an authority and a Host that differ"));
        }
        (Some(host), _) | (None, Some(host)) => host,
        (None, None) => return Err(bad("no Host")),
    };
    read_host(host, request)?;
    request.headers.append_trusted(b"Host", host);
    let mut fields = Fields::default();
    let mut length = method.len() + target.len() + host.len() + LINE_OVERHEAD;
    list.add_to(&mut request.headers, |name, value| {
        length += name.len() + value.len() + LINE_OVERHEAD;
        fields.note(name, value)
    })?;
    if length > limits.max_head_bytes {
        return Err(RefusalKind::HeadTooLarge);
    }
    if fields.has_cookies {
        join_cookies(list, &mut request.headers);
    }
    let framing = match (at_hand, fields.length) {
        // What comes is carried once both sides have switched.
        _ if protocol.is_some() => Framing::None,
        (Some(0), None | Some(0)) => Framing::None,
        (Some(length), None) => Framing::Length(length as u64),
        (None, None) => Framing::UntilClose,
        // That the body is as long is seen to where its frames are read.
        (_, Some(length)) => Framing::Length(length),
    };
    request.has_body = !framing.is_empty();
    request.expects_continue = fields.expects_continue;
    request.content_length = fields.length;
    request.wants_upgrade = protocol.is_some();
    if protocol.is_some() {
        add_websocket_key(exchange);
    }
    Ok(RequestHead {
        length,
        framing,
        keep_alive: true,
        expects_continue: fields.expects_continue && !framing.is_empty(),
        upgrade: protocol.map(<[u8]>::to_vec),
        connect_port: None,
        has_forwarded: fields.has_forwarded,
        has_forwarded_list: fields.has_forwarded_list,
        has_via: fields.has_via,
        minor_version: 1,
    })
}

/// On a stream there is no key, which HTTP/1.1 servers want (RFC 8441, 5.1).
fn add_websocket_key(exchange: &mut Exchange) {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&exchange.random_u64().to_be_bytes());
    key[8..].copy_from_slice(&exchange.random_u64().to_be_bytes());
    let key = base64::engine::general_purpose::STANDARD.encode(key);
    exchange.request.headers.set(b"Sec-WebSocket-Key", key.as_bytes());
}

#[derive(Default)]
struct Fields {
    length: Option<u64>,
    expects_continue: bool,
    has_forwarded: bool,
    has_forwarded_list: bool,
    has_via: bool,
    has_cookies: bool,
    has_authorization: bool,
}

impl Fields {
    /// Notes a field; says whether it goes into the header list as it stands.
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<bool, RefusalKind> {
        // Servers of HTTP/1.1 drop it: a filter would look at another value than they do (RFC 9113, 8.2.1; RFC 9114, 4.2).
        if let [first, .., last] | [first @ last] = value
            && [first, last].into_iter().any(|it| matches!(it, b' ' | b'\t'))
        {
            return Err(bad("white space around the value of a field"));
        }
        match name {
            b"host" | b"proxy" | b"http2-settings" => return Ok(false),
            b"cookie" => {
                self.has_cookies = true;
                return Ok(false);
            }
            b"expect" => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(RefusalKind::ExpectationFailed);
                }
                self.expects_continue = true;
                return Ok(false);
            }
            // Who checks it might look at another one than who acts upon it.
            b"authorization" if std::mem::replace(&mut self.has_authorization, true) => {
                return Err(bad("more than one Authorization"));
            }
            b"content-length" => {
                let length = parse_length(value).ok_or_else(|| bad("the Content-Length"))?;
                if self.length.replace(length).is_some() {
                    return Err(bad("more than one Content-Length"));
                }
                return Ok(false);
            }
            b"via" => self.has_via = true,
            b"forwarded" => self.has_forwarded_list = true,
            // The gateway calls itself over HTTP/1.1.
            name if name.eq_ignore_ascii_case(OWN_CALL_HEADER.as_bytes()) => return Ok(false),
            _ => {}
        }
        if !belongs(name, value) || weir_http1::fields::is_framing_with_underscore(name) {
            return Err(bad("a field of a connection"));
        }
        self.has_forwarded |= weir_http1::fields::is_forwarded(name);
        Ok(true)
    }
}

/// A client may send its cookies in several fields; they are one (RFC 9113, 8.2.3; RFC 9114, 4.2.1).
fn join_cookies(list: &FieldList, headers: &mut Headers) {
    let mut cookies = list.all(b"cookie");
    let Some(first) = cookies.next() else { return };
    let Some(second) = cookies.next() else {
        headers.append(b"cookie", first);
        return;
    };
    let mut joined = first.to_vec();
    for cookie in std::iter::once(second).chain(cookies) {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(cookie);
    }
    headers.append(b"cookie", &joined);
}

/// Reads a response's head from an upstream.
///
/// # Errors
/// If it is malformed.
pub fn read_response(
    list: &FieldList,
    is_whole: bool,
    to_head: bool,
    response: &mut Response,
) -> Result<ResponseHead, InvalidResponse> {
    response.clear();
    let status = list.get(PseudoHeader::Status).and_then(parse_length);
    response.status = status.and_then(|status| u16::try_from(status).ok()).unwrap_or(0);
    if list.len() > MAX_FIELDS {
        return Err(InvalidResponse("too many fields"));
    }
    let (mut length, mut has_via, mut content_types) = (None, false, 0);
    list.add_to(&mut response.headers, |name, value| {
        if name == b"content-length" {
            let stated = parse_length(value).ok_or(InvalidResponse("the Content-Length"))?;
            if length.replace(stated).is_some_and(|other| other != stated) {
                return Err(InvalidResponse("two lengths"));
            }
            return Ok(false);
        }
        has_via |= name == b"via";
        content_types += usize::from(name == b"content-type");
        Ok(belongs(name, value))
    })?;
    if content_types > 1 {
        keep_last_content_type(&mut response.headers);
    }
    let is_bodyless = to_head || response.status < 200 || matches!(response.status, 204 | 304);
    if is_bodyless
        && response.status >= 200
        && response.status != 204
        && let Some(length) = length
    {
        let mut digits = itoa::Buffer::new();
        response
            .headers
            .append(b"Content-Length", digits.format(length).as_bytes());
    }
    let framing = match (is_bodyless, length) {
        (true, _) => Framing::None,
        (false, Some(length)) => Framing::Length(length),
        (false, None) if is_whole => Framing::Length(0),
        (false, None) => Framing::UntilClose,
    };
    Ok(ResponseHead {
        length: 0,
        framing,
        keep_alive: true,
        upgrade: None,
        has_via,
    })
}
