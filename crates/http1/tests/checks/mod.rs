//! What must hold of all that the parsers accept: for the fuzz targets, and for the tests that feed them their seeds. The
//! functions panic if it does not.
//!
//! The heart is that an accepted message, written again from what was understood of it, must be understood in
//! the same way: else the gateway and the next hop could disagree about what was sent.

use weir_http1::chunked::{LAST_CHUNK, decode_all, write_size_line};
use weir_http1::fields::push_header;
use weir_http1::request::{self, Parsed, RequestHead, RequestHeads};
use weir_http1::response::{self, ResponseHead, ResponseHeads};
use weir_http1::{Framing, HeadSlot, MAX_FIELDS, status};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{Exchange, Headers, Response};

/// Fields that belong to one connection and must not pass.
const HOP_BY_HOP: [&[u8]; 5] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
];

fn parse_request(bytes: &[u8]) -> Option<(RequestHead, Exchange)> {
    let mut exchange = Exchange::new(|| 0, 1);
    match request::parse(bytes, &mut exchange) {
        Ok(Parsed::Head(head)) => Some((head, exchange)),
        Ok(Parsed::Partial) | Err(_) => None,
    }
}

/// Reads a head that comes again as what was read of it first.
fn known_request(bytes: &[u8], head: &RequestHead, first: &Exchange) {
    let (mut heads, mut place) = (RequestHeads::default(), HeadSlot::default());
    for _ in 0..4 {
        let mut exchange = Exchange::new(|| 0, 1);
        let parsed = request::parse_known(bytes, &mut exchange, &mut heads, &mut place);
        assert_eq!(parsed, Ok(Parsed::Head(head.clone())));
        assert_eq!(
            format!("{:?}", exchange.request),
            format!("{:?}", first.request),
            "known"
        );
    }
}

/// Reads `bytes` as a request head.
///
/// # Panics
/// When what was accepted means something else once it is written again.
pub fn request_head(bytes: &[u8]) {
    let Some((head, exchange)) = parse_request(bytes) else {
        return;
    };
    assert_eq!(
        parse_request(&bytes[..head.length]).map(|it| it.0).as_ref(),
        Some(&head),
        "what follows was looked at"
    );
    assert!(
        parse_request(&bytes[..head.length - 1]).is_none(),
        "an incomplete head was accepted"
    );
    known_request(bytes, &head, &exchange);
    let request = &exchange.request;
    check_fields(&request.headers);
    let is_clean = |byte: &u8| *byte > 0x20 && *byte != 0x7f;
    assert!(
        is_name(&request.method)
            && request
                .raw_path
                .iter()
                .chain(request.query.iter().flatten())
                .all(is_clean)
    );
    assert!(request.raw_path.starts_with(b"/") || request.raw_path == b"*");
    assert!(
        !request
            .host
            .iter()
            .any(|byte| !is_clean(byte) || b"/\\@?#".contains(byte) || byte.is_ascii_uppercase())
    );

    let (mut again, second) = match parse_request(&write_request(&head, &exchange)) {
        Some(it) => it,
        None if request.headers.len() + 4 > MAX_FIELDS => return,
        None => panic!(
            "not understood: {}",
            write_request(&head, &exchange).escape_ascii()
        ),
    };
    again.length = head.length;
    assert_eq!(again, head);
    let second = &second.request;
    assert_eq!(
        (&second.method, &second.raw_path, &second.query),
        (&request.method, &request.raw_path, &request.query)
    );
    assert_eq!(
        (&second.host, second.host_port),
        (&request.host, request.host_port)
    );
    let without_host = |headers: &Headers| -> Vec<(Vec<u8>, Vec<u8>)> {
        let fields = headers
            .iter()
            .filter(|header| !header.name.eq_ignore_ascii_case(b"host"));
        fields
            .map(|header| (header.name.to_vec(), header.value.to_vec()))
            .collect()
    };
    assert_eq!(without_host(&second.headers), without_host(&request.headers));
}

