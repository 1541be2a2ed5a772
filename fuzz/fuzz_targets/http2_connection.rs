//! Any frames as what a client says over HTTP/2: what it hears are frames in order, no more than it has room for. Some
//! calls are sent on to a second gateway, which has to understand all that it is sent.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/http2/tests/checks/mod.rs"]
mod checks;
#[path = "../support/frames.rs"]
mod frames;
#[path = "../support/hops.rs"]
mod hops;

use checks::http2_answers;
use frames::Step;
use weir_proxy::connection_fuzzing::USUAL_ROUNDS;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

libfuzzer_sys::fuzz_target!(|steps: Vec<Step<'_>>| {
    let Some((sent, cuts)) = frames::script(PREFACE, &steps) else {
        return;
    };
    let heard = hops::hear(|hops| hops.say(&frames::pieces(&sent, &cuts), USUAL_ROUNDS));
    http2_answers(&sent, &heard);
});
