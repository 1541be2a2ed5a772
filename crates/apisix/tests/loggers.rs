//! What the loggers become in the catalogue.

use serde_json::{Value, json};
use weir_apisix::{Options, translate};
use weir_model::{PluginRef, Severity};
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::Target;
use weir_plugins::logger::{Config, LogFolder};
use weir_plugins::statsd;

fn document(plugin: &str, config: &Value) -> Value {
    json!({
        "routes": [{
            "id": "r", "uri": "/", "plugins": {plugin: config}, "upstream": {"nodes": {"a:1": 1}}
        }],
        "plugin_metadata": [
            {"id": "tcp-logger", "log_format": {"h": "$host"}, "log_format_extra": {"e": "$uri"}},
            {"id": "file-logger", "path": "/of/all"},
            {"id": "datadog", "host": "agent", "namespace": "edge"}
        ]
    })
}

fn catalogue(plugin: &str, config: &Value) -> Config {
    let (model, _) = translate(&document(plugin, config), &Options::default())
        .unwrap_or_else(|diagnostics| panic!("{plugin} {config}: {diagnostics:?}"));
    match &model.routes[0].plugins[0].plugin {
        Some(PluginRef::Inline(instance)) => {
            assert_eq!(instance.name, "logger");
            let config: Config = serde_json::from_value(instance.config.clone()).expect("typed");
            assert!(
                config.target.sink(&LogFolder::default(), false).is_ok(),
                "{plugin}"
            );
            config
        }
        other => panic!("{plugin} {config}: {other:?}"),
    }
}

#[test]
fn servers_and_forms() {
    let index = json!({"index": "i"});
    for (plugin, config, url, form) in [
        (
            "http-logger",
            json!({"uri": "http://l:1/x"}),
            "http://l:1/x",
            json!("array"),
        ),
        (
            "http-logger",
            json!({"uri": "http://l:1/x", "batch_max_size": 1}),
            "http://l:1/x",
            json!("bare"),
        ),
        (
            "http-logger",
            json!({"uri": "http://l:1/x", "concat_method": "new_line"}),
            "http://l:1/x",
            json!("separated"),
        ),
        (
            "loki-logger",
            json!({"endpoint_addrs": ["http://l:3100"]}),
            "http://l:3100/loki/api/v1/push",
            json!({"loki": {"job": "apisix"}}),
        ),
        (
            "elasticsearch-logger",
            json!({"endpoint_addr": "http://e:9200", "field": index}),
            "http://e:9200/_bulk",
            json!({"elasticsearch": {"index": "i"}}),
        ),
        (
            "clickhouse-logger",
            json!({"endpoint_addr": "http://c:8123", "user": "u", "password": "p", "database": "d", "logtable": "t"}),
            "http://c:8123",
            json!({"clickhouse": "t"}),
        ),
        (
            "splunk-hec-logging",
            json!({"endpoint": {"uri": "http://s:8088/services/collector", "token": "t"}}),
            "http://s:8088/services/collector",
            json!({"splunk": "apache-apisix-splunk-hec-logging"}),
        ),
    ] {
        let found = catalogue(plugin, &config);
        let Target::Http(http) = &found.target else {
            panic!("{plugin}: {:?}", found.target);
        };
        assert_eq!(http.url, url);
        assert_eq!(serde_json::to_value(&found.form).expect("JSON"), form, "{plugin}");
        assert_eq!(found.own_name, "apisix", "{plugin}");
        assert_eq!((found.batch.retries, found.batch.max_pending), (0, 8192));
    }
}

