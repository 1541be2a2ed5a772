//! Any bytes as the answer of an OCSP responder: what is read of it are parts of it.
#![no_main]

use weir_model::ocsp::Response;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(response) = Response::parse(bytes) else {
        return;
    };
    let parts = [response.signed, response.algorithm, response.signature];
    for part in parts.into_iter().chain(response.certificates.iter().copied()) {
        assert!(part.len() <= bytes.len());
    }
    assert!(response.answers.len() <= bytes.len());
});
