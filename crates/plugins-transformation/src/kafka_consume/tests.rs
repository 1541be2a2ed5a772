//! What calls are answered with, whatever brokers do.

use super::*;
use serde_json::json;
use weir_plugin::{KafkaPartition, KafkaRecord};
use weir_plugins_testkit::*;

fn config(more: Value) -> Value {
    let mut config = json!({"brokers": [{"host": "127.0.0.1"}], "topics": ["orders", "returns"]});
    for (name, value) in more.as_object().expect("an object") {
        config[name] = value.clone();
    }
    config
}

fn record(value: &[u8]) -> KafkaRecord {
    KafkaRecord {
        offset: 7,
        timestamp_ms: 1000,
        key: None,
        value: Some(value.to_vec()),
        headers: Vec::new(),
    }
}

fn partition(records: Vec<KafkaRecord>) -> KafkaPartition {
    KafkaPartition {
        topic: "orders".to_owned(),
        partition: 2,
        high_watermark: 9,
        last_stable_offset: 8,
        records,
    }
}

#[test]
fn the_example_works() {
    let filter = build(&KafkaConsume, &example(include_str!("mod.rs")));
    assert!(filter.is_ok());
}

#[test]
fn faults_are_named_with_their_places() {
    for (more, place, words) in [
        (json!({"topics": []}), "topics", "expected 1 to 32"),
        (
            json!({"topics": ["a", "b c"]}),
            "topics[1]",
            "expected 1 to 249 letters",
        ),
        (json!({"topics": ["a", "a"]}), "topics[1]", "named twice"),
        (json!({"brokers": []}), "brokers", "at least one"),
        (json!({"group": ""}), "group", "expected 1 to 200"),
        (json!({"max_records": 0}), "max_records", "at least 1"),
        (json!({"max_bytes": 9_000_000}), "max_bytes", "at most 8388608"),
        (json!({"wait_ms": 60_001}), "wait_ms", "at most 60000"),
        (json!({"timeout_ms": 0}), "timeout_ms", "at least 1"),
        (json!({"max_clients": 0}), "max_clients", "at least 1"),
        (json!({"mode": "websocket"}), "mode", "unknown variant"),
    ] {
        let Err(faults) = build(&KafkaConsume, &config(more.clone())) else {
            panic!("{more} is accepted");
        };
        assert_eq!(faults[0].path.to_string(), place, "{more}");
        assert!(faults[0].message.contains(words), "{more}: {}", faults[0].message);
    }
}

/// What becomes of a call with this result of the engine.
#[test]
fn calls_are_answered_with_records() {
    let found = vec![partition(vec![record(b"a")])];
    let empty = json!({"orders": {"partitions": {}}, "returns": {"partitions": {}}});
    let full = json!({
        "orders": {"partitions": {"2": {
            "errcode": 0, "high_watermark": 9, "last_stable_offset": 8,
            "records": [{"offset": 7, "timestamp": 1000, "key": null, "value": "a"}],
        }}},
        "returns": {"partitions": {}},
    });
    let filter = build(&KafkaConsume, &config(json!({"group": "g"}))).expect("a good configuration");
    let cases: Vec<(KafkaAnswer, Result<Value, &str>)> = vec![
        (Ok(found), Ok(full)),
        (Ok(Vec::new()), Ok(empty)),
        (Err(KafkaFailure::Timeout), Err("plugin_failed 504")),
        (Err(KafkaFailure::Unavailable), Err("plugin_failed 502")),
        (Err(KafkaFailure::Unreadable), Err("plugin_failed 502")),
    ];
    for (answer, expected) in cases {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[]);
        let Outcome::Kafka(KafkaWork::Read(read)) = filter.on_request(&mut exchange) else {
            panic!("it reads");
        };
        assert_eq!(
            (read.group.as_str(), read.source.max_records, read.source.start),
            ("g", 500, KafkaStart::Latest)
        );
        exchange.filter_state.put_answer(Some(Box::new(answer)));
        match (filter.on_request(&mut exchange), expected) {
            (Outcome::Reply(reply), Ok(expected)) => {
                let body: Value = serde_json::from_slice(&reply.body).expect("JSON");
                assert_eq!(body, expected);
            }
            (outcome, expected) => assert_eq!(Err(word(&outcome).as_str()), expected),
        }
    }
}

