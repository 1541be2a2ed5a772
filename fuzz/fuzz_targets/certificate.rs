//! Any bytes as a certificate, and any text as one with its key: they are read or not, without a panic. What the
//! certificate says of its responder, and what the console shows of it, are read, too.
#![no_main]

use weir_model::ocsp::{Subject, responder};
use weir_model::x509::{Certificate, is_private_key};
use weir_model::x509_details::CertificateDetails;

libfuzzer_sys::fuzz_target!(|input: (&[u8], &str)| {
    let (der, text) = input;
    if let Some(read) = Certificate::of_der(der) {
        let _fits = read.fits(text);
    }
    let _read = (Certificate::of_pem(text), is_private_key(text));
    let _details = (CertificateDetails::of_der(der), responder(der));
    if let Some(subject) = Subject::of(der, der) {
        assert!(!subject.id(<[u8]>::to_vec).request().is_empty());
    }
});