#[test]
fn streams_files_and_formats() {
    let server =
        json!({"host": "h", "port": 9, "batch_max_size": 7, "buffer_duration": 2, "max_retry_count": 3});
    let tcp = catalogue("tcp-logger", &server);
    assert!(matches!(&tcp.target, Target::Tcp(it) if (it.host.as_str(), it.port) == ("h", 9)));
    assert_eq!(
        (tcp.batch.max_entries, tcp.batch.delay_ms, tcp.batch.retries),
        (7, 2000, 3)
    );
    let fields = json!({"h": "$host", "route_id": "$route_id", "service_id": "$service_id"});
    assert_eq!(tcp.fields.map(Value::Object), Some(fields));
    assert!(matches!(catalogue("udp-logger", &server).target, Target::Udp(_)));
    let syslog = catalogue("syslog", &server);
    assert!(matches!(
        (syslog.target, syslog.form),
        (Target::Tcp(_), Form::Syslog(_))
    ));
    let udp = json!({"host": "h", "port": 9, "sock_type": "udp"});
    assert!(matches!(catalogue("syslog", &udp).target, Target::Udp(_)));
    let file = json!({
        "include_req_body": true, "include_resp_body": true, "max_resp_body_bytes": 5,
        "include_resp_body_expr": [["status", "==", 200]],
        "match": [[["status", "==", 200], ["arg_a", "==", "1"]], [["status", "==", 500]]],
    });
    let file = catalogue("file-logger", &file);
    assert!(matches!(&file.target, Target::File(it) if it.path == "/of/all"));
    assert_eq!((file.request_body_bytes, file.response_body_bytes), (524_288, 5));
    assert!(file.request_body_when.is_none() && file.response_body_when.is_some());
    assert_eq!(file.batch.delay_ms, 0);
    let rule = |name: &str, value: Value| json!([name, "==", value]);
    let wanted = json!([
        "OR",
        ["AND", rule("status", 200.into()), rule("arg_a", "1".into())],
        ["AND", rule("status", 500.into())],
    ]);
    assert_eq!(serde_json::to_value(file.when).expect("a condition"), wanted);
}

#[test]
fn options_that_cannot_be_served_are_reported() {
    for (plugin, config, severity, words) in [
        (
            "elasticsearch-logger",
            json!({"endpoint_addr": "http://e:9200", "field": {"index": "i-{%Y}"}}),
            Severity::Dropped,
            "a time in the index is not available",
        ),
        (
            "loki-logger",
            json!({"endpoint_addrs": ["http://a:1", "http://b:1"]}),
            Severity::Warning,
            "the first of these",
        ),
        (
            "http-logger",
            json!({}),
            Severity::Dropped,
            "property \"uri\" is required",
        ),
        (
            "tcp-logger",
            json!({"host": "h", "port": 1, "include_req_body_expr": [["a", "??", 1]]}),
            Severity::Dropped,
            "failed to validate the 'include_req_body_expr' expression",
        ),
    ] {
        let found = match translate(&document(plugin, &config), &Options::default()) {
            Ok((_, found)) | Err(found) => found,
        };
        let is_reported = found
            .iter()
            .any(|it| it.severity == severity && it.message.contains(words));
        assert!(is_reported, "{plugin} {config}: {found:?}");
    }
}

#[test]
fn kafka_gets_brokers_and_users() {
    let sasl = json!({"mechanism": "SCRAM-SHA-256", "user": "u", "password": "p"});
    for (config, brokers, has_user, form) in [
        (
            json!({"broker_list": {"k": 9092}}),
            vec![("k", 9092)],
            false,
            json!("array"),
        ),
        (
            json!({"brokers": [{"host": "k", "port": 1, "sasl_config": sasl}, {"host": "l", "port": 2}],
                   "batch_max_size": 1}),
            vec![("k", 1), ("l", 2)],
            true,
            json!("bare"),
        ),
    ] {
        let mut config = config;
        config["kafka_topic"] = "calls".into();
        config["required_acks"] = (-1).into();
        let found = catalogue("kafka-logger", &config);
        assert_eq!(serde_json::to_value(&found.form).expect("JSON"), form);
        let Target::Kafka(kafka) = &found.target else {
            panic!("{:?}", found.target);
        };
        let addresses: Vec<_> = kafka
            .brokers
            .iter()
            .map(|it| (it.host.as_str(), it.port))
            .collect();
        assert_eq!(addresses, brokers);
        assert_eq!(
            (kafka.sasl.is_some(), kafka.acks, kafka.record_per_entry),
            (has_user, -1, false)
        );
    }
}

