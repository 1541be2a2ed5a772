//! APISIX's plugins, with and without its config.yaml.

use crate::server::{Gateway, ReceivedRequest, server};
use crate::{PARENT, TIMEOUT, TRACE, hex, lines, spans};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Instant;

#[test]
fn apisixs_plugins_trace_and_count() {
    let (upstream, calls) = server();
    let (collector, taken) = server();
    let weir = Gateway::start(
        "apisix.yaml",
        &json!({
            "routes": [
                {
                    "id": "1", "name": "shop", "uris": ["/x/*", "/z"], "host": "h",
                    "upstream": {"type": "roundrobin", "nodes": {upstream.to_string(): 1}},
                    "plugins": {
                        "zipkin": {"endpoint": format!("http://{collector}/api/v2/spans"), "sample_ratio": 1},
                        "prometheus": {"prefer_name": true},
                    },
                },
                {"id": "2", "uri": "/apisix/prometheus/metrics", "plugins": {"public-api": {}}},
                {"id": "3", "uri": "/elsewhere", "plugins": {"public-api": {}}},
            ],
        }),
    );
    weir.get("/x/y?q=1", &[]);
    let call = calls.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(call.header("x-b3-sampled"), "1");
    let taken = taken.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(taken.line, "POST /api/v2/spans HTTP/1.1");
    let spans: Value = serde_json::from_slice(&taken.body).unwrap();
    let names: Vec<&str> = spans
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|span| span["name"].as_str())
        .collect();
    assert_eq!(names, ["apisix.request", "apisix.proxy", "apisix.response_span"]);
    assert_eq!(spans[0]["traceId"], call.header("x-b3-traceid"));
    assert_eq!(spans[1]["id"], call.header("x-b3-spanid"));
    assert_eq!(spans[1]["parentId"], call.header("x-b3-parentspanid"));
    assert_eq!(spans[0]["tags"]["http.url"], "/x/y?q=1");
    assert_eq!(spans[0]["tags"]["apisix.response_source"], "upstream");
    let expected = format!(
        "apisix_http_status{{code=\"200\",route=\"shop\",matched_uri=\"/x/*\",matched_host=\"h\",service=\"\",\
         consumer=\"\",node=\"{}\",request_type=\"traditional_http\",request_llm_model=\"\",llm_model=\"\",\
         response_source=\"upstream\"}} 1",
        upstream.ip()
    );
    let public = weir.get("/apisix/prometheus/metrics", &[]);
    for text in [
        public,
        weir.scrape("/apisix/prometheus/metrics"),
        weir.scrape("/metrics"),
    ] {
        assert_eq!(lines(&text, "apisix_http_status{"), [expected.as_str()]);
        for start in [
            "apisix_http_latency_count{type=\"request\",route=\"shop\"",
            "apisix_http_latency_count{type=\"upstream\",route=\"shop\"",
            "apisix_http_latency_count{type=\"apisix\",route=\"shop\"",
            "apisix_bandwidth{type=\"ingress\",route=\"shop\"",
            "apisix_bandwidth{type=\"egress\",route=\"shop\"",
            "apisix_node_info{hostname=",
        ] {
            assert_eq!(lines(&text, start).len(), 1, "{start}\n{text}");
        }
    }
    assert!(weir.get("/elsewhere", &[]).starts_with("HTTP/1.1 404"));
}

/// A node shows its connections if `public-api` makes that public, and nowhere else.
#[test]
fn the_status_of_a_node_is_public_where_it_is_made_so() {
    let (upstream, calls) = server();
    let weir = Gateway::start(
        "apisix.yaml",
        &json!({
            "routes": [
                {
                    "id": "1", "uri": "/x/*", "plugins": {"node-status": {}},
                    "upstream": {"type": "roundrobin", "nodes": {upstream.to_string(): 1}},
                },
                {"id": "2", "uri": "/apisix/status", "plugins": {"public-api": {}}},
                {"id": "3", "uri": "/node", "plugins": {"public-api": {"uri": "/apisix/status"}}},
            ],
        }),
    );
    let answer = weir.get("/x/apisix/status", &[]);
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    calls.recv_timeout(TIMEOUT).unwrap();
    let mut totals = Vec::new();
    for path in ["/apisix/status", "/node"] {
        let answer = weir.get(path, &[]);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let record: Value = serde_json::from_str(body).expect("JSON");
        assert!(record["id"].as_str().is_some_and(|id| !id.is_empty()), "{record}");
        let number = |name: &str| -> u64 {
            let text = record["status"][name].as_str().expect("a text");
            text.parse().expect("a number")
        };
        assert!(
            number("accepted") >= 1 && number("handled") == number("accepted"),
            "{record}"
        );
        assert!(number("active") <= number("accepted"), "{record}");
        totals.push(number("total"));
    }
    assert!(totals[0] <= totals[1], "{totals:?}");
    assert!(
        weir.get("/nowhere/apisix/status", &[])
            .starts_with("HTTP/1.1 404")
    );
}

