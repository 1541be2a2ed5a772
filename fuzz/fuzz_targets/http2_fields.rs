//! Any bytes as two field lists of an HTTP/2 connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    weir_proxy::http2_fuzzing::http2_fields(bytes, usize::from(cut));
});
