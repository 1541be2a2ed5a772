//! Tests of `dubbo` from a user's view, without a provider.

use super::*;
use serde_json::json;
use weir_plugin::Step;
use weir_plugins_testkit::*;

fn config() -> Value {
    json!({"service": "s", "method": "m", "parameter_types": "I", "max_body_bytes": 8})
}

#[test]
fn a_body_becomes_arguments_or_is_refused() {
    let by_header = json!({"serialized_header": "X-S", "serialized": true});
    for (change, header, body, expected, end) in [
        (
            json!({"parameter_types": ""}),
            "",
            None,
            "continue",
            "\n\"\"\n{}\n",
        ),
        (json!({}), "", None, "unacceptable 400", ""),
        (json!({}), "", Some("[1,2]"), "unacceptable 400", ""),
        (
            json!({"parameter_types": "IZ"}),
            "",
            Some("[1,\"a\"]"),
            "continue",
            "\n\"IZ\"\n1\n\"a\"\n{}\n",
        ),
        (json!({}), "", Some("1"), "unacceptable 400", ""),
        (json!({}), "", Some("[1,2,3,4]"), "answered 413", ""),
        (
            json!({"serialized": true}),
            "",
            Some("1"),
            "continue",
            "\n1\n{}\n",
        ),
        (
            json!({"serialized_header": "X-S"}),
            "true",
            Some("1"),
            "continue",
            "\n1\n{}\n",
        ),
        // The header counts, and not what is configured.
        (by_header.clone(), "false", Some("1"), "unacceptable 400", ""),
        (by_header, "", Some("[2]"), "continue", "\n2\n{}\n"),
    ] {
        let mut whole = config();
        let change = change.as_object().expect("a map").clone();
        whole.as_object_mut().expect("a map").extend(change);
        let filter = build(&Dubbo, &whole).expect("valid");
        let mut call = exchange();
        prepare(&mut call, "POST /", &[("X-S", header)]);
        let outcome = with_body(&*filter, &mut call, body);
        assert_eq!(word(&outcome), expected, "{whole} {body:?}");
        assert_eq!(call.upstream_dialogue.is_some(), expected == "continue");
        if let Some(mut spoken) = call.upstream_dialogue.take() {
            assert_eq!(call.upstream_timeouts.read_ms, Some(6_000));
            let Step::Write(message) = spoken.dialogue.begin(true) else {
                panic!("an invocation comes first");
            };
            assert!(message.ends_with(end.as_bytes()), "{}", message.escape_ascii());
        }
    }
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    let filter = build(&Dubbo, &config()).expect("valid");
    let mut call = exchange();
    call.request.has_body = true;
    let outcome = filter.on_request(&mut call);
    assert!(
        matches!(outcome, Outcome::NeedBody { max_bytes: 8 }),
        "{outcome:?}"
    );
    assert_eq!(word(&filter.on_request(&mut call)), "answered 413");
}

#[test]
fn faults_are_found_where_they_are() {
    let with = |more: Value| {
        let mut config = config();
        let more = more.as_object().expect("a map").clone();
        config.as_object_mut().expect("a map").extend(more);
        config
    };
    for (config, places) in [
        (json!({"service": "", "method": ""}), vec!["service", "method"]),
        (
            with(json!({"parameter_types": "java.lang.Long"})),
            vec!["parameter_types"],
        ),
        (
            with(json!({"serialized_header": "a b"})),
            vec!["serialized_header"],
        ),
        (
            with(json!({"max_body_bytes": MAX_BODY + 1, "max_answer_bytes": 0})),
            vec!["max_body_bytes", "max_answer_bytes"],
        ),
        (
            with(json!({"connect_timeout_ms": 0, "write_timeout_ms": 0, "read_timeout_ms": 600_001})),
            vec!["connect_timeout_ms", "write_timeout_ms", "read_timeout_ms"],
        ),
        (example(include_str!("mod.rs")), vec![]),
    ] {
        assert_eq!(refused_at(&Dubbo, &config), places, "{config}");
    }
}
