//! Bodies of requests and answers: sizes, framing, and what a length must be.

use super::client::{Protocol, read_response};
use super::stand::over_all;
use super::support::answer;

const SIZES: [usize; 7] = [1, 1000, 16_384, 16_385, 70_000, 300_000, 3_000_000];

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index % 251) as u8).collect()
}

#[test]
fn bodies_pass_whole() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        let seen = stand.upstream.serve(|request| answer(&request.body));
        for size in SIZES {
            let body = pattern(size);
            let length = size.to_string();
            for fields in [&[("content-length", length.as_str())][..], &[]] {
                let response = client.call("POST", "/", fields, &body).unwrap();
                assert_eq!(response.head.status, 200, "{protocol:?} {size}");
                assert_eq!(
                    response.get("content-length"),
                    Some(length.clone()),
                    "{protocol:?} {size}"
                );
                assert!(response.body == body, "{protocol:?} {size} {fields:?}");
                let request = seen.lock().unwrap().pop().unwrap();
                assert!(request.body == body, "{protocol:?} {size}");
                let stated = request.head.get("Content-Length");
                if !fields.is_empty() {
                    assert_eq!(stated, Some(length.clone()), "{protocol:?} {size}");
                }
            }
        }
    });
}

#[test]
fn bodies_without_a_length_pass() {
    over_all(|protocol, stand| {
        let client = stand.client(protocol);
        stand.upstream.serve(|request| {
            let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for piece in request.body.chunks(1777) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            bytes
        });
        for size in SIZES {
            let body = pattern(size);
            let mut call = client.begin("PUT", "/", &[], true).unwrap();
            for piece in body.chunks(10_000) {
                call.send(piece).unwrap();
            }
            call.finish(&[]);
            let response = read_response(call.as_mut()).unwrap();
            assert!(response.body == body, "{protocol:?} {size}");
        }
    });
}

#[test]
fn a_body_is_as_long_as_was_stated() {
    for (protocol, length, body) in [
        (Protocol::Http2, "4", "hello"),
        (Protocol::Http2, "6", "hello"),
        (Protocol::Http2Tls, "4", "hello"),
        (Protocol::Http3, "4", "hello"),
        (Protocol::Http3, "6", "hello"),
        // Too large to be taken in at once.
        (Protocol::Http3, "100001", ""),
        (Protocol::Http3, "99999", ""),
    ] {
        let stand = super::stand::Stand::new();
        let client = stand.client(protocol);
        let seen = stand.upstream.serve(|request| answer(&request.body));
        let long = pattern(100_000);
        let body = if body.is_empty() {
            long.as_slice()
        } else {
            body.as_bytes()
        };
        let response = client.call("POST", "/", &[("content-length", length)], body);
        assert!(
            !matches!(&response, Ok(response) if response.head.status < 400),
            "{protocol:?} {length}: {response:?}"
        );
        assert!(seen.lock().unwrap().is_empty(), "{protocol:?} {length}");
    }
}
