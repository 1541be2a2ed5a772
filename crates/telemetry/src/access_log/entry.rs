//! The fields of the access log for one request.

use std::net::{IpAddr, SocketAddr};

/// One request, as the log reports it. Fields that do not apply are left out of the line.
///
/// Fields that the client chose are bytes: they are escaped, stripped of what is not UTF-8, and cut when
/// longer than 8 KiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessEntry<'a> {
    /// When the request began, in Unix milliseconds; `time`, in RFC 3339 UTC.
    pub time_ms: u64,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// Request method.
    pub method: &'a [u8],
    /// The requested host.
    pub host: &'a [u8],
    /// The request's path. A query is cut off: it may carry secrets.
    pub path: &'a [u8],
    /// The version of HTTP, as in `HTTP/1.1`; written as `protocol`.
    pub version: Option<&'a str>,
    /// Status sent to the client; 0 when none was sent.
    pub status: u16,
    /// Bytes received from the client for this request.
    pub bytes_in: u64,
    /// Bytes sent to the client for this request.
    pub bytes_out: u64,
    /// From when the request's head is read to the response's last byte, in microseconds.
    pub duration_us: u64,
    /// Address of the upstream target that was called last.
    pub upstream: Option<SocketAddr>,
    /// Time spent on upstreams, in microseconds.
    pub upstream_us: Option<u64>,
    /// Status that the upstream answered with.
    pub upstream_status: Option<u16>,
    /// Name of the route that took the request.
    pub route: Option<&'a str>,
    /// Name of that route's service.
    pub service: Option<&'a str>,
    /// Name of the authenticated consumer.
    pub consumer: Option<&'a str>,
    /// The request's id, its own or given by the gateway.
    pub request_id: Option<&'a [u8]>,
    /// Upstream calls beyond the first; 0 is left out.
    pub retries: u32,
    /// What kind of error ended the request.
    pub error: Option<&'a str>,
    /// The protocol of a session below HTTP. Its line has no `method`, `host`, `path` and `status`; the server name
    /// that its client requested is in `host`, and written as `server_name`.
    pub protocol: Option<&'a str>,
}