fn write_request(head: &RequestHead, exchange: &Exchange) -> Vec<u8> {
    let request = &exchange.request;
    let mut out = [&request.method[..], b" ", &request.raw_path].concat();
    if let Some(query) = &request.query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    out.extend_from_slice(if head.minor_version == 0 {
        b" HTTP/1.0\r\n"
    } else {
        b" HTTP/1.1\r\n"
    });
    if !request.host.is_empty() && !request.headers.contains(b"host") {
        let port = request.host_port.map_or(String::new(), |port| format!(":{port}"));
        push_header(&mut out, b"Host", &[&request.host[..], port.as_bytes()].concat());
    }
    request.headers.write_lines(&mut out);
    write_framing(head.framing, &mut out);
    push_header(
        &mut out,
        b"Connection",
        if head.keep_alive { b"keep-alive" } else { b"close" },
    );
    if let Some(protocol) = &head.upgrade {
        push_header(&mut out, b"Connection", b"upgrade");
        push_header(&mut out, b"Upgrade", protocol);
    }
    if head.expects_continue {
        push_header(&mut out, b"Expect", b"100-continue");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Reads `bytes` as a response head, to a HEAD and to a GET.
///
/// # Panics
/// When what was accepted means something else once it is written again.
pub fn response_head(bytes: &[u8]) {
    for to_head in [false, true] {
        let mut response = Response::default();
        let Ok(Some(head)) = response::parse(bytes, to_head, &mut response) else {
            continue;
        };
        let mut other = Response::default();
        assert_eq!(
            response::parse(&bytes[..head.length], to_head, &mut other),
            Ok(Some(head.clone()))
        );
        assert_eq!(
            response::parse(&bytes[..head.length - 1], to_head, &mut other),
            Ok(None)
        );
        let (mut heads, mut place) = (ResponseHeads::default(), HeadSlot::default());
        for _ in 0..4 {
            let mut again = Response::default();
            let parsed = response::parse_known(bytes, to_head, &mut again, &mut heads, &mut place);
            assert_eq!(parsed, Ok(Some(head.clone())));
            assert_eq!(format!("{again:?}"), format!("{response:?}"), "known");
        }
        check_fields(&response.headers);
        assert!((100..1000).contains(&response.status) && is_value(&response.reason));
        if to_head || response.status < 200 || matches!(response.status, 204 | 304) {
            assert_eq!(head.framing, Framing::None);
        }

        let written = write_response(&head, &response);
        let mut second = Response::default();
        let again = match response::parse(&written, to_head, &mut second) {
            Ok(Some(again)) => again,
            _ if response.headers.len() + 3 > MAX_FIELDS => continue,
            other => panic!("{other:?} for {}", written.escape_ascii()),
        };
        assert_eq!(
            (again.framing, again.keep_alive, again.upgrade),
            (head.framing, head.keep_alive, head.upgrade)
        );
        assert_eq!(
            (second.status, &second.reason),
            (response.status, &response.reason)
        );
        let fields = |headers: &Headers| -> Vec<(Vec<u8>, Vec<u8>)> {
            headers
                .iter()
                .map(|header| (header.name.to_vec(), header.value.to_vec()))
                .collect()
        };
        assert_eq!(fields(&second.headers), fields(&response.headers));
    }
}

/// Checks what a client hears that has made one call: nothing, or interim heads and one answer whose framing is right as far
/// as it goes.
///
/// # Panics
/// Where that does not hold.
pub fn http1_answer(mut heard: &[u8], to_head: bool) {
    while !heard.is_empty() {
        let mut response = Response::default();
        let parsed = response::parse(heard, to_head, &mut response);
        let Ok(Some(head)) = parsed else {
            panic!("{parsed:?} for {}", heard.escape_ascii());
        };
        check_fields(&response.headers);
        heard = &heard[head.length..];
        if (100..200).contains(&response.status) && response.status != 101 {
            assert!(!heard.is_empty(), "no answer behind an interim one");
            continue;
        }
        match head.framing {
            Framing::None if response.status == 101 => {}
            Framing::None => assert!(heard.is_empty(), "a body where there is none"),
            Framing::Length(length) => assert!(heard.len() as u64 <= length, "too long a body"),
            Framing::Chunked => assert!(decode_all(&[heard]).is_ok(), "{}", heard.escape_ascii()),
            Framing::UntilClose => {}
        }
        return;
    }
}

fn write_response(head: &ResponseHead, response: &Response) -> Vec<u8> {
    let mut out = Vec::new();
    status::write_line(response.status, &response.reason, 1, &mut out);
    response.headers.write_lines(&mut out);
    write_framing(head.framing, &mut out);
    if !head.keep_alive {
        push_header(&mut out, b"Connection", b"close");
    }
    if let Some(protocol) = &head.upgrade {
        push_header(&mut out, b"Upgrade", protocol);
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn write_framing(framing: Framing, out: &mut Vec<u8>) {
    match framing {
        Framing::Length(length) => push_header(out, b"Content-Length", length.to_string().as_bytes()),
        Framing::Chunked => push_header(out, b"Transfer-Encoding", b"chunked"),
        Framing::None | Framing::UntilClose => {}
    }
}

/// What is passed on must be one line for each field, none of which belongs to this connection.
fn check_fields(headers: &Headers) {
    let mut lines = Vec::new();
    headers.write_lines(&mut lines);
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), headers.len());
    assert_eq!(lines.iter().filter(|byte| **byte == b'\r').count(), headers.len());
    for header in headers.iter() {
        assert!(is_name(header.name) && is_value(header.value));
        assert_eq!(
            header.value,
            header.value.trim_ascii(),
            "white space is part of a value"
        );
        assert!(
            !HOP_BY_HOP
                .iter()
                .any(|name| header.name.eq_ignore_ascii_case(name))
        );
    }
}

/// Reads `bytes` as a chunked body that arrives in two parts.
///
/// # Panics
/// Panics if the place of the cut matters, or if the data, framed again, differ.
pub fn chunked_body(bytes: &[u8], split: usize) {
    let split = split.min(bytes.len());
    let whole = decode_all(&[bytes]);
    assert_eq!(whole, decode_all(&[&bytes[..split], &bytes[split..]]));
    let one_by_one: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(whole, decode_all(&one_by_one));
    let Ok((data, _)) = whole else { return };
    let mut written = Vec::new();
    for chunk in [&data[..split.min(data.len())], &data[split.min(data.len())..]] {
        if !chunk.is_empty() {
            write_size_line(chunk.len(), &mut written);
            written.extend_from_slice(chunk);
            written.extend_from_slice(b"\r\n");
        }
    }
    written.extend_from_slice(LAST_CHUNK);
    assert_eq!(decode_all(&[&written]), Ok((data, true)));
}