#[test]
fn datadog_is_where_metadata_says() {
    let document = document(
        "datadog",
        &json!({"constant_tags": ["team:a"], "include_path": true}),
    );
    let (model, _) = translate(&document, &Options::default()).expect("is accepted");
    let Some(PluginRef::Inline(instance)) = &model.routes[0].plugins[0].plugin else {
        panic!("an instance");
    };
    let config: statsd::Config = serde_json::from_value(instance.config.clone()).expect("typed");
    assert_eq!(
        (instance.name.as_str(), config.prefix.as_str()),
        ("statsd", "edge")
    );
    assert_eq!(config.plain_tags, ["source:apisix", "team:a"]);
    assert_eq!(config.tags.get("path").map(String::as_str), Some("{path}"));
    let stats: Vec<_> = config.metrics.iter().map(|metric| metric.stat.as_str()).collect();
    let expected = [
        "request.counter",
        "request.latency",
        "upstream.latency",
        "apisix.latency",
        "ingress.size",
        "egress.size",
    ];
    assert_eq!(stats, expected);
    let Target::Udp(udp) = &config.target else {
        panic!("{:?}", config.target);
    };
    assert_eq!(
        (udp.host.as_str(), udp.port, udp.line_bytes),
        ("agent", 8125, Some(0))
    );
}

#[test]
fn formats_end_where_they_nest_too_deep() {
    let deep = json!({"a": {"b": {"c": {"d": {"e": {"f": {"g": "$host"}}}, "x": "$uri"}}}});
    let cut = json!({"a": {"b": {"c": {"d": {"e": {}}, "x": "$uri"}}}});
    let found = catalogue("file-logger", &json!({"log_format": deep}));
    assert_eq!(found.fields.expect("a format")["a"], cut["a"]);
    let found = catalogue("file-logger", &json!({"log_format_extra": {"in": deep}}));
    let deepest = &found.extra_fields["in"]["a"]["b"]["c"];
    assert_eq!(*deepest, json!({"d": {}, "x": "$uri"}));
}

#[test]
fn further_fields_are_for_the_usual_entry() {
    let extra = json!({"e": "$uri"});
    for (plugin, config, expected) in [
        ("file-logger", json!({"log_format_extra": extra}), &extra),
        (
            "file-logger",
            json!({"log_format": {"a": "1"}, "log_format_extra": extra}),
            &json!({}),
        ),
        // Its metadata has both.
        ("tcp-logger", json!({"host": "l", "port": 1}), &json!({})),
        (
            "tcp-logger",
            json!({"host": "l", "port": 1, "log_format_extra": extra}),
            &json!({}),
        ),
    ] {
        let found = catalogue(plugin, &config).extra_fields;
        assert_eq!(Value::Object(found), *expected, "{plugin} {config}");
    }
}

#[test]
fn logs_of_clouds_and_events() {
    let sls = json!({"host": "l", "port": 1, "project": "p", "logstore": "l", "access_key_id": "i",
        "access_key_secret": "s"});
    let lago = json!({"endpoint_addrs": ["http://l:1/"], "token": "t", "event_transaction_id": "req_$request_id",
        "event_subscription_id": "c", "event_code": "x", "event_properties": {"s": "$status"}});
    for (plugin, config, place, expected) in [
        (
            "sls-logger",
            sls.clone(),
            "/target/tcp",
            json!({"host": "l", "port": 1, "tls": true, "verify_tls": true, "timeout_ms": 5000}),
        ),
        (
            "sls-logger",
            sls,
            "/form/structured_syslog/data/3",
            json!(["access-key-secret", "s"]),
        ),
        (
            "loggly",
            json!({"customer_token": "t", "severity": "ERR", "tags": ["a", "b"]}),
            "/form/structured_syslog/data",
            json!([["tag", "a"], ["tag", "b"]]),
        ),
        (
            "loggly",
            json!({"customer_token": "t"}),
            "/target/udp",
            json!({"host": "logs-01.loggly.com", "port": 514}),
        ),
        (
            "skywalking-logger",
            json!({"endpoint_addr": "http://l:1/ignored", "service_instance_name": "$hostname"}),
            "/target/http/url",
            json!("http://l:1/v3/logs"),
        ),
        (
            "skywalking-logger",
            json!({"endpoint_addr": "http://l:1", "service_instance_name": "$hostname"}),
            "/form/skywalking",
            json!({"service": "APISIX"}),
        ),
        (
            "lago",
            lago.clone(),
            "/target/http/url",
            json!("http://l:1/api/v1/events/batch"),
        ),
        (
            "lago",
            lago,
            "/fields",
            json!({"transaction_id": "req_$request_id", "external_subscription_id": "c", "code": "x",
                "timestamp": "$msec", "properties": {"s": "$status"}}),
        ),
    ] {
        let made = serde_json::to_value(catalogue(plugin, &config)).expect("JSON");
        assert_eq!(made.pointer(place), Some(&expected), "{plugin} {place}");
    }
}
