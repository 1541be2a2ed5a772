//! Upstreams that answer whole, and whose connection then ends, in whatever way.

use super::frames::{self, BOTH, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, REQUEST, frame};
use super::support::{TestGateway, Upstream, patch, simple_model};
use serde_json::json;

/// An answer in frames, its status and its body.
type Answer = (&'static str, Vec<u8>, u16, &'static str);

fn answers() -> [Answer; 4] {
    let head = frame(HEADERS, END_HEADERS, 1, b"\x88");
    let stated = frame(HEADERS, END_HEADERS, 1, b"\x88\x0f\x0d\x015");
    let hello = |flags| frame(DATA, flags, 1, b"hello");
    let trailers = frame(HEADERS, BOTH, 1, b"\x00\x01a\x01b");
    [
        ("nothing", frame(HEADERS, BOTH, 1, b"\x89"), 204, ""),
        ("a body", [&head[..], &hello(END_STREAM)].concat(), 200, "hello"),
        (
            "a body of stated length",
            [&stated[..], &hello(END_STREAM)].concat(),
            200,
            "hello",
        ),
        (
            "trailers",
            [&head[..], &hello(0), &trailers].concat(),
            200,
            "hello",
        ),
    ]
}

/// What comes right behind the answer, how often that is tried, and whether the connection then ends by itself.
fn endings() -> [(&'static str, Vec<u8>, usize); 3] {
    let farewell = frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    [
        // What is no frame of HTTP/2 is read with the answer.
        ("nonsense", frame(DATA, 0, 0, b"x"), 1),
        // The end is mostly seen at once as well.
        ("the end", Vec::new(), 5),
        ("a farewell and the end", farewell, 5),
    ]
}

fn cases(play: impl Fn(&TestGateway, &Upstream, &str, &Answer, &[u8])) {
    let upstream = Upstream::bind();
    let url = format!("h2c://{}", upstream.address);
    let changes = json!({"services": {"url": url, "retries": 0}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    for answer in answers() {
        for (ending, behind, times) in endings() {
            for _ in 0..times {
                play(
                    &gateway,
                    &upstream,
                    &format!("{} and {ending}", answer.0),
                    &answer,
                    &behind,
                );
            }
        }
    }
}

/// Answers one call, and is gone.
fn answer_once(upstream: &Upstream, answer: &[u8], behind: &[u8]) {
    let mut wire = frames::accept(upstream, &[frames::settings(&[])]);
    frames::next_of(&mut wire, HEADERS);
    wire.send([answer, behind].concat());
    wire.finish();
    wire.rest();
}

#[test]
fn a_whole_answer_reaches_clients_of_http1() {
    cases(|gateway, upstream, what, (_, answer, status, text), behind| {
        let mut client = gateway.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        answer_once(upstream, answer, behind);
        let response = client.response().unwrap();
        assert_eq!(response.status(), *status, "{what}");
        assert_eq!(response.body, text.as_bytes(), "{what}");
        // The client's connection goes on.
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        answer_once(upstream, answer, b"");
        assert_eq!(client.response().unwrap().status(), *status, "{what}");
    });
}

#[test]
fn a_whole_answer_reaches_clients_of_http2() {
    cases(|gateway, upstream, what, (_, answer, status, text), behind| {
        let mut client = frames::connect(
            gateway,
            &[frames::settings(&[]), frame(HEADERS, BOTH, 1, REQUEST)],
        );
        answer_once(upstream, answer, behind);
        let head = frames::next_of(&mut client, HEADERS);
        let indexed = if *status == 204 { 0x89 } else { 0x88 };
        assert_eq!(head.payload.first(), Some(&indexed), "{what}");
        let body = match head.ends_stream() {
            true => Ok(0),
            false => frames::body(&mut client, 1),
        };
        assert_eq!(body, Ok(text.len()), "{what}");
    });
}

/// What has not come whole is cut off all the same.
#[test]
fn half_an_answer_is_none() {
    let half = frame(HEADERS, END_HEADERS, 1, b"\x88");
    cases(|gateway, upstream, what, _, behind| {
        let mut client = frames::connect(
            gateway,
            &[frames::settings(&[]), frame(HEADERS, BOTH, 1, REQUEST)],
        );
        answer_once(upstream, &half, behind);
        let reset = frames::next_of(&mut client, frames::RST_STREAM);
        assert_eq!(reset.stream, 1, "{what}");
    });
}