/// A document with one route and these plugins.
fn one_route(upstream: SocketAddr, plugins: Value) -> Value {
    json!({
        "routes": [{
            "id": "1", "name": "shop", "uri": "/x/*", "plugins": plugins,
            "upstream": {"type": "roundrobin", "nodes": {upstream.to_string(): 1}},
        }],
    })
}

/// What a collector has got: the call, and the one span in it, as the upstream has seen it.
fn one_span(collector: &Receiver<ReceivedRequest>, calls: &Receiver<ReceivedRequest>) -> ReceivedRequest {
    let call = calls.recv_timeout(TIMEOUT).unwrap();
    let taken = collector.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(taken.line, "POST /v1/traces HTTP/1.1");
    assert_eq!(taken.header("content-type"), "application/x-protobuf");
    let spans = spans(&taken);
    let [span] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert_eq!(span.name, "GET /x/*");
    assert_eq!(
        (hex(&span.trace_id), hex(&span.parent_span_id)),
        (TRACE.into(), PARENT.into())
    );
    assert!(span.start <= span.end);
    assert_eq!(
        call.header("traceparent"),
        format!("00-{TRACE}-{}-01", hex(&span.span_id))
    );
    taken
}

/// Whether the bytes of a message hold a text.
fn holds(taken: &ReceivedRequest, text: &str) -> bool {
    taken.body.windows(text.len()).any(|it| it == text.as_bytes())
}

#[test]
fn opentelemetry_sends_spans_to_the_collector_of_its_metadata() {
    let (upstream, calls) = server();
    let (collector, taken) = server();
    let sampler = json!({"name": "parent_base", "options": {"root": {"name": "always_off"}}});
    let mut document = one_route(
        upstream,
        json!({"opentelemetry": {"sampler": sampler, "additional_attributes": ["arg_q"]}}),
    );
    document["plugin_metadata"] = json!([{
        "id": "opentelemetry",
        "resource": {"service.name": "edge"},
        "collector": {"address": collector.to_string(), "request_headers": {"Authorization": "let me in"}},
        "batch_span_processor": {"inactive_timeout": 0.01},
    }]);
    let weir = Gateway::start("apisix.yaml", &document);
    // Its parent decides: nothing is sampled without one.
    assert!(weir.get("/x/none", &[]).starts_with("HTTP/1.1 200"));
    calls.recv_timeout(TIMEOUT).unwrap();
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    weir.get("/x/y?q=blue", &[("traceparent", &traceparent)]);
    let taken = one_span(&taken, &calls);
    assert_eq!(taken.header("authorization"), "let me in");
    for text in [
        "service.name",
        "edge",
        "http.target",
        "/x/y?q=blue",
        "arg_q",
        "apisix.route_name",
        "shop",
    ] {
        assert!(holds(&taken, text), "{text}");
    }
    assert!(!holds(&taken, "/x/none"));
}