#[test]
fn only_get_is_answered() {
    let filter = build(&KafkaConsume, &config(json!({}))).expect("a good configuration");
    for method in ["POST /", "HEAD /"] {
        let mut exchange = exchange();
        prepare(&mut exchange, method, &[]);
        assert_eq!(word(&filter.on_request(&mut exchange)), "answered 405");
    }
}

#[test]
fn streams_are_counted_and_have_groups_of_their_own() {
    let more = json!({"mode": "events", "max_clients": 1, "group": "g", "values": "json"});
    let filter = build(&KafkaConsume, &config(more)).expect("a good configuration");
    let mut first = exchange();
    prepare(&mut first, "GET /", &[]);
    let Outcome::Kafka(KafkaWork::Events(events)) = filter.on_request(&mut first) else {
        panic!("it is a stream");
    };
    assert_eq!(events.read.group, format!("g.{}", first.request.client));
    let mut written = Vec::new();
    events
        .form
        .write(&partition(vec![record(b"{\"n\": \"a\\nb\"}")]), &mut written);
    let expected = concat!(
        "id: orders/2/7\n",
        r#"data: {"offset":7,"partition":2,"timestamp":1000,"topic":"orders","value":{"n":"a\nb"},"key":null}"#,
        "\n\n"
    );
    let (id, data) = std::str::from_utf8(&written)
        .expect("text")
        .split_once('\n')
        .expect("lines");
    let (expected_id, expected_data) = expected.split_once('\n').expect("lines");
    assert_eq!((id, data.matches('\n').count()), (expected_id, 2));
    let parsed = |line: &str| -> Value { serde_json::from_str(&line["data: ".len()..]).expect("JSON") };
    assert_eq!(parsed(data), parsed(expected_data));
    let mut second = exchange();
    prepare(&mut second, "GET /", &[]);
    assert_eq!(word(&filter.on_request(&mut second)), "overloaded 503");
    // Its place is free once the first call is over.
    first.filter_state.clear();
    let mut third = exchange();
    prepare(&mut third, "GET /", &[]);
    assert_eq!(word(&filter.on_request(&mut third)), "events of Kafka");
}

/// A client may have any number of addresses, and each would be a group that brokers keep for days.
#[test]
fn brokers_keep_groups_of_consumers_only() {
    for (mode, consumer, keeps) in [
        ("events", Some("alice"), true),
        ("events", None, false),
        ("once", None, true),
    ] {
        let filter = build(&KafkaConsume, &config(json!({"mode": mode}))).expect("a good configuration");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[]);
        exchange.identity = consumer.map(|id| identity(id, None));
        let read = match filter.on_request(&mut exchange) {
            Outcome::Kafka(KafkaWork::Events(events)) => events.read,
            Outcome::Kafka(KafkaWork::Read(read)) => read,
            other => panic!("{}", word(&other)),
        };
        assert_eq!(read.source.keeps_offsets, keeps, "{mode} {consumer:?}");
    }
}

#[test]
fn values_that_are_no_text_and_no_json_are_told() {
    let headers = vec![("h".to_owned(), Some(b"1".to_vec())), ("n".to_owned(), None)];
    for (is_json, value, expected) in [
        (
            false,
            Some(&b"\xff"[..]),
            json!({"value": "/w==", "value_base64": true}),
        ),
        (true, Some(b"[1]"), json!({"value": [1]})),
        (true, Some(b"[1"), json!({"value": "[1", "value_is_json": false})),
        (true, None, json!({"value": null})),
    ] {
        let read = KafkaRecord {
            value: value.map(<[u8]>::to_vec),
            key: Some(b"k".to_vec()),
            headers: headers.clone(),
            ..record(b"")
        };
        let whole = RecordForm { is_json }.whole(&["orders".to_owned()], &[partition(vec![read])]);
        let whole: Value = serde_json::from_slice(&whole).expect("JSON");
        let mut expected = expected;
        expected["offset"] = 7.into();
        expected["timestamp"] = 1000.into();
        expected["key"] = "k".into();
        expected["headers"] = json!([{"name": "h", "value": "1"}, {"name": "n", "value": null}]);
        assert_eq!(whole["orders"]["partitions"]["2"]["records"][0], expected);
    }
}
