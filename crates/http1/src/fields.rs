//! Header fields by themselves: writing a line, lengths, lists, and which fields belong to one hop or may trail a body.

use weir_plugin::Headers;

/// Writes one header line.
#[inline]
pub fn push_header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Reads a `Content-Length`: digits only (RFC 9112, 6.2).
#[inline]
pub fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 {
        return None;
    }
    value.iter().try_fold(0u64, |length, byte| {
        byte.is_ascii_digit()
            .then(|| length * 10 + u64::from(byte - b'0'))
    })
}

/// The elements of a comma-separated list, without white space.
#[inline]
pub(crate) fn list_items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|item| !item.is_empty())
}

/// Whether a field may stand behind a body: not one by which the message is framed, routed or authenticated.
pub fn may_trail(name: &[u8]) -> bool {
    let forbidden: [&[u8]; 13] = [
        b"host",
        b"te",
        b"trailer",
        b"upgrade",
        b"connection",
        b"keep-alive",
        b"content-length",
        b"content-encoding",
        b"content-type",
        b"transfer-encoding",
        b"authorization",
        b"proxy-connection",
        b"cookie",
    ];
    !forbidden.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Takes out what filters may have set of the headers by which a message is framed and its connection kept: those
/// are the gateway's own, made again for each hop.
pub fn forget_framing(headers: &mut Headers) {
    headers.remove_any([
        b"expect",
        b"upgrade",
        b"connection",
        b"keep-alive",
        b"content-length",
        b"http2-settings",
        b"proxy-connection",
        b"transfer-encoding",
    ]);
}

/// Keeps the last `Content-Type` of several, as NGINX does: what a filter, a cache and a client take the body for is one
/// thing then.
pub fn keep_last_content_type(headers: &mut Headers) {
    const NAME: &[u8] = b"Content-Type";
    if let Some(last) = headers.get_all(NAME).last().map(<[u8]>::to_vec) {
        headers.set(NAME, &last);
    }
}

/// Whether a name is that of a header that frames a message, but with `_` for `-`. Servers that take them for one might
/// find another end of the body than the gateway does.
#[inline]
pub fn is_framing_with_underscore(name: &[u8]) -> bool {
    matches!(name.len(), 14 | 17)
        && name.contains(&b'_')
        && (is_alike(name, b"content-length") || is_alike(name, b"transfer-encoding"))
}

/// Whether a header describes the client, as those do that the gateway sets itself; also with `_` for `-`, which are one
/// for conditions.
#[inline]
pub fn is_forwarded(name: &[u8]) -> bool {
    // Few names begin like this.
    matches!(name, [b'x' | b'X', b'-' | b'_', b'f' | b'F' | b'r' | b'R', ..])
        && (name
            .get(..12)
            .is_some_and(|start| is_alike(start, b"x-forwarded-"))
            || is_alike(name, b"x-real-ip"))
}

/// Whether a name is this one, which is in lower case, or has `_` where it has `-`.
fn is_alike(name: &[u8], lower: &[u8]) -> bool {
    let fold = |byte: u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    name.len() == lower.len() && name.iter().zip(lower).all(|(byte, known)| fold(*byte) == *known)
}
