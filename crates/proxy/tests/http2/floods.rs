//! Floods: frames that cost the gateway more than their sender. They end the connection, and no other.

use super::frames::{PREFACE, REQUEST, frame};
use crate::support::{TestGateway, Upstream, Wire, answer};

/// RFC 9113, section 7.
const ENHANCE_YOUR_CALM: u32 = 11;
const CANCEL: [u8; 4] = 8u32.to_be_bytes();

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

/// `(what, the first frames after the settings, the frames that repeat, the code of the farewell if there must be
/// one)`.
type Flood = (&'static str, Vec<u8>, Vec<u8>, Option<u32>);

fn floods() -> Vec<Flood> {
    let calm = Some(ENHANCE_YOUR_CALM);
    let begin = |number: u32| frame(1, 4, 2 * number + 1, REQUEST);
    let give_up = |number: u32| [begin(number), frame(3, 0, 2 * number + 1, &CANCEL)].concat();
    let window = |size: u32| [&[0, 4][..], &size.to_be_bytes()].concat();
    let many_windows: Vec<u8> = (0..2000).flat_map(window).collect();
    let lasting: Vec<u8> = (0..200).flat_map(begin).collect();
    let given_up: Vec<u8> = (0..2000).flat_map(give_up).collect();
    let large = [&b"\x40\x01a\x7f\x81\x1e"[..], &[b'v'; 3968]].concat();
    let bomb = [large, [0xbe].repeat(12_000)].concat();
    let ping = frame(6, 0, 0, b"12345678");
    let none = Vec::new;
    #[rustfmt::skip]
    let floods = vec![
        ("settings", none(), frame(4, 0, 0, &window(65_535)), calm),
        ("settings in one frame", none(), frame(4, 0, 0, &many_windows), calm),
        ("settings of many streams", lasting, frame(4, 0, 0, &many_windows), calm),
        ("heads without an end", frame(1, 0, 1, REQUEST), frame(9, 0, 1, b"\x00\x01a\x01b"), calm),
        ("heads without an end or content", frame(1, 0, 1, b""), frame(9, 0, 1, b""), calm),
        ("calls that are given up", given_up, ping.clone(), calm),
        ("settings that are acknowledged", none(), frame(4, 1, 0, b""), calm),
        ("data without any", begin(0), frame(0, 0, 1, b""), calm),
        ("data that is padding", begin(0), frame(0, 8, 1, b"\x01\x00"), calm),
        ("priorities", none(), frame(2, 0, 1, &[0, 0, 0, 0, 9]), calm),
        ("windows", none(), frame(8, 0, 0, &[0, 0, 1, 0]), calm),
        ("pings that answer nothing", none(), frame(6, 1, 0, b"12345678"), calm),
        ("frames of an unknown type", none(), frame(0x21, 0, 0, b""), calm),
        ("frames of an unknown type, with something in them", none(), frame(0x21, 0, 1, b"abcdef"), calm),
        ("one field many times", none(), frame(1, 5, 1, &bomb), None),
        ("pings whose answers are not read", none(), ping, None),
        ("bytes one by one", begin(0), frame(0, 0, 1, b"a"), None),
    ];
    floods
}

#[test]
fn floods_end_their_connection_and_nothing_else() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| answer("ok"));
    for (what, first, again, code) in floods() {
        let mut wire = Wire::to_gateway(gateway.address);
        let some = again.repeat(1 + 16_384 / again.len());
        let begun = wire.try_send([PREFACE, &frame(4, 0, 0, b""), &first].concat());
        for _ in 0..64 {
            if begun.is_err() || wire.try_send(&some).is_err() {
                break;
            }
        }
        let _ended = wire.stream.shutdown(std::net::Shutdown::Write);
        let (answers, _) = wire.rest();
        if code.is_some() {
            assert_eq!(farewell(&answers), code, "{what}");
        }
        expect_service(&gateway, what);
    }
}

/// A client may have the gateway reset streams in place of doing so itself: calls are begun, and then broken by a window
/// that grows by nothing (RFC 9113, section 6.9).
#[test]
fn floods_of_resets_by_the_gateway_cost_no_other_client_anything() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| answer("ok"));
    let mut wire = Wire::to_gateway(gateway.address);
    wire.send([PREFACE, &frame(4, 0, 0, b"")].concat());
    for number in 0..5000 {
        let stream = 2 * number + 1;
        let begun = [frame(1, 5, stream, REQUEST), frame(8, 0, stream, &[0; 4])].concat();
        if wire.try_send(begun).is_err() {
            break;
        }
    }
    let _ended = wire.stream.shutdown(std::net::Shutdown::Write);
    wire.rest();
    expect_service(&gateway, "resets");
}

#[track_caller]
fn expect_service(gateway: &TestGateway, what: &str) {
    let mut good = gateway.connect();
    good.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(good.response().unwrap().status(), 200, "{what}");
}
