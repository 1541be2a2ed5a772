//! What the gateway must know of gRPC: which calls are gRPC, until when they are wanted, and what a status means
//! in answers of the gateway itself.

use crate::multiplex::fields::StreamRequest;
use crate::multiplex::stream::Stream;
use std::io;
use std::time::Duration;
use weir_http1::status;
use weir_plugin::{Exchange, Headers};

/// `DEADLINE_EXCEEDED`.
const DEADLINE_EXCEEDED: u16 = 4;

/// Whether a call is gRPC: over HTTP/2 or HTTP/3, with messages of any coding.
pub fn is_call(exchange: &Exchange) -> bool {
    let request = &exchange.request;
    request.version >= (2, 0) && request.headers.get(b"content-type").is_some_and(is_grpc)
}

fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type
        .get(..16)
        .filter(|start| start.eq_ignore_ascii_case(b"application/grpc"))
        .map(|_| &content_type[16..]);
    // Not gRPC-Web, which is another protocol.
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// How long the client of a gRPC call waits for it, if it says so (`grpc-timeout`).
pub fn deadline(asked: &StreamRequest) -> Option<Duration> {
    let timeout = asked.get(b"grpc-timeout")?;
    let is_grpc = asked.get(b"content-type").is_some_and(is_grpc);
    is_grpc.then(|| parse_timeout(timeout)).flatten()
}

/// Reads a `grpc-timeout`: at most eight digits and a unit.
fn parse_timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    let count = weir_http1::fields::parse_length(digits).filter(|_| digits.len() <= 8)?;
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Reads a `grpc-status`.
pub fn read_status(text: &[u8]) -> Option<u16> {
    let code = weir_http1::fields::parse_length(text)?;
    u16::try_from(code).ok()
}

/// The gRPC status that stands for an answer of the gateway's own.
pub fn status_of(http: u16) -> u16 {
    match http {
        200..=299 => 0,
        // INVALID_ARGUMENT
        400 => 3,
        // UNAUTHENTICATED
        401 => 16,
        // PERMISSION_DENIED
        403 => 7,
        // UNIMPLEMENTED: there is no such service here.
        404 | 405 | 501 => 12,
        408 | 504 => DEADLINE_EXCEEDED,
        // ALREADY_EXISTS
        409 => 6,
        // RESOURCE_EXHAUSTED
        413 | 414 | 429 | 431 => 8,
        // CANCELLED
        499 => 1,
        // INTERNAL
        500 => 13,
        // UNAVAILABLE
        502 | 503 => 14,
        // UNKNOWN
        _ => 2,
    }
}

/// Turns the head of an answer that is no success into one that ends a gRPC call, which has no body. Returns whether it
/// did.
pub fn end_call(http: u16, headers: &mut Headers) -> bool {
    if http < 300 || headers.contains(b"grpc-status") {
        return false;
    }
    headers.remove(b"content-type");
    headers.remove(b"content-length");
    headers.append(b"Content-Type", b"application/grpc");
    let mut digits = itoa::Buffer::new();
    headers.append(b"grpc-status", digits.format(status_of(http)).as_bytes());
    headers.append(b"grpc-message", status::reason(http).as_bytes());
    true
}

/// Ends a gRPC call whose time is over.
pub fn send_late(stream: &Stream) -> io::Result<()> {
    if stream.is_unanswered() {
        let lines =
            b"content-type: application/grpc\r\ngrpc-status: 4\r\ngrpc-message: Deadline exceeded\r\n";
        return stream.send_head(200, lines, true);
    }
    stream.end(b"grpc-status: 4\r\ngrpc-message: Deadline exceeded\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_specified() {
        for (text, millis) in [
            ("1H", Some(3_600_000)),
            ("2M", Some(120_000)),
            ("3S", Some(3_000)),
            ("100m", Some(100)),
            ("5000u", Some(5)),
            ("7000000n", Some(7)),
            ("99999999H", Some(99_999_999 * 3_600_000)),
            ("123456789S", None),
            ("S", None),
            ("", None),
            ("5", None),
            ("-5S", None),
            ("5s", None),
        ] {
            let read = parse_timeout(text.as_bytes()).map(|time| time.as_millis());
            assert_eq!(read, millis, "{text}");
        }
    }

    #[test]
    fn grpc_is_recognised_by_media_type() {
        for (content_type, wanted) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("Application/gRPC; x=y", true),
            ("application/grpc-other", false),
            ("application/grp", false),
            ("application/json", false),
        ] {
            assert_eq!(is_grpc(content_type.as_bytes()), wanted, "{content_type}");
        }
    }
}
