//! What the plugins that log become in the catalogue.

use serde_json::{Value, json};
use weir_kong::{Options, translate};
use weir_model::{Diagnostic, Model, PluginRef};
use weir_plugins::kafka_consume;
use weir_plugins::kafka_upstream;
use weir_plugins::logger::{Config, LogFolder};
use weir_plugins::statsd;

fn read(plugin: &str, config: &Value) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let document = json!({
        "_format_version": "3.0",
        "services": [{
            "name": "s",
            "url": "http://127.0.0.1:1",
            "routes": [{ "name": "r", "paths": ["/x"], "plugins": [{ "name": plugin, "config": config }] }],
        }],
    });
    translate(&document, &Options::default())
}

fn catalogue(plugin: &str, config: &Value) -> Value {
    let (model, found) = read(plugin, config).expect("is accepted");
    assert!(found.is_empty(), "{found:?}");
    let instance = match model.routes[0].plugins[0].plugin.as_ref().expect("a plugin") {
        PluginRef::Inline(instance) => instance,
        PluginRef::Shared(id) => model.plugins.iter().find(|it| it.id == *id).expect("shared"),
    };
    match instance.name.as_str() {
        "statsd" => {
            let typed: statsd::Config = serde_json::from_value(instance.config.clone()).expect("typed");
            assert!(
                typed.target.sink(&LogFolder::default(), false).is_ok(),
                "{plugin}"
            );
        }
        "kafka-upstream" => {
            let typed: kafka_upstream::Config =
                serde_json::from_value(instance.config.clone()).expect("typed");
            assert!(typed.kafka.sink().is_ok(), "{plugin}");
        }
        "kafka-consume" => {
            let typed: kafka_consume::Config =
                serde_json::from_value(instance.config.clone()).expect("typed");
            assert!(!typed.topics.is_empty(), "{plugin}");
        }
        name => {
            assert_eq!(name, "logger");
            let typed: Config = serde_json::from_value(instance.config.clone()).expect("typed");
            assert!(
                typed.target.sink(&LogFolder::default(), false).is_ok(),
                "{plugin}"
            );
        }
    }
    instance.config.clone()
}

#[test]
fn targets_and_forms() {
    for (plugin, config, expected) in [
        (
            "file-log",
            json!({"path": "/tmp/x.log", "reopen": true}),
            vec![
                ("/target/file", json!({"path": "/tmp/x.log", "reopen": true})),
                ("/form", json!("lines")),
                ("/own_name", json!("kong")),
            ],
        ),
        (
            "http-log",
            json!({
                "http_endpoint": "http://l:9/x", "method": "PUT", "headers": {"X-A": "1"},
                "queue": {"max_batch_size": 5, "max_coalescing_delay": 0.5, "max_retry_time": 7}
            }),
            vec![
                ("/target/http/url", json!("http://l:9/x")),
                ("/target/http/method", json!("PUT")),
                ("/target/http/headers", json!({"X-A": "1"})),
                ("/form", json!("array_or_object")),
                ("/batch/max_entries", json!(5)),
                ("/batch/delay_ms", json!(500)),
                ("/batch/retry_for_ms", json!(7000)),
                ("/batch/retry_delay_ms", json!(10)),
                ("/batch/max_pending", json!(10_000)),
            ],
        ),
        (
            "tcp-log",
            json!({"host": "h", "port": 9, "tls": true, "tls_sni": "n"}),
            vec![
                ("/target/tcp/tls", json!(true)),
                ("/target/tcp/server_name", json!("n")),
                ("/form", json!("lines")),
            ],
        ),
        (
            "udp-log",
            json!({"host": "h", "port": 9}),
            vec![("/target/udp/port", json!(9)), ("/batch/max_entries", json!(1))],
        ),
        (
            "syslog",
            json!({"facility": "local3", "server_errors_severity": "crit", "log_level": "warning"}),
            vec![
                ("/form/local_syslog/facility", json!(19)),
                ("/form/local_syslog/server_error", json!(2)),
                ("/form/local_syslog/success", json!(6)),
                ("/form/local_syslog/least", json!(4)),
            ],
        ),
    ] {
        let found = catalogue(plugin, &config);
        for (place, value) in expected {
            assert_eq!(found.pointer(place), Some(&value), "{plugin} {place}");
        }
    }
}

#[test]
fn code_is_refused() {
    let config = json!({"path": "/tmp/x", "custom_fields_by_lua": {"a": "return 1"}});
    let found = read("file-log", &config).expect_err("is refused");
    assert!(
        found[0].message.contains("code in Lua is not available")
            && found[0].path.to_string().contains("custom"),
        "{found:?}"
    );
}

