//! Any bytes as a request's stream over HTTP/3, in two pieces, and as a field section.
#![no_main]

use weir_proxy::http3_fuzzing::{http3_section, http3_stream};

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    http3_stream(bytes, usize::from(cut));
    http3_section(bytes);
});
