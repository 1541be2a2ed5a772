//! Every document of the recorded cases of Kong: those that it refuses are refused, at the same places with the
//! same words, and those that it accepts are translated.

mod shared;

use serde_json::Value;
use shared::cases;
use std::collections::BTreeSet;
use weir_kong::{Options, RouterFlavor, recognises, translate};
use weir_model::document::parse;
use weir_model::{Diagnostic, Severity};
use weir_snapshot::{PersistentState, compile};

fn config(case: &Value) -> String {
    let mut text = case["config"].as_str().expect("a text").to_owned();
    for (placeholder, port) in [("@UP0@", "1"), ("@UP1@", "2"), ("@UP2@", "3"), ("@DEAD@", "4")] {
        text = text.replace(placeholder, port);
    }
    text
}

fn options(case: &Value) -> Options {
    Options {
        router: match case["router_flavor"].as_str() {
            Some("traditional") => RouterFlavor::Traditional,
            _ => RouterFlavor::TraditionalCompatible,
        },
    }
}

fn found(case: &Value) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let document = parse(&config(case)).map_err(|error| vec![error])?;
    let (model, found) = translate(&document, &options(case))?;
    compile(&model, &weir_plugins::registry(), &PersistentState::default()).map(|_| found)
}

fn is_unavailable(found: &[Diagnostic]) -> bool {
    found
        .iter()
        .any(|found| found.message.contains("not available in this version"))
}

/// Kong's tree of complaints as places and messages.
fn flatten(tree: &Value, place: &str, out: &mut BTreeSet<(String, String)>) {
    match tree {
        Value::String(message) => {
            out.insert((place.to_owned(), message.clone()));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(item, &format!("{place}[{index}]"), out);
            }
        }
        Value::Object(fields) => {
            for (name, inner) in fields {
                match (name.as_str(), inner) {
                    ("@entity", Value::Array(messages)) => {
                        for message in messages {
                            flatten(message, place, out);
                        }
                    }
                    _ if place.is_empty() => flatten(inner, name, out),
                    _ => flatten(inner, &format!("{place}.{name}"), out),
                }
            }
        }
        _ => {}
    }
}

/// Refused as well, but in other words than Kong's.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("yaml-scalar", "Kong has no place for it"),
    ("empty-document", "Kong has no place for it"),
    ("tab-indentation", "YAML errors are the parser's"),
    (
        "reference-object-by-name",
        "Kong looks for the fields of a route in the reference",
    ),
    (
        "duplicate-route-names",
        "Kong counts nested entities as if they were flat",
    ),
    ("duplicate-api-keys", "Kong shows the key"),
    (
        "duplicate-plugin-on-route",
        "Kong leaves out the services around the route",
    ),
    (
        "duplicate-instance-names",
        "Kong counts nested entities as if they were flat",
    ),
    (
        "route-unknown-service-id",
        "Kong names routes in the place of their numbers",
    ),
    (
        "credential-unknown-consumer",
        "Kong shows the key in the place of its number",
    ),
];

/// Accepted, though Kong refuses it.
const ACCEPTED: &[(&str, &str)] = &[(
    "pre-function-syntax",
    "code of the administrator is kept, but neither read nor run",
)];

#[test]
fn what_kong_refuses_is_refused_in_its_words() {
    let mut failures = Vec::new();
    let mut count = 0;
    for case in cases() {
        if case["kind"] != "invalid-config" {
            continue;
        }
        count += 1;
        let name = case["name"]
            .as_str()
            .expect("a name")
            .trim_start_matches("invalid/")
            .to_owned();
        let Err(found) = found(&case) else {
            if !ACCEPTED.iter().any(|(accepted, _)| *accepted == name) {
                failures.push(format!("{name}: accepted"));
            }
            continue;
        };
        let has_other_words = OTHER_WORDS.iter().any(|(other, _)| *other == name);
        if is_unavailable(&found) {
            continue;
        }
        let ours: BTreeSet<(String, String)> = found
            .iter()
            .filter(|found| found.severity == Severity::Error)
            .map(|found| (found.path.to_string(), found.message.clone()))
            .collect();
        let mut theirs = BTreeSet::new();
        flatten(&case["expect_errors"]["body"]["fields"], "", &mut theirs);
        if has_other_words {
            assert_ne!(ours, theirs, "{name} can leave the list");
        } else if ours != theirs {
            failures.push(format!("{name}:\n  Weir {ours:?}\n  Kong {theirs:?}"));
        }
    }
    assert!(count > 90, "{count} cases");
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn what_kong_accepts_is_accepted() {
    let mut failures = Vec::new();
    let (mut translated, mut unavailable) = (0, 0);
    for case in cases() {
        if case["kind"] == "invalid-config" {
            continue;
        }
        let name = case["name"].as_str().expect("a name");
        match found(&case) {
            Ok(_) => translated += 1,
            Err(found) if is_unavailable(&found) => unavailable += 1,
            Err(found) => failures.push(format!("{name}: {found:?}")),
        }
        let document = parse(&config(&case)).expect("YAML");
        assert!(recognises(&document), "{name}");
    }
    eprintln!("{translated} translated, {unavailable} use what is not available");
    assert!(translated > 200, "{translated}");
    assert!(
        failures.is_empty(),
        "{} refused:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