#[test]
fn numbers_are_sent_under_their_names() {
    let stats = |config: &Value| -> Vec<String> {
        let metrics = config["metrics"].as_array().expect("a list").iter();
        metrics
            .map(|metric| {
                let text = |field: &str| metric[field].as_str().unwrap_or("text").to_owned();
                format!("{} {} {}", text("stat"), text("kind"), text("value"))
            })
            .collect()
    };
    let found = catalogue(
        "statsd",
        &json!({"hostname_in_prefix": true, "allow_status_codes": ["200-299"]}),
    );
    assert_eq!(found["prefix"], "kong.node.{node_path}");
    assert_eq!(found["statuses"], json!([{"from": 200, "to": 299}]));
    assert_eq!(
        found["target"],
        json!({"udp": {"host": "localhost", "port": 8125, "line_bytes": 0}})
    );
    assert_eq!(
        stats(&found),
        [
            "{scope}.request.count counter count",
            "{scope}.latency timer total-ms",
            "{scope}.request.size counter request-bytes",
            "{scope}.status.{status} counter count",
            "{scope}.response.size counter response-bytes",
            "{scope}.user.uniques set text",
            "{scope}.user.{custom_id}.request.count counter count",
            "{scope}.upstream_latency timer upstream-ms",
            "{scope}.kong_latency timer gateway-ms",
            "{scope}.user.{custom_id}.status.{status} counter count",
            "{scope}.workspace.default.status.{status} counter count",
            "route.{route}.user.{custom_id}.status.{status} counter count",
        ]
    );
    let tagged = catalogue("statsd", &json!({"tag_style": "signalfx", "use_tcp": true}));
    assert_eq!((&tagged["style"], stats(&tagged).len()), (&json!("signalfx"), 6));
    assert_eq!(tagged["tags"]["consumer"], "{custom_id}");
    assert!(tagged["target"]["tcp"].is_object());
    let datadog = catalogue("datadog", &json!({"service_name_tag": "svc"}));
    assert_eq!(
        datadog["tags"],
        json!({"svc": "{service_path}", "status": "{status}"})
    );
    assert_eq!(stats(&datadog)[2], "request.size timer request-bytes");
    assert_eq!(datadog["metrics"][0]["plain_tags"], json!(["app:kong"]));
    assert_eq!(datadog["metrics"][0]["tags"], json!({"consumer": "{custom_id}"}));
}

#[test]
fn loggly_gets_its_token_and_tags() {
    let found = catalogue(
        "loggly",
        &json!({"key": "k-1", "tags": ["a"], "server_errors_severity": "err"}),
    );
    let form = &found["form"]["structured_syslog"];
    assert_eq!(form["data_id"], "k-1@41058");
    assert_eq!(
        (&form["data"], &form["server_error"]),
        (&json!([["tag", "a"]]), &json!(3))
    );
    assert_eq!(found["target"]["udp"]["host"], "logs-01.loggly.com");
}

#[test]
fn topics_of_kafka() {
    let servers = json!([{"host": "k", "port": 9092}]);
    let user = json!({"strategy": "sasl", "mechanism": "SCRAM-SHA-256", "user": "u", "password": "p"});
    let made = catalogue(
        "kafka-log",
        &json!({"bootstrap_servers": servers, "topic": "t", "authentication": user, "producer_request_acks": -1}),
    );
    let target = &made["target"]["kafka"];
    assert_eq!(target["brokers"], servers);
    assert_eq!(target["sasl"]["mechanism"], "SCRAM-SHA-256");
    assert_eq!((&target["acks"], &target["topic"]), (&json!(-1), &json!("t")));
    assert_eq!(made["batch"]["max_pending"], 50_000);
    for (config, place) in [
        (
            json!({"bootstrap_servers": servers, "topic": "t", "authentication": {"strategy": "sasl"}}),
            "plugins[0]",
        ),
        (json!({"topic": "t"}), "bootstrap_servers"),
        (
            json!({"bootstrap_servers": servers, "topic": "t", "producer_request_acks": 2}),
            "producer_request_acks",
        ),
    ] {
        let found = read("kafka-log", &config).expect_err("is refused");
        let paths: Vec<String> = found.iter().map(|it| it.path.to_string()).collect();
        assert!(paths.iter().any(|path| path.contains(place)), "{paths:?}");
    }
}

