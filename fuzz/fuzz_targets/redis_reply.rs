//! Any bytes as a reply of a Redis.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_proxy::redis_fuzzing::redis_reply(bytes));
