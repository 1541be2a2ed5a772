//! Peers that bound what an HPACK decoder keeps: the encoder announces that it needs nothing (RFC 9113, section 4.3.1).

use super::frames::{self, BOTH, HEADER_TABLE_SIZE, HEADERS, REQUEST, frame, settings};
use super::support::{TestGateway, Upstream, answer, patch, simple_model};
use serde_json::json;

/// The settings that a peer sends, one after the other, and whether the next field list has to say that nothing is kept.
type TableCase = (&'static [&'static [u32]], bool);

const CASES: [TableCase; 6] = [
    (&[&[]], false),
    (&[&[4096]], false),
    (&[&[65_536]], false),
    (&[&[0]], true),
    (&[&[65_536, 5000]], true),
    (&[&[100], &[4096]], true),
];
/// A dynamic table of no size (RFC 7541, section 6.3).
const NOTHING: u8 = 0x20;

fn frames(sizes: &[&[u32]]) -> Vec<Vec<u8>> {
    let of = |sizes: &&[u32]| {
        let list: Vec<_> = sizes.iter().map(|size| (HEADER_TABLE_SIZE, *size)).collect();
        settings(&list)
    };
    sizes.iter().map(of).collect()
}

#[test]
fn clients_get_the_table_size_once() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| answer("ok"));
    for (sizes, is_announced) in CASES {
        let mut client = frames::connect(&gateway, &frames(sizes));
        let mut call = |stream| {
            client.send(frame(HEADERS, BOTH, stream, REQUEST));
            let head = frames::next_of(&mut client, HEADERS).payload;
            frames::body(&mut client, stream).unwrap();
            let (is_announced, status) = match head[..] {
                [NOTHING, status, ..] => (true, status),
                [status, ..] => (false, status),
                [] => panic!("no head"),
            };
            assert_eq!(status, 0x88, "{sizes:?}");
            is_announced
        };
        assert_eq!((call(1), call(3)), (is_announced, false), "{sizes:?}");
        // Later it may be bounded more.
        client.send(settings(&[(HEADER_TABLE_SIZE, 10)]));
        client.send(frame(HEADERS, BOTH, 5, REQUEST));
        let is_lower = sizes.last().and_then(|sizes| sizes.last()) != Some(&0);
        let head = frames::next_of(&mut client, HEADERS).payload;
        assert_eq!(head.first() == Some(&NOTHING), is_lower, "{sizes:?}");
    }
}

#[test]
fn upstreams_get_the_table_size() {
    for (sizes, is_announced) in CASES {
        let upstream = Upstream::bind();
        let url = format!("h2c://{}", upstream.address);
        let changes = json!({"services": {"url": url}});
        let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
        let mut client = gateway.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut wire = frames::accept(&upstream, &frames(sizes));
        let head = frames::next_of(&mut wire, HEADERS);
        let indexed = [NOTHING, 0x82];
        assert!(
            head.payload.starts_with(&indexed[usize::from(!is_announced)..]),
            "{sizes:?}"
        );
        wire.send(frame(HEADERS, BOTH, 1, b"\x89"));
        assert_eq!(client.response().unwrap().status(), 204);
    }
}
