//! Any bytes as two field lists of an HTTP/2 connection.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/http2/tests/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    checks::http2_fields(bytes, usize::from(cut));
});
