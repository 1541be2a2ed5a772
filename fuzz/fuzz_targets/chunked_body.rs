//! Any bytes as a chunked body in two pieces; how it is cut must make no difference.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/http1/tests/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| checks::chunked_body(input.1, usize::from(input.0)));
