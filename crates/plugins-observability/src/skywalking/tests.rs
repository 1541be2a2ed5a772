//! Segments and headers of calls, and which configurations are good.

use super::*;
use weir_plugins_testkit::{build, exchange, prepare, record, refused_at};

const SW8: &str = "1-dC0x-cy4y-3-c2hvcA==-c2hvcEBo-L2E=-MTAuMC4wLjE6ODA=";

fn filter(config: &Value) -> Arc<dyn Filter> {
    build(&Skywalking::default(), config).expect("a good configuration")
}

fn config() -> Value {
    json!({"service": "edge", "instance": "edge-1"})
}

/// Runs a call; returns the header for the upstream, and the segment.
fn run(config: &Value, headers: &[(&str, &str)], record: &CallRecord<'_>) -> (Option<String>, Option<Value>) {
    let filter = filter(config);
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /a/b?c=d", headers);
    assert!(matches!(filter.on_request(&mut exchange), Outcome::Continue));
    let header = exchange.request.headers.get(b"sw8");
    let header = header.map(|value| String::from_utf8_lossy(value).into_owned());
    exchange.response.status = record.status;
    let mut out = Vec::new();
    if filter.wants_log(&mut exchange) {
        filter.on_log(&mut exchange, record, &mut out);
    }
    let segment = out
        .first()
        .map(|entry| serde_json::from_slice(&entry.bytes).expect("JSON"));
    (header, segment)
}

fn forwarded() -> CallRecord<'static> {
    CallRecord {
        status: 200,
        started_ms: 5,
        started_us: 5_000,
        total_us: 12_000,
        forwarded_us: Some(1_000),
        upstream_us: Some(10_000),
        upstream_status: Some(200),
        upstream: Some(([10, 0, 0, 9], 80).into()),
        ..record()
    }
}

#[test]
fn a_call_begins_a_trace() {
    let (caller, segment) = run(&config(), &[], &forwarded());
    let caller = Caller::read(caller.expect("a header").as_bytes()).expect("well-formed");
    let segment = segment.expect("a segment");
    assert_eq!(segment["traceId"], caller.trace_id.as_str());
    assert_eq!(segment["traceSegmentId"], caller.segment_id.as_str());
    assert_ne!(caller.trace_id, caller.segment_id);
    assert_eq!(
        (caller.span_id, caller.service.as_str(), caller.instance.as_str()),
        (1, "edge", "edge-1")
    );
    assert_eq!(
        (caller.endpoint.as_str(), caller.peer.as_str()),
        ("/a/b", "upstream service")
    );
    let wanted = json!([
        {
            "operationName": "/a/b", "startTime": 6, "endTime": 16, "spanType": "Exit", "spanId": 1, "parentSpanId": 0,
            "isError": false, "spanLayer": "Http", "componentId": 6000, "peer": "upstream service",
        },
        {
            "operationName": "/a/b", "startTime": 5, "endTime": 17, "spanType": "Entry", "spanId": 0,
            "parentSpanId": -1, "isError": false, "spanLayer": "Http", "componentId": 6000,
            "tags": [
                {"key": "http.method", "value": "GET"},
                {"key": "http.params", "value": "http://api.example/a/b?c=d"},
                {"key": "http.status", "value": "200"},
            ],
        },
    ]);
    assert_eq!(segment["spans"], wanted);
    assert_eq!(
        (&segment["service"], &segment["serviceInstance"]),
        (&json!("edge"), &json!("edge-1"))
    );
}

#[test]
fn a_call_goes_on_with_its_callers_trace() {
    let (caller, segment) = run(&config(), &[("sw8", SW8)], &forwarded());
    let caller = Caller::read(caller.expect("a header").as_bytes()).expect("well-formed");
    let segment = segment.expect("a segment");
    assert_eq!(
        (caller.trace_id.as_str(), &segment["traceId"]),
        ("t-1", &json!("t-1"))
    );
    let wanted = json!([{
        "refType": "CrossProcess", "traceId": "t-1", "parentTraceSegmentId": "s.2", "parentSpanId": 3,
        "parentService": "shop", "parentServiceInstance": "shop@h", "parentEndpoint": "/a",
        "networkAddressUsedAtPeer": "10.0.0.1:80",
    }]);
    assert_eq!(segment["spans"][1]["refs"], wanted);
    // One that is not well-formed, or two, begin a trace.
    for headers in [&[("sw8", "x")][..], &[("sw8", SW8), ("sw8", SW8)]] {
        let (caller, segment) = run(&config(), headers, &forwarded());
        assert_ne!(segment.expect("a segment")["traceId"], "t-1");
        let caller = caller.expect("a header");
        assert!(Caller::read(caller.as_bytes()).is_some_and(|it| it.trace_id != "t-1"));
    }
}

#[test]
fn failures_and_own_answers_are_reported() {
    let own = CallRecord {
        status: 401,
        upstream: None,
        upstream_status: None,
        upstream_us: None,
        ..forwarded()
    };
    let away = CallRecord {
        status: 502,
        upstream_status: None,
        ..forwarded()
    };
    for (record, errors) in [
        (own, vec![false]),
        (away, vec![true, true]),
        (forwarded(), vec![false, false]),
    ] {
        let (_, segment) = run(&config(), &[], &record);
        let segment = segment.expect("a segment");
        let spans = segment["spans"].as_array().expect("spans");
        let found: Vec<bool> = spans.iter().map(|it| it["isError"] == true).collect();
        assert_eq!(found, errors, "{}", record.status);
    }
}

#[test]
fn instances_without_a_name_have_that_of_the_host() {
    let (_, segment) = run(&json!({"service": "edge"}), &[], &forwarded());
    assert_eq!(segment.expect("a segment")["serviceInstance"], record().hostname);
}

#[test]
fn calls_that_are_not_sampled_pass_as_they_are() {
    let mut config = config();
    config["sample_ratio"] = 0.into();
    let (header, segment) = run(&config, &[("sw8", SW8)], &forwarded());
    assert_eq!((header.as_deref(), segment), (Some(SW8), None));
}

#[test]
fn configurations_are_checked() {
    for (config, place) in [
        (json!({"sample_ratio": 1.1}), "sample_ratio"),
        (json!({"server": {"url": "x"}}), "server.url"),
        (json!({"batch": {"max_pending_bytes": 1_u64 << 31}}), "batch"),
    ] {
        assert_eq!(refused_at(&Skywalking::default(), &config), [place], "{config}");
    }
}
