//! Requests that make none, field by field as they are on the wire of HTTP/2 and HTTP/3 (RFC 9113, 8.1.1; RFC 9114,
//! 4.1.2): each is refused, by a stream error or in an answer, and reaches no upstream.

use super::client::Protocol;
use super::http2::wait;
use super::http3::connect;
use super::stand::{Stand, address};
use super::support::{Wire, answer, client_config};
use h3::error::Code;

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
enum RequestOutcome {
    Served,
    /// With a status of its own.
    Refused,
    /// The stream, or for HTTP/2 the connection, has ended with this.
    Ended(u64),
}

/// A request: its head, its body, its trailers, as they are sent.
#[derive(Default)]
struct RawRequest<'a> {
    head: Vec<(&'a [u8], &'a [u8])>,
    body: &'a [u8],
    trailers: Vec<(&'a [u8], &'a [u8])>,
}

type Line = (&'static str, &'static str);

const METHOD: Line = (":method", "GET");
const POST: Line = (":method", "POST");
const SCHEME: Line = (":scheme", "https");
const AUTHORITY: Line = (":authority", "localhost");
const PATH: Line = (":path", "/");
const PLAIN: Line = ("x-plain", "1");

/// `(head, body, trailers, whether it is served)`.
type Case = (&'static [Line], &'static str, &'static [Line], bool);

#[rustfmt::skip]
const CASES: &[Case] = &[
    (&[METHOD, SCHEME, AUTHORITY, PATH], "", &[], true),
    (&[PATH, AUTHORITY, SCHEME, METHOD, PLAIN, PLAIN], "", &[], true),
    (&[METHOD, SCHEME, PATH, ("host", "localhost")], "", &[], true),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("host", "localhost")], "", &[], true),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("te", "trailers")], "", &[], true),
    (&[POST, SCHEME, AUTHORITY, PATH, ("content-length", "2")], "ok", &[], true),
    // Something is missing, or empty.
    (&[SCHEME, AUTHORITY, PATH], "", &[], false),
    (&[METHOD, AUTHORITY, PATH], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY], "", &[], false),
    (&[METHOD, SCHEME, PATH], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, (":path", "")], "", &[], false),
    (&[METHOD, SCHEME, PATH, (":authority", "")], "", &[], false),
    (&[(":method", ""), SCHEME, AUTHORITY, PATH], "", &[], false),
    (&[], "", &[], false),
    // Something is there twice, the same or another.
    (&[METHOD, METHOD, SCHEME, AUTHORITY, PATH], "", &[], false),
    (&[METHOD, POST, SCHEME, AUTHORITY, PATH], "", &[], false),
    (&[METHOD, SCHEME, SCHEME, AUTHORITY, PATH], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, AUTHORITY, PATH], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, (":authority", "evil.test"), PATH], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, PATH], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, (":path", "/admin")], "", &[], false),
    (&[METHOD, SCHEME, PATH, ("host", "localhost"), ("host", "evil.test")], "", &[], false),
    // Pseudo-header fields behind others, unknown, of responses.
    (&[PLAIN, METHOD, SCHEME, AUTHORITY, PATH], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PLAIN, PATH], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, PLAIN, (":path", "/admin")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, (":x", "1")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, (":status", "200")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, (":protocol", "websocket")], "", &[], false),
    (&[POST, SCHEME, AUTHORITY, PATH], "ok", &[PLAIN, (":path", "/admin")], false),
    (&[POST, SCHEME, AUTHORITY, PATH], "ok", &[(":status", "200")], false),
    // Names and values that are none.
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("X-Upper", "1")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("", "1")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x y", "1")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x:y", "1")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x", "a\r\nb: c")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x", "a\nb")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x", "a\0b")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x", " a")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x", "a\t")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x", " ")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("cookie", " a=b")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, (":path", "/a b")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, (":path", "a")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, (":path", "*")], "", &[], false),
    (&[(":method", "G T"), SCHEME, AUTHORITY, PATH], "", &[], false),
    (&[METHOD, SCHEME, (":authority", "a b"), PATH], "", &[], false),
    (&[METHOD, SCHEME, (":authority", "user@localhost"), PATH], "", &[], false),
    // Of a connection.
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("connection", "close")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("keep-alive", "timeout=5")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("proxy-connection", "close")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("transfer-encoding", "chunked")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("transfer_encoding", "chunked")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("content_length", "3")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("upgrade", "websocket")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("te", "gzip")], "", &[], false),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("te", "trailers, gzip")], "", &[], false),
    // Things that contradict each other.
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("host", "evil.test")], "", &[], false),
    (&[POST, SCHEME, AUTHORITY, PATH, ("content-length", "1")], "ok", &[], false),
    (&[POST, SCHEME, AUTHORITY, PATH, ("content-length", "3")], "ok", &[], false),
    (&[POST, SCHEME, AUTHORITY, PATH, ("content-length", "2"), ("content-length", "3")], "ok", &[], false),
    (&[POST, SCHEME, AUTHORITY, PATH, ("content-length", "+2")], "ok", &[], false),
    // What is not asked for here.
    (&[(":method", "CONNECT"), AUTHORITY], "", &[], false),
    (&[(":method", "CONNECT"), (":protocol", "other"), SCHEME, AUTHORITY, PATH], "", &[], false),
];

