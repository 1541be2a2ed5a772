//! A probe by gRPC's own health service: `grpc.health.v1.Health/Check`.

use crate::grpc;
use crate::halves::{ReadHalf, WriteHalf};
use bytes::{BufMut, Bytes, BytesMut};
use h2::client;
use http::{HeaderMap, Method, Request, Version};
use std::io;
use weir_flow::health::Signal;
use weir_model::ActiveChecks;

/// Most bytes of an answer; a good one has seven.
const MAX_ANSWER: usize = 4 * 1024;
/// Most bytes of its head.
const MAX_HEAD: u32 = 16 * 1024;
/// `UNIMPLEMENTED`.
const UNIMPLEMENTED: u16 = 12;
/// `SERVING`.
const SERVING: u64 = 1;

/// Asks on a connection of its own. A server that has no such service is healthy, as it answers.
///
/// # Errors
/// If the connection fails.
pub(super) async fn ask(
    halves: (ReadHalf, WriteHalf),
    active: &ActiveChecks,
    scheme: &str,
    host: &[u8],
) -> io::Result<Signal> {
    let (read, write) = halves;
    let stream = tokio::io::join(read, write);
    let mut builder = client::Builder::new();
    builder.enable_push(false).max_header_list_size(MAX_HEAD);
    let (sender, connection) = builder.handshake(stream).await.map_err(broken)?;
    let call = call(sender, active, scheme, host);
    tokio::select! {
        answered = call => answered,
        ended = connection => Err(ended.err().map_or(io::ErrorKind::UnexpectedEof.into(), broken)),
    }
}

async fn call(
    sender: client::SendRequest<Bytes>,
    active: &ActiveChecks,
    scheme: &str,
    host: &[u8],
) -> io::Result<Signal> {
    let mut sender = sender.ready().await.map_err(broken)?;
    let request = request(active, scheme, host).ok_or(io::ErrorKind::InvalidInput)?;
    let (response, mut stream) = sender.send_request(request, false).map_err(broken)?;
    stream.send_data(message(&active.service), true).map_err(broken)?;
    let (head, mut body) = response.await.map_err(broken)?.into_parts();
    let mut answer = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data.map_err(broken)?;
        if answer.len() + data.len() > MAX_ANSWER {
            return Ok(Signal::HttpFailure);
        }
        answer.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len()).map_err(broken)?;
    }
    let trailers = body.trailers().await.map_err(broken)?;
    let status = status_in(&head.headers).or_else(|| trailers.as_ref().and_then(status_in));
    Ok(match (head.status.as_u16(), status) {
        (200, Some(UNIMPLEMENTED)) => Signal::Success,
        (200, Some(0)) if serving_status(&answer) == Some(SERVING) => Signal::Success,
        _ => Signal::HttpFailure,
    })
}

fn broken(error: h2::Error) -> io::Error {
    match error.is_io() {
        true => io::ErrorKind::BrokenPipe.into(),
        // What answers there does not speak HTTP/2, or does not want to.
        false => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

fn request(active: &ActiveChecks, scheme: &str, host: &[u8]) -> Option<Request<()>> {
    let host = active.host.as_deref().map_or(host, str::as_bytes);
    let uri = http::Uri::builder()
        .scheme(scheme)
        .authority(host)
        .path_and_query("/grpc.health.v1.Health/Check");
    let mut request = Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(uri.build().ok()?)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", format!("{}m", active.timeout_ms.min(99_999_999)));
    let is_own = |name: &str| {
        active
            .headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    if !is_own("user-agent") {
        request = request.header("user-agent", "weir-health-check");
    }
    for (name, value) in &active.headers {
        if !name.eq_ignore_ascii_case("host") {
            request = request.header(name, value);
        }
    }
    request.body(()).ok()
}

/// `HealthCheckRequest`: the service's name, in its field 1.
fn message(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(0x0a);
        let mut length = service.len();
        while length > 0x7f {
            message.put_u8(length as u8 | 0x80);
            length >>= 7;
        }
        message.put_u8(length as u8);
        message.extend_from_slice(service.as_bytes());
    }
    let mut framed = BytesMut::with_capacity(message.len() + 5);
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.extend_from_slice(&message);
    framed.freeze()
}

/// The status of `HealthCheckResponse`, in its field 1; 0 if it is left out.
fn serving_status(answer: &[u8]) -> Option<u64> {
    let (prefix, message) = answer.split_at_checked(5)?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
    if prefix[0] != 0 || message.len() != length {
        return None;
    }
    let Some((tag, value)) = message.split_first() else {
        return Some(0);
    };
    let mut status = 0;
    for (place, byte) in value.iter().take(9).enumerate() {
        status |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return (*tag == 0x08).then_some(status);
        }
    }
    None
}

fn status_in(fields: &HeaderMap) -> Option<u16> {
    grpc::read_status(fields.get("grpc-status")?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        for (answer, expected) in [
            (&b"\0\0\0\0\x02\x08\x01"[..], Some(1)),
            (b"\0\0\0\0\x02\x08\x02", Some(2)),
            (b"\0\0\0\0\0", Some(0)),
            (b"\0\0\0\0\x04\x08\x01\x12\0", Some(1)),
            (b"\x01\0\0\0\x02\x08\x01", None),
            (b"\0\0\0\0\x03\x08\x01", None),
            (b"\0\0\0\0\x02\x10\x01", None),
            (b"\0\0\0\0\x03\x08\xff\xff", None),
            (b"\0\0", None),
            (b"", None),
        ] {
            assert_eq!(serving_status(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn messages_name_the_service() {
        assert_eq!(message("")[..], *b"\0\0\0\0\0");
        assert_eq!(message("a.B")[..], *b"\0\0\0\0\x05\x0a\x03a.B");
        let long = message(&"x".repeat(300));
        assert_eq!(long[..8], *b"\0\0\0\x01\x2f\x0a\xac\x02");
    }

    #[test]
    fn requests_are_as_configured() {
        let active = ActiveChecks {
            host: Some("h.test".into()),
            headers: vec![("User-Agent".into(), "mine".into()), ("Host".into(), "no".into())],
            timeout_ms: 250,
            ..ActiveChecks::default()
        };
        let request = request(&active, "http", b"t:8").expect("a request");
        assert_eq!(request.uri(), "http://h.test/grpc.health.v1.Health/Check");
        let fields = request.headers();
        assert_eq!(fields["grpc-timeout"], "250m");
        assert_eq!(
            (fields["user-agent"].to_str().ok(), fields.contains_key("host")),
            (Some("mine"), false)
        );
    }
}
