//! Any bytes as the first message of a TLS handshake over QUIC.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_proxy::http3_fuzzing::client_hello(bytes));