fn bytes(lines: &'static [Line]) -> Vec<(&'static [u8], &'static [u8])> {
    lines
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect()
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags, 0, 0, 0, if kind == 4 { 0 } else { 1 }]);
    frame.extend_from_slice(payload);
    frame
}

/// Lines as HPACK and QPACK spell them out; `first` says what the bits before a name's length are, of so many bits.
fn spelt(lines: &[(&[u8], &[u8])], first: u8, bits: u32) -> Vec<u8> {
    let most = u8::MAX >> (8 - bits);
    let mut out = Vec::new();
    for (name, value) in lines {
        match name.len() as u8 {
            short if short < most => out.push(first | short),
            long => out.extend_from_slice(&[first | most, long - most]),
        }
        out.extend_from_slice(name);
        out.push(value.len() as u8);
        out.extend_from_slice(value);
    }
    out
}

fn over_http2(stand: &Stand, sent: &RawRequest<'_>) -> RequestOutcome {
    let mut wire = Wire::to_listener(address(&stand.gateway, Protocol::Http2), false);
    // A literal that is not kept, with a name of its own: a byte of zero, then the name.
    let coded = |lines: &[(&[u8], &[u8])]| -> Vec<u8> {
        let one = |line| [&[0], spelt(&[line], 0, 7).as_slice()].concat();
        lines.iter().flat_map(|line| one(*line)).collect()
    };
    let (has_body, has_trailers) = (!sent.body.is_empty(), !sent.trailers.is_empty());
    let mut all = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    all.extend(frame(4, 0, b""));
    all.extend(frame(1, 4 | u8::from(!has_body), &coded(&sent.head)));
    if has_body {
        all.extend(frame(0, u8::from(!has_trailers), sent.body));
    }
    if has_trailers {
        all.extend(frame(1, 5, &coded(&sent.trailers)));
    }
    wire.send(all);
    loop {
        let Ok(head) = wire.read(9) else {
            return RequestOutcome::Ended(u64::MAX);
        };
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = wire.read(length).unwrap();
        let number = |at: usize| u64::from(u32::from_be_bytes(payload[at..at + 4].try_into().unwrap()));
        match head[3] {
            // The eighth entry of the static table is a status of 200.
            1 if payload[0] == 0x88 => return RequestOutcome::Served,
            1 => return RequestOutcome::Refused,
            3 => return RequestOutcome::Ended(number(0)),
            7 => return RequestOutcome::Ended(number(4)),
            _ => {}
        }
    }
}

