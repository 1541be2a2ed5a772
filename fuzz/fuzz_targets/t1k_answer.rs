//! Any bytes as an answer of SafeLine's detector.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_plugins::safeline_waf::fuzz_answer(bytes));