#[test]
fn attributes_of_plugins_count_where_a_config_yaml_gives_them() {
    let (upstream, calls) = server();
    let (collector, taken) = server();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    let settings = json!({
        "apisix": {"node_listen": 9080, "show_upstream_status_in_response_header": true},
        "plugin_attr": {
            "prometheus": {
                "export_uri": "/gw/metrics", "metric_prefix": "gw_", "default_buckets": [7, 70],
                "metrics": {"http_status": {"extra_labels": [{"team": "$http_x_team"}]}},
            },
            "opentelemetry": {
                "collector": {"address": collector.to_string()},
                "batch_span_processor": {"inactive_timeout": 0.01},
            },
            "redirect": {"https_port": 8443},
        },
    });
    std::fs::write(&config, settings.to_string()).unwrap();
    let mut document = one_route(
        upstream,
        json!({"prometheus": {}, "opentelemetry": {"sampler": {"name": "always_on"}}}),
    );
    let more = json!([
        {"id": "2", "uri": "/gw/metrics", "plugins": {"public-api": {}}},
        {"id": "3", "uri": "/tls", "plugins": {"redirect": {"http_to_https": true}}},
    ]);
    document["routes"]
        .as_array_mut()
        .unwrap()
        .extend(more.as_array().unwrap().clone());
    let flags = ["--apisix-config", config.to_str().unwrap()];
    let weir = Gateway::with("apisix.yaml", &document, &flags);
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let answer = weir.get("/x/y", &[("x-team", "blue"), ("traceparent", &traceparent)]);
    assert!(answer.contains("X-APISIX-Upstream-Status: 200"), "{answer}");
    let call = calls.recv_timeout(TIMEOUT).unwrap();
    // Always on: the caller's trace counts nothing.
    let taken = taken.recv_timeout(TIMEOUT).unwrap();
    let spans = spans(&taken);
    assert!(call.header("traceparent").contains(&hex(&spans[0].span_id)));
    let public = weir.get("/gw/metrics", &[]);
    for text in [public, weir.scrape("/gw/metrics")] {
        let counted = lines(&text, "gw_http_status{");
        assert_eq!(counted.len(), 1, "{text}");
        assert!(counted[0].contains("team=\"blue\""), "{}", counted[0]);
        assert_eq!(
            lines(&text, "gw_http_latency_bucket{type=\"request\"").len(),
            3,
            "{text}"
        );
        assert_eq!(lines(&text, "gw_node_info{").len(), 1);
        assert!(!text.contains("apisix_"), "{text}");
    }
    assert!(
        weir.scrape("/apisix/prometheus/metrics")
            .starts_with("HTTP/1.1 404")
    );
    assert!(weir.scrape("/status").contains("apisix.node_listen: is not read"));
    let answer = weir.get("/tls", &[]);
    assert!(
        answer.to_lowercase().contains("location: https://h:8443/tls"),
        "{answer}"
    );
}

#[test]
fn a_config_yaml_that_is_wrong_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "apisix:\n  router: {http: linear}\n").unwrap();
    let ended = std::process::Command::new(env!("CARGO_BIN_EXE_weir"))
        .args([
            "check",
            "--apisix-config",
            config.to_str().unwrap(),
            "apisix.yaml",
        ])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        stderr.contains("config.yaml:2: error: apisix.router.http: expected one of"),
        "{stderr}"
    );
}

/// How the cache says that it has answered.
fn cache_status(answer: &str) -> &str {
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix("Apisix-Cache-Status: "));
    line.unwrap_or(answer)
}

/// Waits until a folder holds so many files of responses.
fn until_files(folder: &Path, count: usize) {
    let began = Instant::now();
    loop {
        let parts = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = parts.flat_map(|part| std::fs::read_dir(part.path()).into_iter().flatten().flatten());
        let whole = files.filter(|file| file.path().extension().is_none()).count();
        if whole == count {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "{whole} files");
        std::thread::yield_now();
    }
}