fn over_http3(
    connection: &quinn::Connection,
    runtime: &tokio::runtime::Runtime,
    sent: &RawRequest<'_>,
) -> RequestOutcome {
    let section = |lines: &[(&[u8], &[u8])]| {
        let section = [&[0, 0], spelt(lines, 0x20, 3).as_slice()].concat();
        let mut frame = vec![1, 0x40 | (section.len() >> 8) as u8, section.len() as u8];
        frame.extend(section);
        frame
    };
    let mut all = section(&sent.head);
    if !sent.body.is_empty() {
        all.extend_from_slice(&[0, sent.body.len() as u8]);
        all.extend_from_slice(sent.body);
    }
    if !sent.trailers.is_empty() {
        all.extend(section(&sent.trailers));
    }
    wait(runtime, async {
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        // It may be refused before all of it was sent.
        let _sent = send.write_all(&all).await;
        let _ended = send.finish();
        match receive.read_to_end(4096).await {
            // Its frame, the section's prefix, and the 25th entry of the static table, which is a status of 200.
            Ok(came) if came.windows(3).next().is_some() && came.contains(&0xd9) => RequestOutcome::Served,
            Ok(_) => RequestOutcome::Refused,
            Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(reason))) => {
                RequestOutcome::Ended(reason.into_inner())
            }
            Err(error) => panic!("{error}"),
        }
    })
}

#[test]
fn what_makes_no_request_is_refused() {
    for (head, body, trailers, is_served) in CASES {
        let stand = Stand::new();
        let sent = RawRequest {
            head: bytes(head),
            body: body.as_bytes(),
            trailers: bytes(trailers),
        };
        let http3 = address(&stand.gateway, Protocol::Http3);
        let (runtime, connection) = connect(http3, "localhost", client_config(&[b"h3"]));
        let connection = connection.unwrap();
        if *is_served {
            stand.upstream.serve(|_| answer("ok"));
            let stand = Stand {
                upstream: super::support::Upstream::bind(),
                ..stand
            };
            assert_eq!(
                over_http2(&stand, &sent),
                RequestOutcome::Served,
                "HTTP/2 {head:?} {body} {trailers:?}"
            );
            assert_eq!(
                over_http3(&connection, &runtime, &sent),
                RequestOutcome::Served,
                "HTTP/3 {head:?} {body} {trailers:?}"
            );
            continue;
        }
        let came = over_http2(&stand, &sent);
        assert!(
            matches!(came, RequestOutcome::Refused | RequestOutcome::Ended(1)),
            "HTTP/2 {head:?} {body} {trailers:?}: {came:?}"
        );
        let came = over_http3(&connection, &runtime, &sent);
        let malformed = RequestOutcome::Ended(Code::H3_MESSAGE_ERROR.value());
        assert!(
            came == RequestOutcome::Refused || came == malformed,
            "HTTP/3 {head:?} {body} {trailers:?}: {came:?}"
        );
        assert_eq!(connection.close_reason(), None, "{head:?}");
        // What is wrong with a body or behind it cannot be known before it comes; then it never comes to its end.
        if body.is_empty() {
            assert!(stand.upstream.is_untouched(), "{head:?}");
        }
    }
}

#[test]
fn names_may_be_coded() {
    let stand = Stand::new();
    let http3 = address(&stand.gateway, Protocol::Http3);
    let seen = stand.upstream.serve(|_| answer("ok"));
    let (runtime, connection) = connect(http3, "localhost", client_config(&[b"h3"]));
    let connection = connection.unwrap();
    // Every name in its Huffman coding.
    let coded: [(&[u8], &[u8]); 4] = [
        (b"\xb9\x49\x53\x39\xe4", b"GET"),
        (b"\xb8\x82\x4e\x5a\x4b", b"https"),
        (b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f", b"localhost"),
        (b"\xb9\x58\xd3\x3f", b"/coded"),
    ];
    for (again, wanted) in [
        (None, RequestOutcome::Served),
        (Some(3), RequestOutcome::Ended(Code::H3_MESSAGE_ERROR.value())),
    ] {
        let lines: Vec<_> = coded
            .iter()
            .chain(again.map(|at: usize| &coded[at]))
            .copied()
            .collect();
        let section = [&[0, 0], spelt(&lines, 0x28, 3).as_slice()].concat();
        let came = wait(&runtime, async {
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            send.write_all(&[1, 0x40, section.len() as u8]).await.unwrap();
            let _sent = send.write_all(&section).await;
            let _ended = send.finish();
            match receive.read_to_end(4096).await {
                Ok(_) => RequestOutcome::Served,
                Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(reason))) => {
                    RequestOutcome::Ended(reason.into_inner())
                }
                Err(error) => panic!("{error}"),
            }
        });
        assert_eq!(came, wanted);
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].head.line, "GET /coded HTTP/1.1");
}
