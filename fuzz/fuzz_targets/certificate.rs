//! Any bytes as a certificate, and any text as one with its key: they are read or not, without a panic.
#![no_main]

use weir_model::x509::{Certificate, is_private_key};

libfuzzer_sys::fuzz_target!(|input: (&[u8], &str)| {
    let (der, text) = input;
    if let Some(read) = Certificate::of_der(der) {
        let _fits = read.fits(text);
    }
    let _read = (Certificate::of_pem(text), is_private_key(text));
});
