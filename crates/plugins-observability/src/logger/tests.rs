//! What entries look like, and which configurations are good.

use super::*;
use serde_json::json;
use weir_plugin::{CallRecord, Exchange, FailedAttempt, LogEntry, LogSink, Outcome, Phases, RouteInfo};
use weir_plugins_testkit::{NOW_MS, build, example, exchange, identity, prepare, record, refused_at};

fn call() -> Exchange {
    let mut exchange = exchange();
    let headers = [
        ("Authorization", "Bearer secret-1"),
        ("X-A", "1"),
        ("x-a", "2"),
        ("Cookie", "s=secret-2"),
    ];
    prepare(&mut exchange, "GET /p?a=1&apikey=secret-3&a=2&b", &headers);
    exchange.route = Some(Arc::new(RouteInfo {
        name: "r1".into(),
        service: "s1".into(),
        ..RouteInfo::default()
    }));
    exchange.identity = Some(identity("alice", Some("c1")));
    exchange.response.status = 201;
    exchange.response.headers.append(b"Set-Cookie", b"secret-4");
    exchange
}

fn entries(config: Value, exchange: &mut Exchange) -> Vec<LogEntry> {
    let mut config = config;
    if config.get("target").is_none() {
        config["target"] = json!({"file": {"path": "/x"}});
    }
    let filter = build(&Logger::default(), &config).expect("valid");
    let mut out = Vec::new();
    filter.on_log(exchange, &record(), &mut out);
    out
}

fn text(config: Value) -> String {
    let mut entries = entries(config, &mut call());
    String::from_utf8(entries.pop().expect("an entry").bytes).expect("text")
}

#[test]
fn layouts_describe_calls_without_secrets() {
    for (layout, pairs) in [
        (
            "full",
            vec![
                ("/request/uri", json!("/p?a=1&apikey=REDACTED&a=2&b")),
                (
                    "/request/url",
                    json!("http://api.example:8000/p?a=1&apikey=REDACTED&a=2&b"),
                ),
                (
                    "/request/querystring",
                    json!({"a": ["1", "2"], "apikey": "REDACTED", "b": true}),
                ),
                (
                    "/request/headers",
                    // The engine has taken the `Host` out: the upstream gets another one.
                    json!({
                        "host": "api.example", "authorization": "REDACTED", "x-a": ["1", "2"],
                        "cookie": "REDACTED",
                    }),
                ),
                ("/request/size", json!(77)),
                ("/response/headers", json!({"set-cookie": "REDACTED"})),
                ("/response/status", json!(201)),
                (
                    "/latencies",
                    json!({"request": 12, "gw\"": 2, "proxy": 10, "receive": 0}),
                ),
                ("/tries/0/ip", json!("10.0.0.9")),
                ("/route/name", json!("r1")),
                (
                    "/consumer",
                    json!({"id": "alice", "username": "ALICE", "custom_id": "cid"}),
                ),
                ("/authenticated_entity/id", json!("c1")),
                ("/started_at", json!(NOW_MS)),
                ("/upstream_status", json!("201")),
            ],
        ),
        (
            "plain",
            vec![
                ("/server/hostname", json!("gw-1")),
                ("/upstream", json!("10.0.0.9:80")),
                ("/latency", json!(12.345)),
                ("/upstream_latency", json!(10.1)),
                ("/gw\"_latency", json!(2.245)),
                ("/route_id", json!("r1")),
                ("/consumer/username", json!("ALICE")),
            ],
        ),
        (
            "event",
            vec![
                ("/request_method", json!("GET")),
                ("/response_status", json!(201)),
            ],
        ),
    ] {
        let text = text(json!({
            "layout": layout, "own_name": "gw\"", "extra_fields": {"more": "$arg_b-$arg_a"},
        }));
        let entry: Value = serde_json::from_str(&text).expect("JSON");
        assert!(text.ends_with("}\n") && !text.contains("secret"), "{text}");
        assert_eq!(entry["more"], "-1");
        for (place, expected) in pairs {
            assert_eq!(entry.pointer(place), Some(&expected), "{layout} {place}: {text}");
        }
    }
}

