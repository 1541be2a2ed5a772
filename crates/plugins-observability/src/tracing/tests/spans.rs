//! Spans in both formats, read by another reader than the one that wrote them.

use super::*;
use prost::Message;
use weir_plugin::{FailedAttempt, LogSink, RouteInfo};
use weir_plugins_testkit::identity;

/// The used parts of OTLP, with the numbers of its `.proto` files.
mod proto {
    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    pub struct ResourceSpans {
        #[prost(message, optional, tag = "1")]
        pub resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        pub scope_spans: Vec<ScopeSpans>,
    }
    #[derive(Clone, PartialEq, Message)]
    pub struct Resource {
        #[prost(message, repeated, tag = "1")]
        pub attributes: Vec<KeyValue>,
    }
    #[derive(Clone, PartialEq, Message)]
    pub struct ScopeSpans {
        #[prost(message, optional, tag = "1")]
        pub scope: Option<Scope>,
        #[prost(message, repeated, tag = "2")]
        pub spans: Vec<Span>,
    }
    #[derive(Clone, PartialEq, Message)]
    pub struct Scope {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(string, tag = "2")]
        pub version: String,
    }
    #[derive(Clone, PartialEq, Message)]
    pub struct Span {
        #[prost(bytes = "vec", tag = "1")]
        pub trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        pub span_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "4")]
        pub parent_span_id: Vec<u8>,
        #[prost(string, tag = "5")]
        pub name: String,
        #[prost(int32, tag = "6")]
        pub kind: i32,
        #[prost(fixed64, tag = "7")]
        pub start: u64,
        #[prost(fixed64, tag = "8")]
        pub end: u64,
        #[prost(message, repeated, tag = "9")]
        pub attributes: Vec<KeyValue>,
        #[prost(message, repeated, tag = "11")]
        pub events: Vec<Event>,
        #[prost(message, optional, tag = "15")]
        pub status: Option<Status>,
        #[prost(fixed32, tag = "16")]
        pub flags: u32,
    }
    #[derive(Clone, PartialEq, Message)]
    pub struct Event {
        #[prost(fixed64, tag = "1")]
        pub time: u64,
        #[prost(string, tag = "2")]
        pub name: String,
    }
    #[derive(Clone, PartialEq, Message)]
    pub struct Status {
        #[prost(string, tag = "2")]
        pub message: String,
        #[prost(int32, tag = "3")]
        pub code: i32,
    }
    #[derive(Clone, PartialEq, Message)]
    pub struct KeyValue {
        #[prost(string, tag = "1")]
        pub key: String,
        #[prost(message, optional, tag = "2")]
        pub value: Option<AnyValue>,
    }
    #[derive(Clone, PartialEq, Message)]
    pub struct AnyValue {
        #[prost(oneof = "AttributeValue", tags = "1, 2, 3, 4")]
        pub held: Option<AttributeValue>,
    }
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum AttributeValue {
        #[prost(string, tag = "1")]
        Text(String),
        #[prost(bool, tag = "2")]
        Flag(bool),
        #[prost(int64, tag = "3")]
        Whole(i64),
        #[prost(double, tag = "4")]
        Fraction(f64),
    }
}

/// A call that was routed, with a caller that is known.
fn call(headers: &[(&str, &str)]) -> Exchange {
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /p?a=1", headers);
    exchange.route = Some(Arc::new(RouteInfo {
        name: "r1".into(),
        service: "s1".into(),
        ..RouteInfo::default()
    }));
    exchange.identity = Some(identity("alice", Some("c1")));
    exchange
}

/// The attributes as `key=value` lines, in order.
fn attributes(list: &[proto::KeyValue]) -> Vec<String> {
    let text = |it: &proto::KeyValue| match it.value.clone().and_then(|value| value.held) {
        Some(proto::AttributeValue::Text(text)) => format!("{}={text}", it.key),
        Some(proto::AttributeValue::Flag(flag)) => format!("{}={flag}", it.key),
        Some(proto::AttributeValue::Whole(whole)) => format!("{}={whole} (int)", it.key),
        Some(proto::AttributeValue::Fraction(fraction)) => format!("{}={fraction} (double)", it.key),
        None => it.key.clone(),
    };
    let mut lines: Vec<String> = list.iter().map(text).collect();
    lines.sort();
    lines
}

fn otlp(
    config: &Value,
    exchange: &mut Exchange,
    record: &CallRecord<'_>,
) -> (Vec<proto::Span>, Arc<weir_plugin::LogTarget>) {
    let entries = run(&*filter(config), exchange, record);
    let [entry] = entries.as_slice() else {
        panic!("one entry")
    };
    let scope = proto::ScopeSpans::decode(entry.bytes.as_slice()).expect("Protocol Buffers");
    (scope.spans, Arc::clone(&entry.target))
}

fn to_collector() -> Value {
    json!({"otlp_http": {"url": "http://127.0.0.1:4318/v1/traces", "headers": {"X-Key": "k"}}})
}

