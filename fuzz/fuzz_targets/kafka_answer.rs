//! Any bytes as an answer of a Kafka broker.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_proxy::kafka_fuzzing::kafka_answer(bytes));
