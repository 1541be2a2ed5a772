//! The inputs from which fuzzing starts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
mod checks;

use checks::{chunked_body, request_head, response_head};
use std::path::Path;

/// The inputs from which fuzzing starts keep what must hold, so that a change of a parser shows here first.
#[test]
fn seeds_of_the_fuzz_targets_keep_what_must_hold() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    type Check = fn(&[u8]);
    let checks: [(&str, Check); 3] = [
        ("request_head", request_head),
        ("response_head", response_head),
        ("chunked_body", |bytes| {
            (0..bytes.len()).for_each(|split| chunked_body(&bytes[2..], split))
        }),
    ];
    for (target, check) in checks {
        let files = std::fs::read_dir(seeds.join(target)).expect("the target has seeds");
        for file in files {
            check(&std::fs::read(file.expect("readable").path()).expect("readable"));
        }
    }
}