#[test]
fn a_call_is_exported_in_otlp() {
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut exchange = call(&[
        ("traceparent", traceparent),
        ("User-Agent", "curl/8"),
        ("X-Team", "blue"),
    ]);
    let config = json!({"export": to_collector(), "header_attributes": ["x-te*", "absent"]});
    let (spans, _) = otlp(&config, &mut exchange, &record());
    let trace = exchange.trace.expect("a place");
    let [root, tried] = spans.as_slice() else {
        panic!("two spans")
    };
    assert_eq!((root.name.as_str(), root.kind), ("GET r1", 2));
    assert_eq!(root.trace_id, trace.trace_id.to_be_bytes());
    assert_eq!(root.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(
        (root.start, root.end),
        (NOW_MS * 1_000_000, (NOW_MS + 12) * 1_000_000)
    );
    assert_eq!((root.status.clone(), root.flags), (None, 1));
    assert_eq!(
        attributes(&root.attributes),
        [
            "client.address=10.0.0.1",
            "http.request.method=GET",
            "http.response.status_code=200 (int)",
            "http.route=r1",
            "network.peer.address=10.0.0.1",
            "network.peer.port=4711 (int)",
            "network.protocol.version=1.1",
            "server.address=api.example",
            "server.port=8000 (int)",
            "url.path=/p",
            "url.scheme=http",
            "user_agent.original=curl/8",
            "weir.consumer=ALICE",
            "weir.service=s1",
            "x-team=blue",
        ]
    );
    assert_eq!((tried.name.as_str(), tried.kind), ("GET", 3));
    assert_eq!(tried.span_id, trace.upstream_id.to_be_bytes());
    assert_eq!(tried.parent_span_id, root.span_id);
    assert_eq!(tried.start, (NOW_MS + 1) * 1_000_000);
    assert_eq!(
        attributes(&tried.attributes),
        [
            "http.request.method=GET",
            "http.request.resend_count=1 (int)",
            "http.response.status_code=200 (int)",
            "network.peer.address=10.0.0.9",
            "network.peer.port=80 (int)",
        ]
    );
}

#[test]
fn what_stands_around_the_spans_makes_them_a_request() {
    let config = json!({
        "export": to_collector(),
        "service_name": "edge",
        "resource": {"deployment.environment": "test", "n": 1, "f": 0.5, "b": true},
    });
    let mut exchange = call(&[]);
    let (_, target) = otlp(&config, &mut exchange, &record());
    let LogSink::Http(http) = &target.sink else {
        panic!("HTTP")
    };
    let head = String::from_utf8_lossy(&http.head);
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n") && head.contains("X-Key: k\r\n"));
    assert!(head.contains("Content-Type: application/x-protobuf\r\n"));
    let [scope, resource] = target.joint.nesting.as_slice() else {
        panic!("two levels")
    };
    assert_eq!((scope.key, resource.key), (0x12, 0x0a));
    let scope = proto::ScopeSpans::decode(scope.before.as_slice()).expect("a scope");
    assert_eq!(scope.scope.map(|it| it.name).as_deref(), Some("weir"));
    let decoded = proto::ResourceSpans::decode(resource.before.as_slice()).expect("a resource");
    let mut lines = attributes(&decoded.resource.expect("a resource").attributes);
    let known = ["service.instance.id=", "service.version="];
    lines.retain(|line| !known.iter().any(|it| line.starts_with(it)));
    assert_eq!(
        lines,
        [
            "b=true",
            "deployment.environment=test",
            "f=0.5 (double)",
            "host.name=gw-1",
            "n=1 (int)",
            "service.name=edge",
        ]
    );
}

#[test]
fn tries_and_failures_are_exported() {
    let failures = [
        FailedAttempt {
            address: Some("10.0.0.8:80".parse().expect("an address")),
            ended_us: 3_000,
            status: 502,
        },
        FailedAttempt {
            address: None,
            ended_us: 5_000,
            status: 503,
        },
    ];
    for (answered, status, names) in [
        (
            Some(200),
            200,
            vec![("1", 3_000, 2), ("2", 5_000, 2), ("3", 12_000, 0)],
        ),
        (None, 503, vec![("1", 3_000, 2), ("2", 5_000, 2)]),
    ] {
        let record = CallRecord {
            failures: &failures,
            upstream_status: answered,
            status,
            ..record()
        };
        let mut exchange = call(&[]);
        exchange.response.is_gateway = answered.is_none();
        let (spans, _) = otlp(&json!({"export": to_collector()}), &mut exchange, &record);
        let upstream_id = exchange.trace.expect("a place").upstream_id.to_be_bytes();
        let error = spans[0].status.as_ref().map(|it| (it.code, it.message.as_str()));
        assert_eq!(error, answered.is_none().then_some((2, "gateway error: 503")));
        let attempts = &spans[1..];
        assert_eq!(attempts.len(), names.len());
        for (span, (number, end, code)) in attempts.iter().zip(names) {
            let attributes_of_span = attributes(&span.attributes);
            assert!(attributes_of_span.contains(&format!("http.request.resend_count={number} (int)")));
            assert_eq!(span.end, (NOW_MS * 1000 + end) * 1000);
            assert_eq!(span.status.as_ref().map_or(0, |it| it.code), code);
        }
        let leader = attempts.last().map(|span| span.span_id.clone());
        assert_eq!(leader.as_deref(), Some(&upstream_id[..]));
    }
}

#[test]
fn a_call_is_exported_to_zipkin() {
    let config = json!({
        "service_name": "edge",
        "short_ids": true,
        "tags_header": "Zipkin-Tags",
        "extract": [],
        "default_format": "b3",
        "spans": {
            "root": {
                "name": "$request_method",
                "attributes": {"http.status_code": "$status", "fg": "1", "none": "$arg_none"},
                "durations": [{"name": "wait", "from": "forward", "to": "answer"}],
                "events": [{"name": "sr", "at": "start"}],
            },
            "parts": [{"name": "proxy", "from": "forward", "to": "end", "kind": "client", "leads": true}],
            "attempts": {
                "name": "GET (balancer try", "number_in_name": true, "number": "try", "address": "", "port": "",
                "status_on_failure_only": true, "leads": false, "attributes": {},
            },
        },
        "export": {"zipkin": {
            "http": {"url": "http://z:9411/api/v2/spans"}, "local_endpoint": true, "short_ids": true,
        }},
    });
    let mut exchange = call(&[("zipkin-tags", "fg=2; a = b c ;broken;=x")]);
    let entries = run(&*filter(&config), &mut exchange, &record());
    let trace = exchange.trace.expect("a place");
    let text = format!("[{}]", String::from_utf8_lossy(&entries[0].bytes));
    let spans: Value = serde_json::from_str(&text).expect("JSON");
    let (root, proxy, upstream) = (
        format!("{:016x}", trace.span_id),
        format!("{:016x}", trace.upstream_id),
        json!({"serviceName": "s1", "ipv4": "10.0.0.9", "port": 80}),
    );
    let at = NOW_MS * 1000;
    let local = json!({"serviceName": "edge", "ipv4": "10.0.0.2", "port": 8000});
    let trace_id = format!("{:016x}", trace.trace_id);
    assert_eq!(
        spans,
        json!([
            {
                "traceId": trace_id, "id": root, "name": "GET", "kind": "SERVER", "timestamp": at,
                "duration": 12_000, "localEndpoint": local,
                "remoteEndpoint": {"ipv4": "10.0.0.1", "port": 4711},
                "tags": {"fg": "2", "http.status_code": "200", "a": "b c", "wait": "10"},
                "annotations": [{"timestamp": at, "value": "sr"}],
            },
            {
                "traceId": trace_id, "id": proxy, "parentId": root, "name": "proxy", "kind": "CLIENT",
                "timestamp": at + 1_000, "duration": 11_000, "localEndpoint": local, "remoteEndpoint": upstream,
            },
            {
                "traceId": trace_id, "id": spans[2]["id"], "parentId": root, "name": "GET (balancer try 1)",
                "kind": "CLIENT", "timestamp": at + 1_000, "duration": 11_000, "localEndpoint": local,
                "remoteEndpoint": upstream, "tags": {"try": "1"},
            },
        ])
    );
    assert_eq!(header(&exchange, "x-b3-spanid"), proxy);
    assert_eq!(header(&exchange, "x-b3-parentspanid"), root);
    let joint = &entries[0].target.joint;
    assert_eq!(
        (joint.before.as_ref(), joint.between, joint.after),
        ("[", ",", "]")
    );
}

#[test]
fn the_trace_is_echoed_to_the_client_if_configured() {
    let mut exchange = call(&[]);
    let config = json!({"echo_header": "X-Trace-Id"});
    run(&*filter(&config), &mut exchange, &record());
    let trace_id = exchange.response.headers.get(b"x-trace-id").map(<[u8]>::to_vec);
    assert_eq!(
        trace_id.as_deref(),
        Some(&exchange.trace.expect("a place").trace_digits()[..])
    );
}

#[test]
fn a_client_that_went_is_exported() {
    let mut exchange = call(&[]);
    let filter = filter(&json!({"export": to_collector()}));
    filter.on_request(&mut exchange);
    exchange.response.status = 200;
    let gone = CallRecord {
        status: 499,
        ..record()
    };
    let entries = account(&*filter, &mut exchange, &gone);
    let scope = proto::ScopeSpans::decode(entries[0].bytes.as_slice()).expect("Protocol Buffers");
    let found = attributes(&scope.spans[0].attributes);
    assert!(
        found.contains(&"http.response.status_code=499 (int)".to_owned()),
        "{found:?}"
    );
}