#[test]
fn responses_that_are_kept_on_a_disk_outlive_the_process() {
    let (upstream, calls) = server();
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let config = folder.path().join("config.yaml");
    let zone = json!({
        "name": "slow", "memory_size": "1m", "disk_size": "8m", "disk_path": kept.to_str().unwrap(),
        "cache_levels": "1:2",
    });
    let settings = json!({"apisix": {"proxy_cache": {"cache_ttl": "1h", "zones": [zone]}}});
    std::fs::write(&config, settings.to_string()).unwrap();
    let document = one_route(
        upstream,
        json!({"proxy-cache": {"cache_strategy": "disk", "cache_zone": "slow"}}),
    );
    let start = || {
        Gateway::with(
            "apisix.yaml",
            &document,
            &["--apisix-config", config.to_str().unwrap()],
        )
    };
    let weir = start();
    for (path, word) in [("/x/1", "MISS"), ("/x/2", "MISS"), ("/x/1", "HIT")] {
        assert_eq!(cache_status(&weir.get(path, &[])), word, "{path}");
    }
    until_files(&kept, 2);
    drop(weir);
    let weir = start();
    for path in ["/x/1", "/x/2"] {
        assert_eq!(cache_status(&weir.get(path, &[])), "HIT", "{path}");
    }
    assert_eq!(calls.try_iter().count(), 2);
    assert!(weir.call("PURGE", "/x/1").starts_with("HTTP/1.1 200"));
    for path in ["/x/1", "/x/none"] {
        assert!(weir.call("PURGE", path).starts_with("HTTP/1.1 404"), "{path}");
    }
    until_files(&kept, 1);
    drop(weir);
    let weir = start();
    for (path, word) in [("/x/1", "MISS"), ("/x/2", "HIT")] {
        assert_eq!(cache_status(&weir.get(path, &[])), word, "{path}");
    }
}

#[test]
fn what_a_rewrite_says_of_the_client_counts() {
    let (upstream, calls) = server();
    let changes = json!({"set": {"X-Forwarded-Host": "shop.test"}, "remove": ["X-Forwarded-Port"]});
    let rewrite = json!({"proxy-rewrite": {"headers": changes}});
    let weir = Gateway::start("apisix.yaml", &one_route(upstream, rewrite));
    let sent: [&[(&str, &str)]; 2] = [
        &[],
        &[
            ("X-Forwarded-Host", "client.test"),
            ("X-Forwarded-Port", "9"),
            ("X-Forwarded-Proto", "https"),
        ],
    ];
    for headers in sent {
        weir.get("/x/y", headers);
        let call = calls.recv_timeout(TIMEOUT).unwrap();
        let forwarded =
            ["host", "port", "proto"].map(|it| call.header(&format!("x-forwarded-{it}")).to_owned());
        assert_eq!(forwarded, ["shop.test", "", "http"], "{headers:?}");
    }
}

/// What no plugin rewrites is forwarded as the client wrote it; `match_uri_encoded_slash` lets routes match it so.
#[test]
fn escaped_slashes_stay_in_their_segments() {
    let (upstream, calls) = server();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    let nodes = json!({"type": "roundrobin", "nodes": {upstream.to_string(): 1}});
    let rewrite = json!({"proxy-rewrite": {"headers": {"set": {"X-Part": "$uri_param_id"}}}});
    let document = json!({"routes": [
        {"id": "1", "uri": "/echo/:id", "upstream": nodes},
        {"id": "2", "uri": "/all/*", "upstream": nodes},
        {"id": "3", "uri": "/part/:id", "upstream": nodes, "plugins": rewrite},
    ]});
    for keeps in [false, true] {
        let router = json!({"http": "radixtree_uri_with_parameter"});
        let settings = json!({"apisix": {"match_uri_encoded_slash": keeps, "router": router}});
        std::fs::write(&config, settings.to_string()).unwrap();
        let flags = ["--apisix-config", config.to_str().unwrap()];
        let weir = Gateway::with("apisix.yaml", &document, &flags);
        for (target, forwarded) in [
            ("/echo/a%2fb", keeps.then_some("/echo/a%2fb")),
            ("/echo/a%41?", Some("/echo/a%41?")),
            ("/all/a%2Fb//c?x=%2F", Some("/all/a%2Fb//c?x=%2F")),
            ("/all/a/../%62%2Fc", Some("/all/b/c")),
            ("/part/a%2Fb", keeps.then_some("/part/a/b")),
        ] {
            let status = if forwarded.is_some() { "200" } else { "404" };
            let answer = weir.get(target, &[]);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{target} {keeps}: {answer}"
            );
            let Some(forwarded) = forwarded else { continue };
            let call = calls.recv_timeout(TIMEOUT).unwrap();
            assert_eq!(call.line, format!("GET {forwarded} HTTP/1.1"), "{target} {keeps}");
            if target.starts_with("/part") {
                assert_eq!(call.header("x-part"), "a%2Fb");
            }
        }
    }
}
