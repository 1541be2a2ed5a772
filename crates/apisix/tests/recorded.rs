//! The configurations of the recorded cases: what APISIX refused is refused in its words, what it loaded loads.

use serde_json::Value;
use std::path::{Path, PathBuf};
use weir_apisix::{Options, Router, prepare, recognises, translate};
use weir_model::{Diagnostic, Severity, document};

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded/apisix")
}

fn cases(topic: &str) -> Vec<Value> {
    let file = recorded().join(format!("{topic}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("a list of cases")
}

fn all_cases() -> Vec<Value> {
    let mut topics: Vec<String> = std::fs::read_dir(recorded())
        .expect("the recorded cases")
        .filter_map(|entry| {
            let name = entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("a text");
            name.strip_suffix(".json").map(str::to_owned)
        })
        .collect();
    topics.sort();
    topics.iter().flat_map(|topic| cases(topic)).collect()
}

fn text<'c>(case: &'c Value, field: &str) -> &'c str {
    case.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn options(case: &Value) -> Options {
    let router = match text(case, "router") {
        "radixtree_uri" => Router::RadixtreeUri,
        "radixtree_uri_with_parameter" => Router::RadixtreeUriWithParameter,
        _ => Router::RadixtreeHostUri,
    };
    Options {
        router,
        delete_uri_tail_slash: router == Router::RadixtreeUri,
        ..Options::default()
    }
}

fn load(case: &Value) -> (Option<weir_model::Model>, Vec<Diagnostic>) {
    let prepared = match prepare(text(case, "config"), &|_| None) {
        Ok(prepared) => prepared,
        Err(diagnostic) => return (None, vec![diagnostic]),
    };
    let document = match document::parse(&prepared) {
        Ok(document) => document,
        Err(diagnostic) => return (None, vec![diagnostic]),
    };
    assert!(recognises(&document), "{}", text(case, "name"));
    match translate(&document, &options(case)) {
        Ok((model, diagnostics)) => (Some(model), diagnostics),
        Err(diagnostics) => (None, diagnostics),
    }
}

fn is_not_available(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity >= Severity::Dropped
        && diagnostic
            .message
            .contains("not available in this version of Weir")
}

#[test]
fn what_the_original_refused_is_refused_in_its_words() {
    let mut faults = Vec::new();
    for case in cases("invalid") {
        let (_, diagnostics) = load(&case);
        // The original's log puts this before what its Admin API answers.
        let words =
            text(&case, "expect_error_regex").trim_start_matches("failed to create vars expression: ");
        let pattern = regex::Regex::new(words).expect("a regular expression");
        let worst: Vec<&Diagnostic> = diagnostics
            .iter()
            .filter(|it| it.severity >= Severity::Dropped)
            .collect();
        let is_reported = worst.iter().any(|it| pattern.is_match(&it.message));
        let lacking = worst.iter().any(|it| is_not_available(it));
        if !is_reported && !lacking {
            let messages: Vec<&str> = worst.iter().map(|it| it.message.as_str()).collect();
            faults.push(format!(
                "{}: expected {words:?}, found {messages:?}",
                text(&case, "name")
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_the_original_loaded_loads_silently() {
    for topic in ["lenient", "standalone-format"] {
        for case in cases(topic) {
            let (model, diagnostics) = load(&case);
            let name = text(&case, "name");
            let dropped = diagnostics.iter().any(|it| it.severity == Severity::Dropped);
            let wanted = name == "standalone-format/invalid-item-skipped-others-live";
            assert_eq!(dropped, wanted, "{name}: {diagnostics:?}");
            assert!(model.is_some(), "{name}: {diagnostics:?}");
        }
    }
}

#[test]
fn every_recorded_configuration_makes_a_model_that_fits_together() {
    let (mut loaded, mut lacking) = (0, 0);
    for case in all_cases()
        .iter()
        .filter(|case| text(case, "kind") != "invalid-config")
    {
        let name = text(case, "name");
        let (model, diagnostics) = load(case);
        match model {
            Some(model) => {
                loaded += 1;
                assert_eq!(model.validate(), Vec::new(), "{name}");
                let native = serde_json::to_value(&model).expect("serializable");
                let again: weir_model::Model = serde_json::from_value(native).expect("readable");
                assert_eq!(again, model, "{name}");
            }
            None => {
                lacking += 1;
                assert!(
                    diagnostics
                        .iter()
                        .all(|it| it.severity != Severity::Error || is_not_available(it)),
                    "{name}: {diagnostics:?}"
                );
            }
        }
    }
    assert!(
        loaded > lacking / 3,
        "{loaded} loaded, {lacking} use what is not available"
    );
}
