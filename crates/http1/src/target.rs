//! What a request is for: its method, its target and the host. The same rules for every protocol.

use crate::fields::parse_length;
use std::net::Ipv6Addr;
use weir_plugin::RefusalKind;

/// A refusal of what breaks the rules.
pub fn bad(what: &'static str) -> RefusalKind {
    RefusalKind::BadRequest(what)
}

/// Parses the request target. Returns the authority if the target names one.
#[inline]
pub fn read_target<'t>(
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
            // `Host` decides the destination of the call, but a different authority in the target must be well-formed.
            split_host(&rest[..end]).ok_or_else(|| bad("the request target"))?;
            (Some(&rest[..end]), &rest[end..])
        }
    };
    let kinds = target
        .iter()
        .fold(0, |kinds, byte| kinds | KINDS[usize::from(*byte)]);
    // Bytes beyond ASCII are accepted if they are valid UTF-8.
    if kinds & BAD != 0 || (kinds & BEYOND_ASCII != 0 && std::str::from_utf8(target).is_err()) {
        return Err(bad("the request target"));
    }
    let path = match kinds & DIVIDER {
        0 => path,
        _ => split_query(path, request),
    };
    request.raw_path.extend_from_slice(path);
    if request.raw_path.is_empty() {
        request.raw_path.push(b'/');
    }
    Ok(authority)
}

/// Reads the target of a `CONNECT`, which is a server's name and port (RFC 9112, 3.2.3). Gives both.
#[cold]
pub fn read_connect_target<'t>(
    target: &'t [u8],
    request: &mut weir_plugin::Request,
) -> Result<(&'t [u8], u16), RefusalKind> {
    match split_host(target) {
        Some((_, Some(port))) if port > 0 => {
            request.raw_path.push(b'/');
            Ok((target, port))
        }
        _ => Err(bad("the request target")),
    }
}

/// Splits a target off its query, which becomes the request's.
fn split_query<'t>(path: &'t [u8], request: &mut weir_plugin::Request) -> &'t [u8] {
    // A fragment is no part of a request; the originals drop it, and so the upstream never sees one.
    let path = &path[..memchr::memchr(b'#', path).unwrap_or(path.len())];
    let Some(at) = memchr::memchr(b'?', path) else {
        return path;
    };
    request.set_query(&path[at + 1..]);
    &path[..at]
}

/// What a byte of a target may be.
const BAD: u8 = 1;
const BEYOND_ASCII: u8 = 2;
const DIVIDER: u8 = 4;

/// By byte: its role in a target. One look at each shows what else has to be checked.
const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            0..=0x20 | 0x7f => BAD,
            b'#' | b'?' => DIVIDER,
            0x80.. => BEYOND_ASCII,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    [&b"http://"[..], b"https://"].iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

/// Reads a Host: a name or an address, in lower case and without a trailing dot, and a port.
#[inline]
pub fn read_host(host: &[u8], request: &mut weir_plugin::Request) -> Result<(), RefusalKind> {
    let (name, port) = split_host(host).ok_or_else(|| bad("the Host"))?;
    request.host.extend_from_slice(name);
    request.host.make_ascii_lowercase();
    request.host_port = port;
    Ok(())
}

/// Whether two authorities name the same server, a missing port being the usual one.
#[inline]
pub fn is_same_authority(one: &[u8], other: &[u8]) -> bool {
    let parts =
        |authority| split_host(authority).map(|(name, port)| (name.to_ascii_lowercase(), port.unwrap_or(80)));
    parts(one).is_some_and(|one| Some(one) == parts(other))
}

/// Splits an authority without user information (RFC 3986, 3.2.2) into name, without a trailing dot, and port.
fn split_host(host: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let name_len = match host.first()? {
        b'[' => memchr::memchr(b']', host)? + 1,
        // Names are short.
        _ => host.iter().position(|byte| *byte == b':').unwrap_or(host.len()),
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
        name => is_name(name),
    };
    is_good.then_some((name, port))
}

/// Whether a name is made of what one may hold, without empty labels.
#[inline]
fn is_name(name: &[u8]) -> bool {
    let (mut is_bad, mut was_dot) = (name.is_empty(), false);
    for &byte in name {
        let is_dot = byte == b'.';
        is_bad |= !HOST_CHARACTERS[usize::from(byte)] | (is_dot & was_dot);
        was_dot = is_dot;
    }
    !is_bad
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
