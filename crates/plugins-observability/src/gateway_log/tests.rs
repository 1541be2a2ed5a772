//! What lines become on their way, and which configurations are good.

use super::*;
use serde_json::json;
use weir_plugins_testkit::{build, refused_at};

#[test]
fn lines_have_the_forms_of_their_targets() {
    let tcp = json!({"tcp": {"host": "l", "port": 1}});
    let line = "2026 WARN a \"b\"";
    for (form, before, entry) in [
        (json!("lines"), "", "2026 WARN a \"b\"\n"),
        (json!("json"), "", "\"2026 WARN a \\\"b\\\"\"\n"),
        (
            json!({"skywalking": {"service": "s"}}),
            "[",
            r#"{"service":"s","serviceInstance":"host-1","endpoint":"","body":{"text":{"text":"2026 WARN a \"b\""}}}"#,
        ),
        (
            json!({"skywalking": {"service": "s", "instance": "i"}}),
            "[",
            r#"{"service":"s","serviceInstance":"i","endpoint":"","body":{"text":{"text":"2026 WARN a \"b\""}}}"#,
        ),
        (
            json!({"clickhouse": "t"}),
            "INSERT INTO t FORMAT JSONEachRow ",
            r#"{"data":"2026 WARN a \"b\""}"#,
        ),
    ] {
        let config = json!({"target": tcp, "form": form, "level": "info"});
        let filter = build(&GatewayLog::default(), &config).expect("valid");
        assert_eq!(filter.phases(), Phases::default());
        let takes = filter.gateway_log().expect("it takes lines");
        assert_eq!(takes.level(), GatewayLogLevel::Info);
        let made = takes.entry(line, "host-1");
        assert_eq!(
            (
                &*made.target.joint.before,
                String::from_utf8_lossy(&made.bytes).as_ref()
            ),
            (before, entry)
        );
    }
}

#[test]
fn levels_are_ordered_by_what_matters() {
    assert!(GatewayLogLevel::Error < GatewayLogLevel::Warn);
    assert!(GatewayLogLevel::Warn < GatewayLogLevel::Info);
    assert!(GatewayLogLevel::Info < GatewayLogLevel::Debug);
}

#[test]
fn bad_configurations_are_refused_where_they_are_wrong() {
    let tcp = json!({"tcp": {"host": "l", "port": 1}});
    for (config, place) in [
        (json!({}), "target.tcp.host"),
        (
            json!({"target": {"tcp": {"host": "a b", "port": 1}}}),
            "target.tcp.host",
        ),
        (json!({"target": tcp, "level": "loud"}), "level"),
        (
            json!({"target": tcp, "batch": {"max_pending_bytes": 1_u64 << 40}}),
            "batch",
        ),
        (
            json!({"target": {"rocketmq": {"topic": "t"}}}),
            "target.rocketmq.nameservers",
        ),
    ] {
        let found = refused_at(&GatewayLog::default(), &config);
        assert!(
            found.iter().any(|it| it.starts_with(place)),
            "{config}: {found:?}"
        );
    }
}
