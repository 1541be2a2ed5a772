//! The recorded cases of the original, for the tests that read them.

use serde_json::Value;
use std::path::PathBuf;

/// All of them.
pub fn cases() -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded/kong");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the recorded cases") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|it| it == "json") {
            let text = std::fs::read_to_string(&path).expect("a file");
            let file: Value = serde_json::from_str(&text).expect("JSON");
            cases.extend(file.as_array().expect("a list").iter().cloned());
        }
    }
    cases
}
