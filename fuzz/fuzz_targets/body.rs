//! Any bytes as a body in parts, and any text as a GraphQL document: parts are parts of the body; the document is
//! read or refused.
#![no_main]

use weir_plugin::graphql::{Document, Tree};
use weir_plugin::multipart::{boundary, parts};

libfuzzer_sys::fuzz_target!(|input: (&[u8], &[u8], &str)| {
    let (content_type, body, text) = input;
    for boundary in [boundary(content_type).unwrap_or_default(), content_type, b"a"] {
        let parts = parts(body, boundary);
        let length: usize = parts
            .iter()
            .map(|part| part.head.len() + part.content.len())
            .sum();
        assert!(length <= body.len(), "parts overlap");
        for part in &parts {
            let _name = part.name();
        }
    }
    let _ = (Document::read(text), Tree::read(text));
});
