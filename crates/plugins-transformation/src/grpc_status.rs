//! gRPC's statuses: in fields of a message, and what they are in HTTP.

use weir_plugin::Headers;
use weir_plugin::uri::unescape;

/// `UNKNOWN`: also used if there is no status.
pub(crate) const UNKNOWN: u16 = 2;
/// `INTERNAL`.
pub(crate) const INTERNAL: u16 = 13;

/// How a call of gRPC ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrpcStatus {
    /// `grpc-status`.
    pub code: u16,
    /// `grpc-message`, decoded.
    pub message: String,
    /// `grpc-status-details-bin`, in its Base64.
    pub details: Option<Vec<u8>>,
}

impl GrpcStatus {
    /// The status in these fields; `None` if they have none.
    pub(crate) fn read(fields: &Headers) -> Option<Self> {
        let code = fields.get(b"grpc-status")?;
        let code = std::str::from_utf8(code)
            .ok()
            .and_then(|it| it.trim().parse().ok());
        let message = unescape(fields.get(b"grpc-message").unwrap_or_default());
        Some(Self {
            code: code.unwrap_or(UNKNOWN),
            message: String::from_utf8_lossy(&message).into_owned(),
            details: fields.get(b"grpc-status-details-bin").map(<[u8]>::to_vec),
        })
    }

    /// An end without a status.
    pub(crate) fn new(code: u16, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            details: None,
        }
    }
}

/// The HTTP status for a gRPC status; `None` if the code is not a known one.
pub(crate) fn to_http(code: u16) -> Option<u16> {
    Some(match code {
        0 => 200,
        // CANCELLED
        1 => 499,
        // UNKNOWN, INTERNAL, DATA_LOSS
        2 | 13 | 15 => 500,
        // INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE
        3 | 9 | 11 => 400,
        // DEADLINE_EXCEEDED
        4 => 504,
        // NOT_FOUND
        5 => 404,
        // ALREADY_EXISTS, ABORTED
        6 | 10 => 409,
        // PERMISSION_DENIED
        7 => 403,
        // RESOURCE_EXHAUSTED
        8 => 429,
        // UNIMPLEMENTED
        12 => 501,
        // UNAVAILABLE
        14 => 503,
        // UNAUTHENTICATED
        16 => 401,
        _ => return None,
    })
}

/// The gRPC status for a response of the gateway itself, which the engine sends to gRPC clients.
pub(crate) fn of_http(status: u16) -> u16 {
    match status {
        200..=299 => 0,
        400 => 3,
        401 => 16,
        403 => 7,
        404 | 405 | 501 => 12,
        408 | 504 => 4,
        409 => 6,
        413 | 414 | 429 | 431 => 8,
        499 => 1,
        500 => INTERNAL,
        502 | 503 => 14,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_read() {
        for (fields, expected) in [
            (&[][..], None),
            (&[("grpc-status", "0")], Some((0, ""))),
            (
                &[("grpc-status", "5"), ("grpc-message", "no%20such%3A %C3%A9%")],
                Some((5, "no such: é%")),
            ),
            (&[("grpc-status", "x")], Some((2, ""))),
            (&[("grpc-status", "99999")], Some((2, ""))),
        ] {
            let mut headers = Headers::default();
            for (name, value) in fields {
                headers.append(name.as_bytes(), value.as_bytes());
            }
            let found = GrpcStatus::read(&headers);
            let found = found.as_ref().map(|ended| (ended.code, ended.message.as_str()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn statuses_have_counterparts() {
        for code in 0..=16 {
            let http = to_http(code).expect("known");
            assert!((200..=504).contains(&http));
        }
        assert_eq!(to_http(17), None);
        for (http, code) in [(204, 0), (404, 12), (429, 8), (418, 2), (502, 14)] {
            assert_eq!(of_http(http), code);
        }
    }
}