#[test]
fn services_are_named_by_their_ids() {
    for (label, name) in [(None, "s1"), (Some("s-id"), "s-id"), (Some(""), "")] {
        let mut call = call();
        call.route = Some(Arc::new(RouteInfo {
            name: "r1".into(),
            service: "s1".into(),
            labels: label
                .map(|id| ("service_id".to_owned(), id.to_owned()))
                .into_iter()
                .collect(),
            ..RouteInfo::default()
        }));
        let entry = entries(json!({"layout": "plain"}), &mut call)
            .pop()
            .expect("an entry");
        let entry: Value = serde_json::from_slice(&entry.bytes).expect("JSON");
        assert_eq!(entry["service_id"], name);
    }
}

#[test]
fn fields_of_ones_own() {
    let fields = json!({
        "at": "$time_iso8601", "n": 1, "host": "$host", "none": "$arg_none", "auth": "$http_authorization",
        "in": {"status": "$status", "text": "a ${host} b"}, "args": "$args", "t": "$request_time",
        "line": "$request", "key": "$arg_apikey", "up": "$upstream_status", "node": "$upstream_unresolved_host"
    });
    let text = text(json!({"fields": fields}));
    let entry: Value = serde_json::from_str(&text).expect("JSON");
    let expected = json!({
        "at": "2026-11-20T15:31:00+00:00", "n": 1, "host": "api.example", "auth": "REDACTED",
        "in": {"status": 201, "text": "a api.example b"}, "args": "a=1&apikey=REDACTED&a=2&b", "t": "0.012",
        "line": "GET /p?a=1&apikey=REDACTED&a=2&b HTTP/1.1", "key": "REDACTED", "up": "201",
        "node": "shop.example"
    });
    assert_eq!(entry, expected);
}

#[test]
fn every_try_is_told() {
    let failed = |address: &str| FailedAttempt {
        address: address.parse().ok(),
        ended_us: 1,
        status: 502,
    };
    let two = [failed("10.0.0.1:80"), failed("10.0.0.2:80")];
    for (failures, answered, addresses, statuses) in [
        (&two[..0], Some(200), Some("10.0.0.9:80"), Some("200")),
        (
            &two[..],
            Some(200),
            Some("10.0.0.1:80, 10.0.0.2:80, 10.0.0.9:80"),
            Some("502, 502, 200"),
        ),
        (&two[..], None, Some("10.0.0.1:80, 10.0.0.2:80"), Some("502, 502")),
        (&two[..0], None, None, None),
    ] {
        let config = json!({
            "target": {"file": {"path": "/x"}}, "fields": {"addr": "$upstream_addr", "status": "$upstream_status"},
        });
        let statuses_of_failures: Vec<u16> = failures.iter().map(|it| it.status).collect();
        let record = CallRecord {
            failures,
            failed_tries: &statuses_of_failures,
            upstream_status: answered,
            upstream: addresses.and("10.0.0.9:80".parse().ok()),
            ..record()
        };
        let filter = build(&Logger::default(), &config).expect("valid");
        let mut out = Vec::new();
        filter.on_log(&mut call(), &record, &mut out);
        let entry: Value = serde_json::from_slice(&out[0].bytes).expect("JSON");
        assert_eq!(entry.get("addr").and_then(Value::as_str), addresses);
        assert_eq!(entry.get("status").and_then(Value::as_str), statuses);
    }
}

