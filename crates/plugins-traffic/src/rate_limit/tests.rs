//! `rate-limit` as its users see it.

use super::*;
use serde_json::json;
use weir_plugin::{Exchange, Outcome, SubrequestResponse};
use weir_plugins_testkit::*;

/// What prepares a call, and its outcome.
type Step<'s> = (fn(&mut Exchange), &'s str);

/// Sends calls to one instance.
fn calls(config: Value, steps: &[Step<'_>]) {
    let plugin = RateLimit::default();
    let filter = build(&plugin, &config).expect("valid");
    let mut exchange = exchange();
    for (number, (prepare_call, expected)) in steps.iter().enumerate() {
        prepare(&mut exchange, "GET /path/a", &[]);
        prepare_call(&mut exchange);
        assert_eq!(
            word(&filter.on_request(&mut exchange)),
            *expected,
            "call {number} of {config}"
        );
    }
}

fn plain(_: &mut Exchange) {}

fn elsewhere(exchange: &mut Exchange) {
    exchange.request.client = "10.0.0.9".parse().expect("an address");
}

fn tenant(exchange: &mut Exchange) {
    exchange.request.headers.append(b"X-Tenant", b"a");
}

fn other_tenant(exchange: &mut Exchange) {
    exchange.request.headers.append(b"x-tenant", b"b");
}

fn address_as_tenant(exchange: &mut Exchange) {
    exchange.request.headers.append(b"x-tenant", b"10.0.0.1");
}

fn alice(exchange: &mut Exchange) {
    exchange.identity = Some(identity("alice", Some("k1")));
}

fn alice_again(exchange: &mut Exchange) {
    exchange.identity = Some(identity("alice", Some("k2")));
}

fn nameless(exchange: &mut Exchange) {
    exchange.identity = Some(identity("bob", Some("")));
}

fn other_path(exchange: &mut Exchange) {
    exchange.request.raw_path = b"/path/b".to_vec();
}

fn limit_of_two(exchange: &mut Exchange) {
    exchange.request.headers.append(b"x-limit", b"2");
}

fn limit_of_words(exchange: &mut Exchange) {
    exchange.request.headers.append(b"x-limit", b"two");
}

fn limit_of_zero(exchange: &mut Exchange) {
    exchange.request.headers.append(b"x-limit", b"0");
}

fn limit_beyond_all(exchange: &mut Exchange) {
    exchange.request.headers.append(b"x-limit", b"9999999999999999");
}

fn limit_with_underscore(exchange: &mut Exchange) {
    exchange.request.headers.append(b"X_Limit", b"2");
}

const OK: &str = "continue";
const OVER: &str = "rate_limited 429";

#[test]
fn calls_are_counted_by_what_is_told() {
    let by = |by: Value| json!({"limits": [{"count": 1, "per": "hour"}], "by": by});
    calls(
        json!({"limits": [{"count": 1, "per": "hour"}]}),
        &[(plain, OK), (elsewhere, OK), (plain, OVER)],
    );
    calls(
        by(json!({"header": "X-Tenant"})),
        &[
            (tenant, OK),
            (other_tenant, OK),
            (tenant, OVER),
            (address_as_tenant, OK),
            (plain, OK),
            (plain, OVER),
        ],
    );
    calls(
        by(json!("consumer")),
        &[
            (alice, OK),
            (alice_again, OVER),
            (nameless, OK),
            (plain, OK),
            (plain, OVER),
        ],
    );
    calls(
        by(json!("credential")),
        &[
            (alice, OK),
            (alice_again, OK),
            (alice, OVER),
            (nameless, OK),
            (nameless, OVER),
        ],
    );
    calls(
        by(json!({"path": "/path/a"})),
        &[
            (plain, OK),
            (elsewhere, OVER),
            (other_path, OK),
            (other_path, OVER),
        ],
    );
    calls(by(json!("everybody")), &[(plain, OK), (elsewhere, OVER)]);
    calls(
        by(json!("service")),
        &[(plain, OK), (elsewhere, OK), (plain, OVER)],
    );
    calls(
        by(json!({"template": "$remote_addr $http_x_tenant"})),
        &[
            (tenant, OK),
            (other_tenant, OK),
            (tenant, OVER),
            (plain, OK),
            (plain, OVER),
        ],
    );
    calls(
        by(json!({"template": "$http_x_tenant"})),
        &[(tenant, OK), (plain, OK), (plain, OVER)],
    );
}

#[test]
fn limits_come_from_variables_and_rules() {
    let count = json!({"limits": [{"count": "${http_x_limit ?? 1}", "per": {"seconds": 60}}], "status": 503});
    calls(
        count,
        &[
            (limit_of_two, OK),
            (limit_of_two, OK),
            (limit_of_two, "rate_limited 503"),
            (plain, "rate_limited 503"),
            (limit_of_words, "plugin_failed 500"),
            (limit_of_zero, "plugin_failed 500"),
            (limit_beyond_all, "plugin_failed 500"),
        ],
    );
    let underscore = json!({"limits": [{"count": "${http_x_limit ?? 1}", "per": "day"}]});
    calls(
        underscore,
        &[
            (limit_with_underscore, OK),
            (limit_with_underscore, OK),
            (plain, OVER),
        ],
    );
    let fails = json!({"limits": [{"count": 1, "per": "day"}], "by": "consumer", "when_key_missing": "fail"});
    calls(fails, &[(plain, "plugin_failed 500"), (alice, OK)]);
    let nothing =
        json!({"limits": [{"count": 1, "per": "day"}], "by": "consumer", "when_key_missing": "nothing"});
    calls(nothing, &[(plain, OK), (plain, OK), (alice, OK), (alice, OVER)]);
    let rules = json!({"limits": [
        {"count": 1, "per": {"seconds": 37}, "by": {"template": "${http_x_tenant}"}},
        {"count": 2, "per": {"seconds": 37}, "by": "consumer"},
    ]});
    calls(
        rules,
        &[
            (tenant, OK),
            (tenant, OVER),
            (alice, OK),
            (alice, OK),
            (alice, OVER),
            (plain, "plugin_failed 500"),
        ],
    );
    let lenient = json!({
        "limits": [{"count": "$http_x_limit", "per": "day"}], "on_failure": "pass", "reject": false,
    });
    calls(
        lenient,
        &[
            (plain, OK),
            (limit_of_two, OK),
            (limit_of_two, OK),
            (limit_of_two, OK),
        ],
    );
}

#[test]
fn headers_tell_about_the_limits() {
    let windows = json!({
        "limits": [
            {"count": 2, "per": "minute", "headers": {"limit": "L-M", "remaining": "R-M"}},
            {"count": 3, "per": "hour", "headers": {"limit": "L-H", "remaining": "R-H", "reset": "T-H"}},
        ],
        "message": "slow down",
    });
    let fractional = json!({
        "limits": [{"count": 1, "per": {"seconds": 20}, "headers": {"reset": "T"}}],
        "headers": {}, "fractional_reset": true,
    });
    // NOW is the first millisecond of minute 31 of the hour, so that an hour has 29 minutes left.
    let cases: [(Value, &[&[&str]]); 2] = [
        (
            windows,
            &[
                &[
                    "L-M: 2",
                    "R-M: 1",
                    "L-H: 3",
                    "R-H: 2",
                    "T-H: 1740",
                    "RateLimit-Limit: 2",
                    "RateLimit-Remaining: 1",
                    "RateLimit-Reset: 60",
                ],
                &[
                    "L-M: 2",
                    "R-M: 0",
                    "L-H: 3",
                    "R-H: 1",
                    "T-H: 1740",
                    "RateLimit-Limit: 2",
                    "RateLimit-Remaining: 0",
                    "RateLimit-Reset: 60",
                ],
                &[
                    "L-M: 2",
                    "R-M: 0",
                    "L-H: 3",
                    "R-H: 1",
                    "T-H: 1740",
                    "RateLimit-Limit: 2",
                    "RateLimit-Remaining: 0",
                    "RateLimit-Reset: 60",
                    "Retry-After: 60",
                ],
            ],
        ),
        (fractional, &[&["T: 20"], &["T: 20"]]),
    ];
    for (config, answers) in cases {
        let plugin = RateLimit::default();
        let filter = build(&plugin, &config).expect("valid");
        for expected in answers {
            let mut exchange = exchange();
            let outcome = filter.on_request(&mut exchange);
            assert_eq!(lines(&exchange.response_headers), *expected, "{config}");
            if let weir_plugin::Outcome::Refuse(refusal) = outcome {
                assert_eq!(refusal.message.as_deref(), config["message"].as_str());
            }
        }
    }
}

#[test]
fn headers_of_several_limits_are_told_once() {
    let plugin = RateLimit::default();
    let mut exchange = exchange();
    for (count, scope) in [(9, "all"), (5, "route")] {
        let config = json!({"limits": [{"count": count, "per": "hour"}], "scope": scope});
        let filter = build(&plugin, &config).expect("valid");
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
    }
    assert_eq!(
        lines(&exchange.response_headers),
        [
            "RateLimit-Limit: 5",
            "RateLimit-Remaining: 4",
            "RateLimit-Reset: 1740"
        ]
    );
}

/// The defect: keys made up for one limit reset the counts of another.
#[test]
fn a_flood_of_keys_leaves_the_counts_of_other_limits() {
    let plugin = RateLimit::of(4_096);
    let quiet = build(&plugin, &json!({"limits": [{"count": 1, "per": "second"}]})).expect("valid");
    let flooded =
        json!({"limits": [{"count": 9, "per": "year"}], "by": {"header": "x-tenant"}, "scope": "f"});
    let flooded = build(&plugin, &flooded).expect("valid");
    let mut exchange = exchange();
    assert_eq!(word(&quiet.on_request(&mut exchange)), "continue");
    for number in 0..20_000 {
        prepare(&mut exchange, "GET /", &[("x-tenant", &number.to_string())]);
        let _outcome = flooded.on_request(&mut exchange);
    }
    prepare(&mut exchange, "GET /", &[]);
    assert_eq!(word(&quiet.on_request(&mut exchange)), "rate_limited 429");
    let evictions = plugin.evictions().expect("it has counters");
    assert!(evictions.load(std::sync::atomic::Ordering::Relaxed) > 5_000);
}

#[test]
fn resets_are_told_as_asked() {
    fn later() -> u64 {
        NOW_MS + 7_655
    }
    let plugin = RateLimit::default();
    for (fractional, expected) in [(true, "T: 12.34"), (false, "T: 13")] {
        let config = json!({
            "limits": [{"count": 9, "per": {"seconds": 20}, "headers": {"reset": "T"}}],
            "headers": {}, "fractional_reset": fractional, "scope": fractional.to_string(),
        });
        let filter = build(&plugin, &config).expect("valid");
        assert_eq!(word(&filter.on_request(&mut exchange())), "continue");
        let mut exchange = Exchange::new(later, 1);
        exchange.request.client = "10.0.0.1".parse().expect("an address");
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(lines(&exchange.response_headers), [expected]);
    }
}

#[test]
fn counters_outlive_instances_and_are_shared_by_scope() {
    let plugin = RateLimit::default();
    let config = |scope: Value| json!({"limits": [{"count": 1, "per": "year"}], "scope": scope});
    for (scope, expected) in [
        (json!("group"), "continue"),
        (json!("other"), "continue"),
        (Value::Null, "continue"),
        (json!("group"), "rate_limited 429"),
        (json!("instance"), "rate_limited 429"),
    ] {
        let filter = build(&plugin, &config(scope.clone())).expect("valid");
        assert_eq!(word(&filter.on_request(&mut exchange())), expected, "{scope}");
    }
}

#[test]
fn no_more_calls_pass_than_the_limit_says() {
    let plugin = RateLimit::default();
    let filter = build(&plugin, &json!({"limits": [{"count": 1000, "per": "year"}]})).expect("valid");
    let passed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut exchange = exchange();
                    (0..500)
                        .filter(|_| word(&filter.on_request(&mut exchange)) == "continue")
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert_eq!(passed, 1000);
}

#[test]
fn configurations_are_checked() {
    let plugin = RateLimit::default();
    assert!(build(&plugin, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (empty(), vec![""]),
        (json!({"limits": []}), vec!["limits"]),
        (
            json!({"limits": [{"count": 1, "per": "week"}]}),
            vec!["limits[0].per"],
        ),
        (
            json!({"limits": [{"count": 1, "per": {"seconds": 0}}], "status": 199}),
            vec!["status", "limits[0].per"],
        ),
        (
            json!({"limits": [{"count": 1, "per": "day"}], "headers": {"limit": "a b"}}),
            vec!["headers"],
        ),
        (
            json!({"limits": [{"count": 1, "per": "day"}], "spelling": 1}),
            vec!["spelling"],
        ),
    ] {
        assert_eq!(refused_at(&plugin, &config), places, "{config}");
    }
}

fn grouped(exchange: &mut Exchange, name: &str, group: Option<&str>) {
    let mut known = identity(name, Some("k"));
    let mut consumer = (*known.consumer).clone();
    consumer.group = group.map(str::to_owned);
    known.consumer = Arc::new(consumer);
    exchange.identity = Some(known);
}

#[test]
fn groups_and_several_things_together_are_counted_by() {
    let by_group: &[Step<'_>] = &[
        (|it| grouped(it, "alice", Some("gold")), "continue"),
        (|it| grouped(it, "bob", Some("gold")), "rate_limited 429"),
        (|it| grouped(it, "bob", Some("silver")), "continue"),
        // Without a group the address counts.
        (|it| grouped(it, "alice", None), "continue"),
        (plain, "rate_limited 429"),
    ];
    let limits = json!([{"count": 1, "per": "hour"}]);
    calls(json!({"limits": limits, "by": "consumer-group"}), by_group);
    let together: &[Step<'_>] = &[
        (plain, "continue"),
        (plain, "rate_limited 429"),
        (elsewhere, "continue"),
        (tenant, "continue"),
        (tenant, "rate_limited 429"),
        (other_tenant, "continue"),
    ];
    let by = json!({"all": ["ip", {"header": "x-tenant"}]});
    calls(json!({"limits": limits, "by": by}), together);
}

#[test]
fn windows_of_the_clock_have_any_length_and_retries_are_spread() {
    let plugin = RateLimit::default();
    let config = json!({
        "limits": [{"count": 1, "per": {"clock-seconds": 7}}],
        "retry_after_jitter_seconds": 1000,
    });
    let filter = build(&plugin, &config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /", &[]);
    let left_ms = 7_000 - exchange.unix_ms() % 7_000;
    assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
    let told = |exchange: &Exchange, name: &[u8]| -> u64 {
        let value = exchange.response_headers.get(name).expect("told");
        std::str::from_utf8(value)
            .expect("text")
            .parse()
            .expect("a number")
    };
    assert_eq!(told(&exchange, b"ratelimit-reset"), left_ms.div_ceil(1_000));
    let mut waits: Vec<u64> = (0..20)
        .map(|_| {
            exchange.response_headers.clear();
            assert_eq!(word(&filter.on_request(&mut exchange)), "rate_limited 429");
            told(&exchange, b"retry-after")
        })
        .collect();
    waits.sort_unstable();
    waits.dedup();
    assert!(
        waits.len() > 10 && waits.iter().all(|wait| *wait <= 1_007),
        "{waits:?}"
    );
    assert_eq!(
        refused_at(
            &plugin,
            &json!({"limits": [{"count": 1, "per": {"clock-seconds": 0}}]})
        ),
        ["limits[0].per"]
    );
}

#[test]
fn gateways_share_windows_that_begin_for_all_at_once() {
    let redis = json!({"redis": {"host": "h"}});
    for (config, faults) in [
        (
            json!({"limits": [{"count": 1, "per": "minute"}], "across": "gateways"}),
            vec![],
        ),
        (
            json!({"limits": [{"count": 1, "per": {"sliding-seconds": 5}}], "across": "gateways"}),
            vec![],
        ),
        (
            json!({"limits": [{"count": 1, "per": "day"}, {"count": 1, "per": {"seconds": 5}}], "across": "gateways"}),
            vec!["limits[1].per"],
        ),
        (
            json!({"limits": [{"count": 1, "per": "day"}], "across": "gateways", "store": redis}),
            vec!["across"],
        ),
    ] {
        let plugin = RateLimit::default();
        match build(&plugin, &config) {
            Ok(_) => assert!(faults.is_empty(), "{config}"),
            Err(_) => assert_eq!(refused_at(&plugin, &config), faults, "{config}"),
        }
    }
}

#[test]
fn what_others_have_counted_counts_here() {
    let plugin = RateLimit::default();
    let config = json!({"limits": [{"count": 5, "per": "hour"}], "by": "ip", "across": "gateways"});
    let filter = build(&plugin, &config).expect("valid");
    let shared = plugin.shared_counts().expect("it shares");
    assert!(!shared.has_counted());
    let call = || word(&filter.on_request(&mut exchange()));
    assert_eq!(call(), "continue");
    assert!(shared.has_counted() && shared.is_open());
    let now_ms = exchange().unix_ms();
    let count = shared.report(false, now_ms)[0];
    assert_eq!(count.count, 1);
    shared.learn(count.name, count.end_ms, 3, now_ms);
    assert_eq!(call(), "continue");
    assert_ne!(call(), "continue");
    // Another gateway calls the counter the same.
    let other = RateLimit::default();
    let filter = build(&other, &config).expect("valid");
    filter.on_request(&mut exchange());
    let shared = other.shared_counts().expect("it shares");
    assert_eq!(shared.report(true, now_ms)[0].name, count.name);
}

/// A POST of this query.
fn query(text: &str) -> Exchange {
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        "POST /graphql",
        &[("Content-Type", "application/json")],
    );
    exchange.request.body = Some(json!({"query": text}).to_string().into_bytes());
    exchange
}

#[test]
fn queries_count_as_what_they_cost() {
    let config = json!({
        "limits": [{"count": 9, "per": {"sliding-seconds": 60}, "headers": {"remaining": "Left"}}],
        "headers": {},
        "graphql": {"header": "Cost", "max": 7, "factor": 1.5},
    });
    let filter = build(&RateLimit::default(), &config).expect("valid");
    for (text, expected, told) in [
        ("{ a { b } }", "continue", vec!["Cost: 5", "Left: 4"]),
        ("{ a { b } }", "rate_limited 429", vec!["Cost: 5", "Left: 4"]),
        // What is too dear for the rest does not pass, and takes nothing of it.
        (
            "{ a { b { c } } }",
            "rate_limited 429",
            vec!["Cost: 6", "Left: 4"],
        ),
        ("{ a { b { c { d } } } }", "forbidden 403", vec!["Cost: 8"]),
        ("{ a }", "continue", vec!["Cost: 3", "Left: 1"]),
        ("no", "reply 400", vec![]),
    ] {
        let mut exchange = query(text);
        assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{text}");
        assert_eq!(lines(&exchange.response_headers), told, "{text}");
    }
}

#[test]
fn queries_that_a_service_may_read_otherwise_are_refused() {
    let config = json!({"limits": [{"count": 100, "per": "minute"}], "graphql": {}});
    let filter = build(&RateLimit::default(), &config).expect("valid");
    for (line, body, expected) in [
        ("POST /", "{\"query\":\"{a}\"}", "continue"),
        ("POST /?query=%7Bb%7D", "{\"query\":\"{a}\"}", "reply 400"),
        ("POST /?%76ariables=%7B%7D", "{\"query\":\"{a}\"}", "reply 400"),
        ("POST /?x=1", "{\"query\":\"{a}\"}", "continue"),
        ("POST /", "[{\"query\":\"{a}\"}]", "reply 400"),
        ("POST /", "{\"query\":\"{a}\",\"variables\":\"{}\"}", "reply 400"),
        ("POST /", "{\"query\":\"{a}\",\"Query\":\"{b}\"}", "reply 400"),
        ("POST /", "{\"query\":\"{a}\",\"query\":\"{b}\"}", "reply 400"),
        ("GET /?query=%7Ba%7D", "", "continue"),
        ("GET /?query=%7Ba%7D&query=%7Bb%7D", "", "reply 400"),
        ("GET /", "", "reply 400"),
        ("PUT /", "{\"query\":\"{a}\"}", "answered 405"),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, line, &[("Content-Type", "application/json")]);
        if !body.is_empty() {
            exchange.request.body = Some(body.as_bytes().to_vec());
        }
        assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{line} {body}");
    }
    // A body that is not at hand yet is asked for; one of a GET is not even read.
    for (line, expected) in [("POST /", "body"), ("GET /?query=%7Ba%7D", "reply 400")] {
        let mut exchange = exchange();
        prepare(&mut exchange, line, &[]);
        exchange.request.has_body = true;
        assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{line}");
    }
}

/// The schema is asked for once, by the call that needs it first; without one, queries are refused.
#[test]
fn weights_need_the_schema_of_the_service() {
    let config = json!({
        "limits": [{"count": 100, "per": "minute"}],
        "graphql": {"header": "Cost", "services": [{
            "introspection": {"url": "http://127.0.0.1:1980/graphql", "host": "gql.example"},
            "weights": [{"path": "Query.products", "multiply_arguments": ["first"]}],
        }]},
    });
    let schema = json!({"data": {"__schema": {
        "queryType": {"name": "Query"},
        "types": [
            {"name": "Query", "fields": [{"name": "products", "type": {"name": "Products"}}]},
            {"name": "Products", "fields": [{"name": "name", "type": {"name": "String"}}]},
        ],
    }}});
    for (status, body, expected) in [
        (200, schema.to_string(), "continue"),
        (503, schema.to_string(), "plugin_failed 500"),
        (200, "{}".to_owned(), "plugin_failed 500"),
    ] {
        let filter = build(&RateLimit::default(), &config).expect("valid");
        let text = "{ products(first: 7) { name } }";
        let mut first = query(text);
        let asked = filter.on_request(&mut first);
        let Outcome::Subrequest(asked) = asked else {
            panic!("{asked:?}");
        };
        let message = String::from_utf8_lossy(&asked.message).into_owned();
        assert!(
            message.starts_with("POST /graphql HTTP/1.1\r\nHost: gql.example\r\n"),
            "{message}"
        );
        let mut second = query(text);
        assert_eq!(word(&filter.on_request(&mut second)), "wait", "another one waits");
        first.subrequest_response = Some(Some(SubrequestResponse {
            status,
            body: body.into_bytes(),
            ..SubrequestResponse::default()
        }));
        assert_eq!(word(&filter.on_request(&mut first)), expected);
        assert_eq!(word(&filter.on_request(&mut second)), expected);
        if expected == "continue" {
            for exchange in [first, second] {
                let told = lines(&exchange.response_headers);
                assert!(told.contains(&"Cost: 9".to_owned()), "{told:?}");
            }
        }
    }
}

#[test]
fn costs_of_queries_are_checked() {
    let with = |graphql: Value| json!({"limits": [{"count": 1, "per": "minute"}], "graphql": graphql});
    let service = |service: Value| json!({"services": [service]});
    let url = json!({"url": "http://a/"});
    let services = |weights: &dyn Fn(usize) -> Value| -> Vec<Value> {
        let one = |it| json!({"service": format!("s{it}"), "introspection": url, "weights": weights(it)});
        (0..10_001).map(one).collect()
    };
    for (graphql, places) in [
        (json!({}), vec![]),
        (
            json!({"factor": 0, "header": "a b"}),
            vec!["graphql.factor", "graphql.header"],
        ),
        (
            service(json!({"weights": [{"path": "A.b"}]})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": {"url": "ftp://a"}})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": {"url": "http://a/", "host": "a\r\nb"}})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": url, "weights": [{"path": "A..b"}]})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": url, "weights": [{"path": "A.b", "add": -1}]})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": url, "weights": [{"path": "A.b.c"}]})),
            vec![],
        ),
        // Of services with the same weights, one counts.
        (
            json!({"services": services(&|_| json!([{"path": "A.b"}]))}),
            vec![],
        ),
        (
            json!({"services": services(&|it| json!([{"path": "A.b", "add": it}]))}),
            vec!["graphql.services"],
        ),
    ] {
        assert_eq!(
            refused_at(&RateLimit::default(), &with(graphql.clone())),
            places,
            "{}",
            graphql.to_string().chars().take(200).collect::<String>()
        );
    }
}
