//! What `response-rate-limit` does to calls, counting in this process.

use super::*;
use serde_json::json;
use weir_flow::rate_limit::across::{Count, CountExchange};
use weir_plugin::SharedCount;
use weir_plugins_testkit::*;

/// What a call sees that uses so much: the word of the request work, the response's status and headers.
fn call(filter: &dyn Filter, used: &str) -> (String, u16, Vec<String>) {
    let mut exchange = exchange();
    let word = word(&filter.on_request(&mut exchange));
    exchange.response.status = 200;
    exchange.response.headers.append(b"X-Used", used.as_bytes());
    exchange.merge_response_headers();
    filter.on_response(&mut exchange);
    let mut lines = lines(&exchange.response.headers);
    lines.sort();
    (word, exchange.response.status, lines)
}

#[test]
fn use_is_counted_and_limited() {
    let config = json!({"limits": {"v": [{"count": 5, "per": "hour"}]}});
    let filter = build(&ResponseRateLimit::default(), &config).expect("valid");
    for (used, status, before, after) in [
        ("v=1, w=9", 200, 5, 4),
        ("", 200, 4, 4),
        ("v=x", 200, 4, 4),
        ("v=6", 200, 4, 0),
        ("v=1", 429, -2, 0),
        ("w=1", 200, -2, 0),
    ] {
        let expected = [
            "X-RateLimit-Limit-v-hour: 5".to_owned(),
            format!("X-RateLimit-Remaining-v-hour: {after}"),
            format!("X-RateLimit-Remaining-v: {before}"),
        ];
        let got = call(&*filter, used);
        assert_eq!(got, ("continue".into(), status, expected.to_vec()), "{used}");
    }
}

/// The calls to several gateways that share one limit: the gateway, the call's usage, its status, and the amount left.
/// All gateways synchronize before each call.
#[test]
fn gateways_count_together() {
    let config = json!({"limits": {"v": [{"count": 5, "per": "hour"}]}, "across": "gateways"});
    let gateways = [ResponseRateLimit::default(), ResponseRateLimit::default()];
    let filters = [0, 1].map(|at: usize| build(&gateways[at], &config).expect("valid"));
    let exchange = CountExchange::new(1);
    let merge = || {
        // Twice, so that the first gateway learns what the second reported after it.
        for (at, gateway) in gateways.iter().enumerate().chain(gateways.iter().enumerate()) {
            let shared = gateway.shared_counts().expect("it shares");
            let counts: Vec<Count> = shared.report(true, NOW_MS).iter().map(counted).collect();
            let name = ["one", "other"][at];
            for ((name, end_ms), others) in exchange.merge((name, 1), true, &counts, NOW_MS).others {
                shared.learn(name, end_ms, others, NOW_MS);
            }
        }
    };
    for (at, used, status, left) in [
        (0, "v=3", 200, 2),
        (1, "v=1", 200, 4),
        (0, "v=1", 200, 0),
        (1, "v=1", 429, 0),
        (0, "v=1", 429, 0),
        (1, "", 200, 0),
    ] {
        let (_, got, lines) = call(&*filters[at], used);
        let header = format!("X-RateLimit-Remaining-v-hour: {left}");
        assert_eq!(
            (got, lines.contains(&header)),
            (status, true),
            "{at} {used} {lines:?}"
        );
        merge();
    }
}

fn counted(of: &SharedCount) -> Count {
    Count {
        window: (of.name, of.end_ms),
        until_ms: of.until_ms,
        count: of.count,
    }
}

#[test]
fn calls_are_refused_when_anything_is_used_up() {
    let config = json!({
        "limits": {"v": [{"count": 1, "per": "day"}], "a": [{"count": 9, "per": "day"}]},
        "refuse_when_used_up": true,
        "limit_headers": false,
    });
    let filter = build(&ResponseRateLimit::default(), &config).expect("valid");
    let headers = ["X-RateLimit-Remaining-a: 9", "X-RateLimit-Remaining-v: 1"].map(str::to_owned);
    assert_eq!(call(&*filter, "v=1"), ("continue".into(), 200, headers.to_vec()));
    let mut exchange = exchange();
    let outcome = filter.on_request(&mut exchange);
    assert_eq!(word(&outcome), "rate_limited 429");
    assert!(exchange.response_headers.is_empty());
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({"limits": {}}), &["limits"][..]),
        (
            json!({"limits": {"a b": []}, "header": ""}),
            &["header", "limits", "limits"],
        ),
        (
            json!({"limits": {"v": [{"count": 1, "per": "day"}]}, "across": "gateways",
                "store": {"redis": {"host": "r"}}}),
            &["across"],
        ),
    ] {
        assert_eq!(
            refused_at(&ResponseRateLimit::default(), &config),
            places,
            "{config}"
        );
    }
    let config = example(include_str!("mod.rs"));
    assert!(build(&ResponseRateLimit::default(), &config).is_ok());
}
