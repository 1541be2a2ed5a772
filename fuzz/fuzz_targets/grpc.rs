//! Any path template and any path; any body in Base64: none may panic, and what is decoded comes back.
#![no_main]

use weir_plugins::grpc_transcode::PathTemplate;
use weir_plugins::grpc_web::decode_text;

libfuzzer_sys::fuzz_target!(|input: (&str, &[u8], &[u8])| {
    let (template, path, text) = input;
    if let Ok(parsed) = PathTemplate::parse(template) {
        let fields = parsed.fields().count();
        for path in [path, template.as_bytes()] {
            if let Some(values) = parsed.matches(path) {
                assert_eq!(values.len(), fields);
                assert!(values.iter().map(|value| value.len()).sum::<usize>() <= path.len());
            }
        }
    }
    if let Some(bytes) = decode_text(text) {
        assert!(bytes.len() <= text.len() / 4 * 3);
    }
});
