//! Any bytes as a chunked body in two pieces; how it is cut must make no difference.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| weir_proxy::fuzzing::chunked_body(
    input.1,
    usize::from(input.0)
));
