//! Any bytes as a path and as a query: normal forms are stable, contain nothing that leads out of the root,
//! and what was encoded decodes to itself.
#![no_main]

use weir_plugin::uri::{self, NormalForm};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let normal = |form: NormalForm, path: &[u8]| {
        let mut out = b"left over".to_vec();
        form.apply(path, &mut out).ok().map(|()| out)
    };
    for form in [NormalForm::Encoded, NormalForm::Unambiguous, NormalForm::Decoded] {
        // No request target holds a NUL that is not escaped.
        let Some(path) = normal(form, bytes).filter(|_| !bytes.contains(&0)) else {
            continue;
        };
        assert_eq!(path.first(), Some(&b'/'));
        let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
        while let Some(segment) = segments.next() {
            assert!(segment != b"." && segment != b"..", "a dot segment is left");
            assert!(
                !segment.is_empty() || segments.peek().is_none(),
                "a double slash is left"
            );
        }
        match form {
            NormalForm::Encoded | NormalForm::Unambiguous => {
                assert_eq!(normal(form, &path).as_ref(), Some(&path), "not stable");
                assert_eq!(normal(NormalForm::Encoded, bytes).as_ref(), Some(&path));
                assert!(path.iter().all(|byte| *byte > 0x20 && *byte < 0x7f));
            }
            NormalForm::Decoded => {
                let mut escaped = Vec::new();
                uri::escape_path(&path, &mut escaped);
                assert!(escaped.iter().all(|byte| *byte > 0x20 && *byte < 0x7f));
                if !path.contains(&0) {
                    assert_eq!(
                        normal(form, &escaped).as_ref(),
                        Some(&path),
                        "escaped, it is another path"
                    );
                }
            }
        }
    }
    let mut encoded = Vec::new();
    uri::encode_form(bytes, &mut encoded);
    assert_eq!(uri::decode_form(&encoded).as_ref(), bytes);
    for (name, value) in uri::query_pairs(bytes) {
        let _ = (uri::decode_form(name), value.map(uri::decode_form));
    }
    let mut line = Vec::new();
    uri::escape_controls(bytes, &mut line);
    assert!(line.iter().all(|byte| *byte > 0x20 && *byte != 0x7f));
});
