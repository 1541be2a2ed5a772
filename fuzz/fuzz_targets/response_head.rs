//! Any bytes as a response head; what is accepted must mean the same when it is written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_proxy::fuzzing::response_head(bytes));