#[test]
fn calls_as_records_of_kafka() {
    let servers = json!([{"host": "k", "port": 9092}]);
    let made = catalogue(
        "kafka-upstream",
        &json!({"bootstrap_servers": servers, "topic": "t", "forward_uri": true, "producer_async": false}),
    );
    assert_eq!(made["kafka"]["brokers"], servers);
    let parts = ["method", "uri", "headers", "body", "wait"].map(|part| made[part] == true);
    assert_eq!(parts, [false, true, false, true, true]);
    let key = json!({
        "bootstrap_servers": servers, "topic": "t", "cluster_api_key": "k", "cluster_api_secret": "s"
    });
    let made = catalogue("confluent", &key);
    assert_eq!(
        (&made["kafka"]["tls"], &made["wait"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        made["kafka"]["sasl"],
        json!({"mechanism": "PLAIN", "user": "k", "password": "s"})
    );
    for (name, config, place) in [
        ("kafka-upstream", json!({"topic": "t"}), "bootstrap_servers"),
        ("kafka-upstream", json!({"bootstrap_servers": servers}), "topic"),
        (
            "kafka-upstream",
            json!({"bootstrap_servers": servers, "topic": "t", "forward_body": false}),
            "plugins[0]",
        ),
        (
            "confluent",
            json!({"bootstrap_servers": servers, "topic": "t"}),
            "cluster_api_key",
        ),
    ] {
        let found = read(name, &config).expect_err("is refused");
        let paths: Vec<String> = found.iter().map(|it| it.path.to_string()).collect();
        assert!(paths.iter().any(|path| path.contains(place)), "{name} {paths:?}");
    }
}

/// A configuration of one of the plugins that read records.
fn consuming(more: &Value) -> Value {
    let mut config = json!({
        "bootstrap_servers": [{"host": "k", "port": 9092}], "topics": [{"name": "t"}]
    });
    for (name, value) in more.as_object().expect("an object") {
        config[name] = value.clone();
    }
    config
}

#[test]
fn records_of_kafka_as_answers() {
    for (more, field, expected) in [
        (json!({}), "topics", json!(["t"])),
        (json!({}), "mode", json!("once")),
        (json!({"mode": "server-sent-events"}), "mode", json!("events")),
        (json!({"message_deserializer": "json"}), "values", json!("json")),
        // `latest` means what it says only with the other option.
        (json!({"auto_offset_reset": "latest"}), "start", json!("earliest")),
        (
            json!({"auto_offset_reset": "latest", "enforce_latest_offset_reset": true}),
            "start",
            json!("latest"),
        ),
        (json!({"commit_strategy": "off"}), "store_offsets", json!(false)),
        (
            json!({"consumer_group": {"mode": "manual", "consumer_group_id": "g"}}),
            "group",
            json!("g"),
        ),
        (json!({"security": {"ssl": true}}), "verify_tls", json!(false)),
        (
            json!({"security": {"ssl": true, "ssl_verify": true}}),
            "verify_tls",
            json!(true),
        ),
        (
            json!({"authentication": {
                "strategy": "sasl", "mechanism": "SCRAM-SHA-512", "user": "u", "password": "p"
            }}),
            "sasl",
            json!({"mechanism": "SCRAM-SHA-512", "user": "u", "password": "p"}),
        ),
    ] {
        let made = catalogue("kafka-consume", &consuming(&more));
        assert_eq!(made[field], expected, "{more}");
    }
    let key = json!({"cluster_api_key": "k", "cluster_api_secret": "s", "timeout": 5});
    let made = catalogue("confluent-consume", &consuming(&key));
    let values = ["tls", "verify_tls", "timeout_ms", "sasl"].map(|field| made[field].clone());
    let user = json!({"mechanism": "PLAIN", "user": "k", "password": "s"});
    assert_eq!(values, [json!(true), json!(true), json!(5), user]);
}

#[test]
fn what_cannot_be_read_is_refused_by_its_name() {
    let certificate = "fdac360e-7b19-4ade-a553-6dd22937c82f";
    for (more, place) in [
        (json!({"mode": "websocket"}), "mode"),
        (json!({"enable_dlq": true, "dlq_topic": "d"}), "enable_dlq"),
        (
            json!({"message_by_lua_functions": ["return 1"]}),
            "message_by_lua_functions",
        ),
        (
            json!({"schema_registry": {"confluent": {"url": "http://r"}}}),
            "schema_registry",
        ),
        (
            json!({"topics": [{"name": "t", "schema_registry": {"confluent": {"url": "http://r"}}}]}),
            "topics",
        ),
        (
            json!({"consumer_group": {"mode": "kong_consumer"}}),
            "consumer_group",
        ),
        (json!({"consumer_group": {"mode": "manual"}}), "consumer_group"),
        (json!({"security": {"certificate_id": certificate}}), "security"),
        (json!({"authentication": {"tokenauth": true}}), "authentication"),
        (json!({"bootstrap_servers": null}), "bootstrap_servers"),
        (json!({"bootstrap_servers": []}), "bootstrap_servers"),
        (json!({"topics": null}), "topics"),
        (json!({"commit_strategy": "sometimes"}), "commit_strategy"),
    ] {
        let found = read("kafka-consume", &consuming(&more)).expect_err("is refused");
        let paths: Vec<String> = found.iter().map(|it| it.path.to_string()).collect();
        assert!(paths.iter().any(|path| path.contains(place)), "{more} {paths:?}");
    }
}
