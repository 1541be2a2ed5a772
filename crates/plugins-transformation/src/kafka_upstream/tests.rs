//! What records hold, and what becomes of calls.

use super::*;
use serde_json::json;
use weir_plugin::LogSink;
use weir_plugins_testkit::*;

fn config(more: Value) -> Value {
    let mut config = json!({"kafka": {"brokers": [{"host": "127.0.0.1"}], "topic": "orders"}});
    for (name, value) in more.as_object().expect("an object") {
        config[name] = value.clone();
    }
    config
}

/// The first outcome that is not a request for the body, and the call.
fn first(
    config: &Value,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> (Outcome, Exchange, Arc<dyn Filter>) {
    let filter = build(&KafkaUpstream, config).expect("a good configuration");
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    let outcome = with_body(&*filter, &mut exchange, body);
    (outcome, exchange, filter)
}

#[test]
fn the_example_works() {
    let filter = build(&KafkaUpstream, &example(include_str!("mod.rs")));
    assert!(filter.is_ok());
}

#[test]
fn records_hold_the_chosen_parts() {
    let all = json!({"method": true, "uri": true, "headers": true});
    let json_type = [("Content-Type", "application/json")];
    for (more, line, headers, body, expected) in [
        (
            json!({}),
            "POST /a?x=1",
            &json_type[..],
            Some(r#"{"n": 1}"#),
            json!({
                "body": "{\"n\": 1}", "body_args": {"n": 1}
            }),
        ),
        (
            all,
            "POST /a%20b?x=1&x=2&y",
            &[("Content-Type", "text/plain"), ("X-A", "1")],
            Some("hello"),
            json!({
                "method": "POST",
                "headers": {"content-type": "text/plain", "x-a": "1"},
                "uri": "/a%20b?x=1&x=2&y",
                "uri_args": {"x": ["1", "2"], "y": true},
                "body": "hello",
                "body_args": {}
            }),
        ),
        (
            json!({}),
            "POST /",
            &[("Content-Type", "application/x-www-form-urlencoded")],
            Some("a=1&b=c+d"),
            json!({
                "body": "a=1&b=c+d", "body_args": {"a": "1", "b": "c d"}
            }),
        ),
        (
            json!({}),
            "POST /",
            &[("Content-Type", "image/png")],
            Some("png"),
            json!({
                "body": "cG5n", "body_base64": true, "body_args": {}
            }),
        ),
        (
            json!({"body": false, "method": true}),
            "DELETE /a",
            &[],
            Some("not read"),
            json!({"method": "DELETE"}),
        ),
    ] {
        let (outcome, ..) = first(&config(more.clone()), line, headers, body);
        let Outcome::Publish(entry) = outcome else {
            panic!("{more}: {outcome:?}");
        };
        let record: Value = serde_json::from_slice(&entry.bytes).expect("JSON");
        assert_eq!(record, expected, "{more}");
        assert!(
            matches!(&entry.target.sink, LogSink::Kafka(kafka) if kafka.topic == "orders" && kafka.each_line)
        );
    }
}

/// What becomes of a call: whether it waits, what becomes of its record (`None`: nothing, in time), and the words of its
/// outcomes.
#[test]
fn calls_end_as_their_records_do() {
    for (wait, is_taken, expected) in [
        (true, Some(true), &["wait", "reply 200"][..]),
        (true, Some(false), &["wait", "plugin_failed 502"]),
        (true, None, &["wait", "plugin_failed 504"]),
        (false, None, &["reply 200"]),
        (false, Some(false), &["reply 200"]),
    ] {
        let (outcome, mut exchange, filter) = first(&config(json!({"wait": wait})), "POST /", &[], Some("a"));
        let Outcome::Publish(entry) = outcome else {
            panic!("{outcome:?}");
        };
        let mut receipt = entry.receipt;
        let mut words = Vec::new();
        assert_eq!(receipt.is_some(), wait);
        loop {
            let outcome = filter.on_request(&mut exchange);
            words.push(word(&outcome));
            if !matches!(outcome, Outcome::Suspend(_)) {
                break;
            }
            match is_taken {
                Some(true) => receipt.take().expect("not used yet").confirm(),
                Some(false) => drop(receipt.take()),
                None => {}
            }
        }
        assert_eq!(words, expected, "{wait} {is_taken:?}");
    }
}

#[test]
fn records_are_bounded() {
    let sent = |most: usize, body: &str| {
        let headers = [("Content-Type", "application/json")];
        let (outcome, ..) = first(
            &config(json!({"max_record_bytes": most})),
            "POST /",
            &headers,
            Some(body),
        );
        match outcome {
            Outcome::Publish(entry) => format!("{} bytes", entry.bytes.len()),
            outcome => word(&outcome),
        }
    };
    // `body` and `body_args` both have the text.
    assert_eq!(sent(46, r#""aaaaaaaa""#), "46 bytes");
    assert_eq!(sent(45, r#""aaaaaaaa""#), "answered 413");
    // A body that is larger than the bound is not given to the filter.
    let filter = build(&KafkaUpstream, &config(json!({}))).expect("a good configuration");
    let mut exchange = exchange();
    prepare(&mut exchange, "POST /", &[]);
    exchange.request.has_body = true;
    assert_eq!(word(&filter.on_request(&mut exchange)), "body");
    assert_eq!(word(&filter.on_request(&mut exchange)), "answered 413");
}

#[test]
fn a_call_without_a_body_has_no_broken_json() {
    let headers = [("Content-Type", "application/json")];
    let (outcome, ..) = first(&config(json!({})), "GET /", &headers, None);
    assert!(matches!(outcome, Outcome::Publish(_)), "{outcome:?}");
}

#[test]
fn what_is_no_json_is_not_sent() {
    for content_type in ["application/json", "Application/JSON; charset=utf-8"] {
        let headers = [("Content-Type", content_type)];
        let (outcome, ..) = first(&config(json!({})), "POST /", &headers, Some("{"));
        assert_eq!(word(&outcome), "answered 400", "{content_type}");
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, place) in [
        (json!({}), "kafka.brokers"),
        (
            config(json!({"kafka": {"brokers": [{"host": "h"}], "topic": "a b"}})),
            "kafka.topic",
        ),
        (config(json!({"body": false})), "body"),
        (config(json!({"max_record_bytes": 1 << 30})), "max_record_bytes"),
    ] {
        let faults = build(&KafkaUpstream, &config).err().expect("refused");
        assert_eq!(faults[0].path.to_string(), place, "{config}");
    }
}
