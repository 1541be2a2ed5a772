//! An access log line as JSON text, appended to a buffer without any other allocation.
//!
//! The result is one line whatever a peer's bytes are: no peer can forge a second one.

use super::entry::AccessEntry;
use crate::civil_date::{MAX_TIME_MS, civil_date};
use crate::json::{address, number, socket_address, text_up_to};

/// A text longer than this is cut, which its last character `…` shows.
const MAX_TEXT: usize = 8 * 1024;

/// Appends one line, its line feed included.
pub(super) fn push_line(out: &mut Vec<u8>, entry: &AccessEntry<'_>) {
    out.extend_from_slice(b"{\"time\":\"");
    push_time(out, entry.time_ms);
    out.push(b'"');
    if let Some(client) = entry.client {
        push_key(out, "client");
        address(out, client);
    }
    match entry.protocol {
        None => {
            push_text(out, "method", entry.method);
            push_text(out, "host", entry.host);
            push_text(out, "path", without_query(entry.path));
            push_optional(out, "protocol", entry.version);
            push_number(out, "status", entry.status);
        }
        Some(protocol) => {
            push_text(out, "protocol", protocol.as_bytes());
            push_optional(
                out,
                "server_name",
                Some(entry.host).filter(|name| !name.is_empty()),
            );
        }
    }
    push_number(out, "bytes_in", entry.bytes_in);
    push_number(out, "bytes_out", entry.bytes_out);
    push_number(out, "duration_us", entry.duration_us);
    if let Some(upstream) = entry.upstream {
        push_key(out, "upstream");
        socket_address(out, upstream);
    }
    if let Some(upstream_us) = entry.upstream_us {
        push_number(out, "upstream_us", upstream_us);
    }
    if let Some(status) = entry.upstream_status {
        push_number(out, "upstream_status", status);
    }
    push_optional(out, "route", entry.route);
    push_optional(out, "service", entry.service);
    push_optional(out, "consumer", entry.consumer);
    push_optional(out, "request_id", entry.request_id);
    if entry.retries > 0 {
        push_number(out, "retries", entry.retries);
    }
    push_optional(out, "error", entry.error);
    out.extend_from_slice(b"}\n");
}

fn without_query(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .position(|&b| matches!(b, b'?' | b'#'))
        .unwrap_or(path.len());
    &path[..end]
}

fn push_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn push_number(out: &mut Vec<u8>, key: &str, value: impl itoa::Integer) {
    push_key(out, key);
    number(out, value);
}

fn push_optional<T: AsRef<[u8]> + ?Sized>(out: &mut Vec<u8>, key: &str, text: Option<&T>) {
    if let Some(text) = text {
        push_text(out, key, text.as_ref());
    }
}

fn push_text(out: &mut Vec<u8>, key: &str, text: &[u8]) {
    push_key(out, key);
    text_up_to(out, text, MAX_TEXT);
}

/// RFC 3339 in UTC with milliseconds, such as `2026-01-31T23:59:59.999Z`.
fn push_time(out: &mut Vec<u8>, unix_ms: u64) {
    let unix_ms = unix_ms.min(MAX_TIME_MS);
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = civil_date(days);
    push_digits(out, year, 4);
    for (before, number) in [
        (b'-', month),
        (b'-', day),
        (b'T', ms / 3_600_000),
        (b':', ms / 60_000 % 60),
        (b':', ms / 1_000 % 60),
    ] {
        out.push(before);
        push_digits(out, number, 2);
    }
    out.push(b'.');
    push_digits(out, ms % 1_000, 3);
    out.push(b'Z');
}

fn push_digits(out: &mut Vec<u8>, number: u64, width: u32) {
    out.extend(
        (0..width)
            .rev()
            .map(|place| b'0' + (number / 10_u64.pow(place) % 10) as u8),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, SocketAddr};

    fn line(entry: &AccessEntry<'_>) -> String {
        let mut out = Vec::new();
        push_line(&mut out, entry);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn time_is_rfc_3339() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_704_067_199_001, "2023-12-31T23:59:59.001Z"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (MAX_TIME_MS, "9999-12-31T23:59:59.999Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ];
        for (unix_ms, expected) in cases {
            let mut out = Vec::new();
            push_time(&mut out, unix_ms);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn a_full_line_is_golden() {
        let entry = AccessEntry {
            time_ms: 1_709_210_096_789,
            client: Some(IpAddr::from([192, 0, 2, 7])),
            method: b"GET",
            host: b"api.example",
            path: b"/v1/things",
            version: Some("HTTP/3.0"),
            status: 200,
            bytes_in: 123,
            bytes_out: 4_567,
            duration_us: 1_890,
            upstream: Some(SocketAddr::from(([10, 0, 0, 5], 8080))),
            upstream_us: Some(1_850),
            upstream_status: Some(200),
            route: Some("things"),
            service: Some("inventory"),
            consumer: Some("alice"),
            request_id: Some(b"7f3c"),
            retries: 1,
            error: Some("upstream_timeout"),
            protocol: None,
        };
        assert_eq!(
            line(&entry),
            concat!(
                r#"{"time":"2024-02-29T12:34:56.789Z","client":"192.0.2.7","method":"GET","host":"api.example","#,
                r#""path":"/v1/things","protocol":"HTTP/3.0","status":200,"bytes_in":123,"bytes_out":4567,"#,
                r#""duration_us":1890,"#,
                r#""upstream":"10.0.0.5:8080","upstream_us":1850,"upstream_status":200,"route":"things","#,
                r#""service":"inventory","consumer":"alice","request_id":"7f3c","retries":1,"#,
                r#""error":"upstream_timeout"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn sessions_below_http_have_lines_of_their_own() {
        let entry = AccessEntry {
            client: Some(IpAddr::from([192, 0, 2, 7])),
            host: b"db.example",
            bytes_in: 1,
            bytes_out: 2,
            duration_us: 3,
            route: Some("database"),
            protocol: Some("tls-passthrough"),
            ..AccessEntry::default()
        };
        assert_eq!(
            line(&entry),
            concat!(
                r#"{"time":"1970-01-01T00:00:00.000Z","client":"192.0.2.7","protocol":"tls-passthrough","#,
                r#""server_name":"db.example","bytes_in":1,"bytes_out":2,"duration_us":3,"route":"database"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn what_does_not_apply_is_left_out() {
        assert_eq!(
            line(&AccessEntry {
                client: Some(IpAddr::from(std::net::Ipv6Addr::LOCALHOST)),
                ..AccessEntry::default()
            }),
            concat!(
                r#"{"time":"1970-01-01T00:00:00.000Z","client":"::1","method":"","host":"","path":"","#,
                r#""status":0,"bytes_in":0,"bytes_out":0,"duration_us":0}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_query_never_reaches_the_log() {
        for path in [&b"/p?key=secret"[..], b"/p?", b"/p#secret", b"/p??secret"] {
            let text = line(&AccessEntry {
                path,
                ..AccessEntry::default()
            });
            assert!(text.contains(r#""path":"/p","#), "{text}");
        }
    }

    #[test]
    fn every_line_is_one_json_object_of_bounded_size() {
        let every_byte: Vec<u8> = (0..=u8::MAX).cycle().take(100_000).collect();
        let entry = AccessEntry {
            method: &every_byte,
            host: &every_byte,
            request_id: Some(&every_byte),
            ..AccessEntry::default()
        };
        let text = line(&entry);
        assert_eq!(text.find('\n'), Some(text.len() - 1));
        assert!(text.len() < 3 * 6 * MAX_TEXT + 512);
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(parsed["host"].as_str().unwrap().ends_with('…'));
    }
}
