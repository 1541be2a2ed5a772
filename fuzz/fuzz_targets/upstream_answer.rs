//! Anything as what an upstream says over HTTP/1.1 or HTTP/2: the client, which speaks either, hears a good answer, or the
//! begin of one.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/http1/tests/checks/mod.rs"]
mod checks;
#[path = "../support/frames.rs"]
mod frames;
#[path = "../support/hops.rs"]
mod hops;
#[allow(dead_code)]
#[path = "../../crates/http2/tests/checks/mod.rs"]
mod http2_checks;

use arbitrary::Arbitrary;
use checks::http1_answer;
use frames::Step;
use http2_checks::http2_answers;
use weir_proxy::connection_fuzzing::USUAL_ROUNDS;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    from_http2: bool,
    is_head: bool,
    sent: UpstreamAnswer<'a>,
}

#[derive(Debug, Arbitrary)]
enum UpstreamAnswer<'a> {
    Text(u16, &'a [u8]),
    Frames(Vec<Step<'a>>),
}

libfuzzer_sys::fuzz_target!(|input: Input<'_>| {
    let (path, script) = match &input.sent {
        UpstreamAnswer::Text(cut, text) => {
            let (first, second) = text.split_at(usize::from(*cut) % (text.len() + 1));
            ("/s", vec![first.to_vec(), second.to_vec()])
        }
        UpstreamAnswer::Frames(steps) => {
            let Some((sent, cuts)) = frames::script(b"", steps) else {
                return;
            };
            (
                "/t",
                frames::pieces(&sent, &cuts)
                    .into_iter()
                    .map(<[u8]>::to_vec)
                    .collect(),
            )
        }
    };
    let method = if input.is_head { "HEAD" } else { "GET" };
    if !input.from_http2 {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let heard = hops::hear(|hops| hops.say_to(script, &[request.as_bytes()], USUAL_ROUNDS));
        return http1_answer(&heard, input.is_head);
    }
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    let list = format!("\x02{}{method}\x04\x02{path}", char::from(method.len() as u8));
    let list = [&b"\x86\x41\x01h"[..], list.as_bytes()].concat();
    request.extend_from_slice(&[0, 0, list.len() as u8, 1, 5, 0, 0, 0, 1]);
    request.extend_from_slice(&list);
    let heard = hops::hear(|hops| hops.say_to(script, &[&request], USUAL_ROUNDS));
    http2_answers(&request, &heard);
});
