//! Any text as a configuration file: it is read or refused, places in it are found, and JSON means what JSON
//! means.
#![no_main]

use serde_json::Value;
use weir_model::DocPath;
use weir_model::document::{line_of, parse};

/// Places that are looked up in one document at most.
const MAX_PLACES: usize = 40;

libfuzzer_sys::fuzz_target!(|text: &str| {
    // A lone CR ends a line too (YAML 1.2, 5.4).
    let lines = text.split(['\n', '\r']).count();
    match parse(text) {
        Ok(value) => {
            let mut left = MAX_PLACES;
            look_up(text, lines, &value, &DocPath::root(), &mut left);
        }
        Err(refusal) => {
            assert!(refusal.line.is_some_and(|line| line <= lines + 1), "{refusal:?}");
            let _ = refusal.render("file", text);
        }
    }
    // Places that may not be there.
    for path in [
        DocPath::root().field("a").index(3),
        DocPath::root().index(0).field(text),
    ] {
        assert!(line_of(text, &path).is_none_or(|line| line <= lines + 1));
    }
});

fn look_up(text: &str, lines: usize, value: &Value, path: &DocPath, left: &mut usize) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    assert!(
        line_of(text, path).is_none_or(|line| (1..=lines + 1).contains(&line)),
        "{path:?}"
    );
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| look_up(text, lines, item, &path.index(index), left));
        }
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, member)| look_up(text, lines, member, &path.field(name), left));
        }
        _ => {}
    }
}
