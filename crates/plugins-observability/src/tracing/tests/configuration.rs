//! Which configurations are good.

use super::*;
use weir_plugins_testkit::{example, refused_at};

#[test]
fn the_example_is_good() {
    filter(&example(include_str!("../mod.rs")));
    filter(&json!({}));
}

#[test]
fn what_is_wrong_is_refused_at_its_place() {
    for (config, place) in [
        (json!({"sampling": {"ratio": 1.5}}), "sampling.ratio"),
        (json!({"sampling": {"parent": "maybe"}}), "sampling.parent"),
        (json!({"extract": ["w4c"]}), "extract[0]"),
        (json!({"clear": ["a b"]}), "clear[0]"),
        (json!({"echo_header": ""}), "echo_header"),
        (json!({"resource": {"a": []}}), "resource"),
        (
            json!({"export": {"otlp_http": {"url": "x"}}}),
            "export.otlp_http.url",
        ),
        (
            json!({"export": {"otlp_grpc": {"url": "ftp://x"}}}),
            "export.otlp_grpc.url",
        ),
        (
            json!({"export": {"otlp_grpc": {"metadata": {"a b": "c"}}}}),
            "export.otlp_grpc.metadata",
        ),
        (
            json!({"export": {"zipkin": {"http": {"url": "http://a b"}}}}),
            "export.zipkin.url",
        ),
        (json!({"nothing": 1}), "nothing"),
    ] {
        assert_eq!(refused_at(&Tracing::default(), &config), [place], "{config}");
    }
}

#[test]
fn secrets_are_not_shown() {
    let config: Config = serde_json::from_value(json!({
        "export": {"otlp_http": {"url": "http://u:secret-1@h/", "headers": {"Authorization": "secret-2"}}},
    }))
    .expect("a configuration");
    let shown = format!("{config:?}");
    assert!(!shown.contains("secret"), "{shown}");
    let grpc = GrpcTarget {
        metadata: span_config::texts(&[("authorization", "secret-3")]),
        ..GrpcTarget::default()
    };
    assert!(!format!("{grpc:?}").contains("secret"));
}
