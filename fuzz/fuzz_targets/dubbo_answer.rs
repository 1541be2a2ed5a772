//! Any bytes as the answer of a provider of Dubbo.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_plugins::dubbo::fuzz_answer(bytes));
