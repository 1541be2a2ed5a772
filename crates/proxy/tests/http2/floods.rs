//! Floods: frames that cost the gateway more than their sender. They end the connection, and concern nobody else.

use crate::support::{TestGateway, Upstream, Wire, answer};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// GET http / of an authority, by HPACK's static table.
const REQUEST: &[u8] = b"\x82\x86\x84\x41\x01h";
/// RFC 9113, section 7.
const ENHANCE_YOUR_CALM: u32 = 11;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// The code of the GOAWAY among these frames.
fn farewell(mut frames: &[u8]) -> Option<u32> {
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = frames {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let payload = rest.get(..length)?;
        if *kind == 7 {
            return Some(u32::from_be_bytes(*payload.get(4..)?.first_chunk()?));
        }
        frames = &rest[length..];
    }
    None
}

#[test]
fn floods_end_their_connection_and_nothing_else() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| answer("ok"));
    let calm = Some(ENHANCE_YOUR_CALM);
    let window = |size: u32| [&[0, 4][..], &size.to_be_bytes()].concat();
    let many_windows: Vec<u8> = (0..2000).flat_map(window).collect();
    let lasting: Vec<u8> = (0..200)
        .flat_map(|number| frame(1, 4, 2 * number + 1, REQUEST))
        .collect();
    let large = [&b"\x40\x01a\x7f\x81\x1e"[..], &[b'v'; 3968]].concat();
    let bomb = [large, [0xbe].repeat(12_000)].concat();
    // `(what, what comes, again and again, the farewell where there must be one)`
    for (what, first, again, code) in [
        (
            "settings",
            frame(4, 0, 0, b""),
            frame(4, 0, 0, &window(65_535)),
            calm,
        ),
        (
            "settings in one frame",
            frame(4, 0, 0, b""),
            frame(4, 0, 0, &many_windows),
            calm,
        ),
        (
            "settings of many streams",
            [frame(4, 0, 0, b""), lasting].concat(),
            frame(4, 0, 0, &many_windows),
            calm,
        ),
        (
            "heads without an end",
            [frame(4, 0, 0, b""), frame(1, 0, 1, REQUEST)].concat(),
            frame(9, 0, 1, b"\x00\x01a\x01b"),
            calm,
        ),
        (
            "heads without an end or content",
            [frame(4, 0, 0, b""), frame(1, 0, 1, b"")].concat(),
            frame(9, 0, 1, b""),
            calm,
        ),
        (
            "one field many times",
            frame(4, 0, 0, b""),
            frame(1, 5, 1, &bomb),
            None,
        ),
        (
            "pings that nobody reads the answers of",
            frame(4, 0, 0, b""),
            frame(6, 0, 0, b"12345678"),
            None,
        ),
        (
            "bytes one by one",
            [frame(4, 0, 0, b""), frame(1, 4, 1, REQUEST)].concat(),
            frame(0, 0, 1, b"a"),
            None,
        ),
    ] {
        let mut wire = Wire::to_gateway(gateway.address);
        wire.send([PREFACE, &first].concat());
        let some = again.repeat(1 + 16_384 / again.len());
        for _ in 0..64 {
            if wire.try_send(&some).is_err() {
                break;
            }
        }
        let _ended = wire.stream.shutdown(std::net::Shutdown::Write);
        let (answers, _) = wire.rest();
        if code.is_some() {
            assert_eq!(farewell(&answers), code, "{what}");
        }
        let mut good = Wire::to_gateway(gateway.address);
        good.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(good.response().unwrap().status(), 200, "{what}");
    }
}
