//! Any text as an OpenAPI document: it is read or refused at a place of the text, and whatever is read can be linted,
//! compared, and exported.
#![no_main]

use std::collections::HashSet;
use weir_apis::lint::{Options, Ruleset, run};
use weir_apis::{Finding, diff, export, openapi, postman};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let lines = text.split(['\n', '\r']).count();
    let has_place = |found: &Finding| {
        found
            .position
            .is_some_and(|it| (1..=lines + 1).contains(&it.line) && it.column >= 1)
    };
    let description = match openapi::read(text) {
        Ok(description) => description,
        Err(found) => {
            assert!(!found.is_empty() && found.iter().all(has_place), "{found:?}");
            if let Ok(value) = openapi::parse(text) {
                let _ = postman::convert(&value).map(|it| openapi::from_value(it.document));
            }
            return;
        }
    };
    assert!(description.faults.iter().all(has_place));
    let ids: HashSet<&str> = description.operations.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), description.operations.len());
    assert!(diff::diff(&description, &description).operations.is_empty());
    let findings = run(
        text,
        &description,
        &Ruleset::default(),
        Options {
            base_path: Some("/v1"),
        },
    );
    assert!(findings.iter().all(has_place), "{findings:?}");
    let exported = export::export(&description, &[], None, &[], |_| false);
    let again = openapi::from_value(exported).expect("what was exported can be read");
    assert!(again.operations.len() <= description.operations.len());
    let _ = Ruleset::parse(text);
});
