//! Any bytes as a response head; what is accepted must mean the same when it is written again.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/http1/tests/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::response_head(bytes));
