//! What the client of a WebSocket may send, in the order of Autobahn's list: framing, pings, reserved bits and kinds,
//! fragments, UTF-8, endings.

/// What a client sends, in parts that are written one by one.
pub struct Case {
    pub name: String,
    pub parts: Vec<Vec<u8>>,
}

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FIN: u8 = 0x80;

/// A frame of a client; `first`: its kind, with the other bits of that byte.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        0..126 => frame.push(0x80 | payload.len() as u8),
        126..65_536 => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        }
        _ => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    frame.extend_from_slice(&mask);
    frame.extend(
        payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    frame
}

fn ending(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(FIN | CLOSE, &[&code.to_be_bytes(), reason].concat())
}

fn case(name: impl Into<String>, parts: Vec<Vec<u8>>) -> Case {
    Case {
        name: name.into(),
        parts,
    }
}

/// With a proper end behind it.
fn ended(name: impl Into<String>, mut parts: Vec<Vec<u8>>) -> Case {
    parts.push(ending(1000, b""));
    case(name, parts)
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    sizes(&mut cases);
    pings(&mut cases);
    reserved(&mut cases);
    fragments(&mut cases);
    utf8(&mut cases);
    endings(&mut cases);
    cases
}

fn sizes(cases: &mut Vec<Case>) {
    for size in [0, 1, 125, 126, 127, 128, 65_535, 65_536, 300_000] {
        for (name, kind) in [("text", TEXT), ("binary", BINARY)] {
            let whole = frame(FIN | kind, &vec![b'*'; size]);
            cases.push(ended(format!("{name} of {size}"), vec![whole.clone()]));
            let chopped = whole.chunks(997).map(<[u8]>::to_vec).collect();
            cases.push(ended(format!("{name} of {size} in pieces"), chopped));
        }
    }
    let bytes: Vec<_> = frame(FIN | TEXT, b"one by one")
        .iter()
        .map(|byte| vec![*byte])
        .collect();
    cases.push(ended("byte by byte", bytes));
    let many = (0..200).flat_map(|number: u32| frame(FIN | TEXT, number.to_string().as_bytes()));
    cases.push(ended("many in one write", vec![many.collect()]));
}

fn pings(cases: &mut Vec<Case>) {
    for payload in [&b""[..], b"hello", &[0, 255, 254, 253], &[0xfe; 125]] {
        cases.push(ended(
            format!("ping {payload:?}"),
            vec![frame(FIN | PING, payload)],
        ));
    }
    cases.push(case("ping too long", vec![frame(FIN | PING, &[0xfe; 126])]));
    cases.push(ended(
        "pong unasked",
        vec![frame(FIN | PONG, b""), frame(FIN | PONG, b"x")],
    ));
    let ten = (0..10u8).map(|number| frame(FIN | PING, &[number])).collect();
    cases.push(ended("ten pings", ten));
}

fn reserved(cases: &mut Vec<Case>) {
    for bits in [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70] {
        cases.push(case(
            format!("reserved bits {bits:x}"),
            vec![frame(FIN | bits | TEXT, b"x")],
        ));
        cases.push(case(
            format!("reserved bits {bits:x} of a ping"),
            vec![frame(FIN | bits | PING, b"")],
        ));
    }
    for kind in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        cases.push(case(
            format!("reserved kind {kind}"),
            vec![frame(FIN | kind, b"x")],
        ));
    }
}

fn fragments(cases: &mut Vec<Case>) {
    let (first, second, last) = (
        frame(TEXT, b"fragment1"),
        frame(CONTINUATION, b"fragment2"),
        frame(FIN | CONTINUATION, b"fragment3"),
    );
    let (ping, pong) = (frame(FIN | PING, b"between"), frame(FIN | PONG, b"between"));
    let together = |parts: &[&Vec<u8>]| vec![parts.iter().flat_map(|part| part.iter().copied()).collect()];
    let apart = |parts: &[&Vec<u8>]| parts.iter().map(|part| (*part).clone()).collect::<Vec<_>>();
    for (name, parts) in [
        ("two", vec![&first, &last]),
        ("three", vec![&first, &second, &last]),
        ("a ping between", vec![&first, &ping, &last]),
        (
            "pings and pongs between",
            vec![&first, &ping, &second, &pong, &ping, &last],
        ),
    ] {
        cases.push(ended(format!("fragments: {name}"), apart(&parts)));
        cases.push(ended(format!("fragments in one write: {name}"), together(&parts)));
    }
    let text = frame(FIN | TEXT, b"whole");
    for (name, parts) in [
        ("nothing to go on with", vec![&last]),
        ("nothing to go on with, not the last", vec![&second, &last]),
        ("a message within another", vec![&first, &text]),
        ("a message behind which nothing goes on", vec![&text, &last]),
    ] {
        cases.push(case(format!("fragments: {name}"), apart(&parts)));
    }
    cases.push(case(
        "a ping in fragments",
        vec![frame(PING, b"a"), frame(FIN | CONTINUATION, b"b")],
    ));
}

fn utf8(cases: &mut Vec<Case>) {
    let good = "Hello-µ@ßöäüàá-UTF-8!! κόσμε 𠜎".as_bytes();
    cases.push(ended("text beyond ASCII", vec![frame(FIN | TEXT, good)]));
    for cut in [7, 8, 30, good.len() - 1, good.len() - 2] {
        let parts = vec![frame(TEXT, &good[..cut]), frame(FIN | CONTINUATION, &good[cut..])];
        cases.push(ended(format!("text cut at {cut}"), parts));
    }
    for bad in [
        &b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"[..],
        b"\xf4\x90\x80\x80",
        b"\x80",
        b"\xc0\xaf",
        b"\xff",
        b"a\xc3",
    ] {
        cases.push(case(format!("no text {bad:x?}"), vec![frame(FIN | TEXT, bad)]));
    }
}

fn endings(cases: &mut Vec<Case>) {
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999,
    ] {
        cases.push(case(format!("ends with {code}"), vec![ending(code, b"")]));
    }
    for code in [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535] {
        cases.push(case(
            format!("ends with {code}, which is not allowed"),
            vec![ending(code, b"")],
        ));
    }
    cases.push(case("ends without a code", vec![frame(FIN | CLOSE, b"")]));
    cases.push(case("ends with half a code", vec![frame(FIN | CLOSE, b"\x03")]));
    cases.push(case("ends with a reason", vec![ending(1000, b"because")]));
    cases.push(case("ends with a long reason", vec![ending(1000, &[b'r'; 123])]));
    cases.push(case(
        "ends with too long a reason",
        vec![ending(1000, &[b'r'; 124])],
    ));
    cases.push(case(
        "ends with a reason that is not a text",
        vec![ending(1000, b"\xed\xa0\x80")],
    ));
    let late = vec![[ending(1000, b""), frame(FIN | TEXT, b"late")].concat()];
    cases.push(case("a message behind the end", late));
    let parts = vec![frame(FIN | TEXT, b"before"), ending(1000, b"")];
    cases.push(case("a message before the end", parts));
}
