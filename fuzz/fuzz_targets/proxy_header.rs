//! Any bytes as the begin of a connection whose peer speaks the PROXY protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_proxy::proxy_protocol_fuzzing::read_proxy_header(bytes));
