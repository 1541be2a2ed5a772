//! `rate-limit` as its users see it.

mod queries;
mod windows;

use super::*;
use serde_json::json;
use weir_plugin::{Exchange, Outcome, RefusalKind, SubrequestResponse};
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
fn calls_are_counted_by_the_configured_key() {
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
fn headers_describe_the_limits() {
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
fn headers_of_several_limits_are_set_once() {
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
fn resets_are_written_as_configured() {
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
    assert!(build(&plugin, &example(include_str!("../mod.rs"))).is_ok());
    for (config, places) in [
        (empty(), vec![""]),
        (json!({"limits": []}), vec!["limits"]),
        (
            json!({"limits": [{"count": 1, "per": "fortnight"}]}),
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

#[test]
fn a_spent_quota_is_told_apart_from_a_reached_rate() {
    let limits =
        |second: u64, day: u64| json!([{"count": second, "per": "second"}, {"count": day, "per": "day"}]);
    for (quota, limits, expected) in [
        (true, limits(5, 1), RefusalKind::QuotaSpent),
        (true, limits(1, 5), RefusalKind::RateLimited),
        (
            true,
            json!([{"count": 1, "per": {"clock-seconds": 604_800}}]),
            RefusalKind::QuotaSpent,
        ),
        (false, limits(5, 1), RefusalKind::RateLimited),
    ] {
        let config = json!({"limits": limits, "quota": quota});
        let plugin = RateLimit::default();
        let filter = build(&plugin, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[]);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue", "{config}");
        prepare(&mut exchange, "GET /", &[]);
        let Outcome::Refuse(refusal) = filter.on_request(&mut exchange) else {
            panic!("expected a refusal: {config}");
        };
        assert_eq!((refusal.status, refusal.kind), (429, expected), "{config}");
    }
}
