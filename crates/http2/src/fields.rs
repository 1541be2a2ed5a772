//! Single fields of HTTP/2 and HTTP/3: which may stand in a message, and trailers as header lines.

use weir_http1::MAX_FIELDS;
use weir_http1::fields::{may_trail, push_header};

/// Whether a field may stand in a message of HTTP/2 or HTTP/3 (RFC 9113, 8.2.2; RFC 9114, 4.2).
#[inline]
pub fn belongs(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"te" => value == b"trailers",
        b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive" | b"proxy-connection"
        | b"http2-settings" => false,
        _ => true,
    }
}

/// Makes header lines of a trailer section, without the fields that must not stand there (RFC 9110, 6.5.1).
pub fn trailer_lines<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in fields.take(MAX_FIELDS) {
        if may_trail(name) {
            push_header(&mut lines, name, value);
        }
    }
    lines
}