#[test]
fn entries_have_forms() {
    let at = NOW_MS.to_string();
    for (form, expected) in [
        (json!("lines"), r#"{"m":"GET"}|"#.to_owned()),
        (json!("bare"), r#"{"m":"GET"}"#.to_owned()),
        (
            json!({"syslog": "gw"}),
            r#"<46>1 2026-11-20T15:31:00.012Z api.example gw - - - {"m":"GET"}|"#.to_owned(),
        ),
        (
            json!({"local_syslog": {"facility": 16, "success": 5}}),
            r#"<133>Nov 20 15:31:00 weir: {"m":"GET"}"#.to_owned(),
        ),
        (
            json!({"elasticsearch": {"index": "i-$host", "doc_type": "t"}}),
            r#"{"create":{"_index":"i-api.example","_type":"t"}}|{"m":"GET"}|"#.to_owned(),
        ),
        (
            json!({"loki": {"job": "weir", "r": "$route_name"}}),
            format!(
                r#"{{"stream":{{"job":"weir","r":"r1"}},"values":[["{at}000000","{{\"m\":\"GET\"}}"]]}}"#
            ),
        ),
        (
            json!({"splunk": "src"}),
            r#"{"time":1795188660.012,"host":"gw-1","source":"src","sourcetype":"_json","event":{"m":"GET"}}"#
                .to_owned(),
        ),
        (
            json!({"skywalking": {"service": "s", "instance": "i"}}),
            r#"{"body":{"json":{"json":"{\"m\":\"GET\"}"}},"service":"s","serviceInstance":"i","endpoint":"/p"}"#
                .to_owned(),
        ),
        (
            json!({"skywalking": {"service": "s"}}),
            r#"{"body":{"json":{"json":"{\"m\":\"GET\"}"}},"service":"s","serviceInstance":"gw-1","endpoint":"/p"}"#
                .to_owned(),
        ),
        (json!("events"), r#"{"m":"GET"}"#.to_owned()),
    ] {
        let found = text(json!({"form": form, "fields": {"m": "$request_method"}}));
        assert_eq!(found.replace('\n', "|"), expected, "{form}");
    }
    let quiet = json!({"form": {"local_syslog": {"success": 7, "least": 3}}});
    assert!(entries(quiet, &mut call()).is_empty());
    let mut table = entries(json!({"form": {"clickhouse": "t"}}), &mut call());
    let joint = &table.pop().expect("an entry").target.joint;
    assert_eq!(joint.before, "INSERT INTO t FORMAT JSONEachRow ");
    let mut events = entries(json!({"form": "events"}), &mut call());
    let joint = &events.pop().expect("an entry").target.joint;
    assert_eq!((joint.before.as_ref(), joint.after), ("{\"events\":[", "]}"));
    let lined = json!({"form": {"structured_syslog": {"line_end": true}}});
    assert!(text(lined).ends_with("}\n"));
}

#[test]
fn only_wanted_calls_are_logged() {
    for (when, is_logged) in [
        (json!(["status", "==", 201]), true),
        (json!(["status", "==", 200]), false),
        (
            json!(["OR", ["request_method", "==", "NONE"], ["status", "==", 5]]),
            false,
        ),
    ] {
        let config = json!({"target": {"file": {"path": "/x"}}, "when": when});
        let Ok(filter) = build(&Logger::default(), &config) else {
            panic!("{when}")
        };
        let mut exchange = call();
        exchange.response.status = 201;
        assert_eq!(filter.wants_log(&mut exchange), is_logged, "{when}");
    }
}

#[test]
fn bodies_are_logged_if_configured() {
    let config = json!({
        "target": {"file": {"path": "/x"}},
        "request_body_bytes": 4, "response_body_bytes": 3,
        "response_body_when": ["status", "==", 201],
    });
    let filter = build(&Logger::default(), &config).expect("valid");
    assert_eq!(
        filter.phases(),
        Phases {
            log: true,
            ..Phases::BOTH
        }
    );
    let mut exchange = call();
    exchange.request.has_body = true;
    assert!(matches!(
        filter.on_request(&mut exchange),
        Outcome::NeedBody { .. }
    ));
    exchange.request.body = Some(b"request".to_vec());
    assert!(matches!(filter.on_request(&mut exchange), Outcome::Continue));
    filter.on_response(&mut exchange);
    assert!(exchange.response.body_filters.keep_length());
    let mut passed = Vec::new();
    for piece in [&b"re"[..], b"sponse"] {
        exchange.response.body_filters.piece(piece, &mut passed);
    }
    assert_eq!(passed, b"response");
    let mut out = Vec::new();
    filter.on_log(&mut exchange, &record(), &mut out);
    let entry: Value = serde_json::from_slice(&out[0].bytes).expect("JSON");
    assert_eq!(entry["request"]["body"], "requ");
    assert_eq!(entry["response"]["body"], "res");
    assert_eq!(
        build(&Logger::default(), &json!({"target": {"file": {"path": "/x"}}}))
            .expect("valid")
            .phases(),
        Phases::LOG
    );
}

#[test]
fn targets_are_read() {
    for (url, expected) in [
        (
            "http://h/a?b=1",
            Some(("h", 80, None, "POST /a?b=1 HTTP/1.1\r\nHost: h\r\n")),
        ),
        (
            "https://h",
            Some(("h", 443, Some(true), "POST / HTTP/1.1\r\nHost: h\r\n")),
        ),
        (
            "http://[::1]:81?x",
            Some(("::1", 81, None, "POST /?x HTTP/1.1\r\nHost: [::1]:81\r\n")),
        ),
        ("ftp://h", None),
        ("http://h/a b", None),
        ("http://h\r\nX: y", None),
    ] {
        let target: Target = serde_json::from_value(json!({"http": {"url": url}})).expect("typed");
        match (target.sink(&LogFolder::default(), false), expected) {
            (Ok(LogSink::Http(http)), Some((host, port, tls, head))) => {
                assert_eq!(
                    (http.host.as_str(), http.port, http.tls),
                    (host, port, tls),
                    "{url}"
                );
                let text = String::from_utf8(http.head).expect("text");
                assert!(text.starts_with(head), "{text}");
            }
            (found, expected) => assert!(found.is_err() && expected.is_none(), "{url}: {found:?}"),
        }
    }
    let target: Target = serde_json::from_value(json!({"http": {"url": "http://u:p@h/"}})).expect("typed");
    let Ok(LogSink::Http(http)) = target.sink(&LogFolder::default(), false) else {
        panic!("a server");
    };
    let text = String::from_utf8(http.head).expect("text");
    assert!(
        text.contains("Authorization: Basic dTpw\r\n") && !text.contains("u:p"),
        "{text}"
    );
    assert!(!format!("{target:?}").contains("u:p"));
}

#[test]
fn configurations_are_checked() {
    assert!(build(&Logger::default(), &example(include_str!("mod.rs"))).is_ok());
    let file = json!({"file": {"path": "/x"}});
    for (config, places) in [
        (json!({}), vec!["target.file.path"]),
        (json!({"target": {"tcp": {"port": 1}}}), vec!["target.tcp.host"]),
        (json!({"target": {"http": {"url": "x"}}}), vec!["target.http.url"]),
        (
            json!({"target": file, "fields": {"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}}),
            vec!["fields"],
        ),
        (
            json!({"target": file, "response_body_bytes": 99_999_999}),
            vec!["response_body_bytes"],
        ),
        (
            json!({"target": file, "form": {"local_syslog": {"facility": 99}}}),
            vec!["form"],
        ),
    ] {
        assert_eq!(refused_at(&Logger::default(), &config), places, "{config}");
    }
}

#[test]
fn layouts_describe_sessions_without_requests() {
    let described = |layout: &str| -> Value {
        let config = json!({
            "layout": layout, "own_name": "gw", "target": {"file": {"path": "/x"}},
            "extra_fields": {"via": "$remote_addr"},
        });
        let filter = build(&Logger::default(), &config).expect("valid");
        let mut exchange = exchange();
        exchange.request.client = "192.0.2.7".parse().expect("an address");
        exchange.request.local = "127.0.0.1:5432".parse().expect("an address");
        exchange.request.sni = Some("db.example".into());
        exchange.route = call().route;
        let session = CallRecord {
            session: Some("tls"),
            status: 200,
            upstream_us: None,
            upstream_status: None,
            ..record()
        };
        let mut out = Vec::new();
        filter.on_log(&mut exchange, &session, &mut out);
        serde_json::from_slice(&out.pop().expect("an entry").bytes).expect("JSON")
    };
    let session = json!({
        "protocol": "tls", "status": 200, "received": 77, "sent": 300, "server_port": 5432, "server_name": "db.example",
    });
    let full = json!({
        "session": session, "latencies": {"session": 12, "gw": 0}, "tries": [{"ip": "10.0.0.9", "port": 80}],
        "route": {"name": "r1"}, "service": {"name": "s1"}, "client_ip": "192.0.2.7", "started_at": record().started_ms,
        "via": "192.0.2.7",
    });
    assert_eq!(described("full"), full);
    assert_eq!(described("event"), full, "there is no request to describe");
    let plain = described("plain");
    for (name, expected) in [
        ("session", session),
        ("upstream", json!("10.0.0.9:80")),
        ("route_id", json!("r1")),
        ("client_ip", json!("192.0.2.7")),
        ("latency", json!(12.345)),
        ("request", Value::Null),
        ("response", Value::Null),
    ] {
        assert_eq!(plain[name], expected, "{name}");
    }
}
