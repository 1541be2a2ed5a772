//! What `concurrency-limit` does to calls, counting in this process.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

#[test]
fn so_many_calls_may_be_under_way() {
    let burst = json!({"limits": [{"count": 2, "burst": 2}], "delay_seconds": 0.25});
    let header = json!({"limits": [{"count": 1, "by": {"template": "$http_x_user"}}]});
    let failing = json!({"limits": [{"count": "$http_x_count"}]});
    let passing = json!({"limits": [{"count": "$http_x_count"}], "on_failure": "pass"});
    type Call<'c> = (&'c [(&'c str, &'c str)], &'c str);
    let cases: [(&Value, &[Call<'_>]); 5] = [
        (
            &json!({"limits": [{"count": 1}], "status": 429}),
            &[(&[], "continue"), (&[], "rate_limited 429")],
        ),
        (
            &burst,
            &[
                (&[], "continue"),
                (&[], "continue"),
                (&[], "delay 250"),
                (&[], "delay 250"),
                (&[], "rate_limited 503"),
            ],
        ),
        (
            &header,
            &[
                (&[("X-User", "a")], "continue"),
                (&[("X-User", "b")], "continue"),
                (&[("X-User", "a")], "rate_limited 503"),
                (&[], "plugin_failed 500"),
            ],
        ),
        (
            &failing,
            &[
                (&[("X-Count", "1")], "continue"),
                (&[("X-Count", "0")], "plugin_failed 500"),
            ],
        ),
        (&passing, &[(&[], "continue")]),
    ];
    for (config, calls) in cases {
        let filter = build(&ConcurrencyLimit::default(), config).expect("valid");
        let mut under_way = Vec::new();
        for (headers, expected) in calls {
            let mut exchange = exchange();
            prepare(&mut exchange, "GET /", headers);
            let outcome = filter.on_request(&mut exchange);
            assert_eq!(word(&outcome), *expected, "{config} {headers:?}");
            under_way.push(exchange);
        }
        drop(under_way);
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", calls[0].0);
        assert_eq!(
            word(&filter.on_request(&mut exchange)),
            calls[0].1,
            "{config} afterwards"
        );
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({"limits": []}), &["limits"][..]),
        (
            json!({"limits": [{"count": 1}], "delay_seconds": -1, "status": 1}),
            &["status", "delay_seconds"],
        ),
    ] {
        assert_eq!(
            refused_at(&ConcurrencyLimit::default(), &config),
            places,
            "{config}"
        );
    }
    let config = example(include_str!("mod.rs"));
    assert!(build(&ConcurrencyLimit::default(), &config).is_ok());
}
