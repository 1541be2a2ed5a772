//! Counts are exact, per route, status and consumer; CSV has the same numbers as JSON.

use super::{FLAGS, all_calls, configure, query, repeat, totals};
use crate::support::{Call, Weir, until, upstream};
use serde_json::{Value, json};

/// What is asked of the mix of calls below: metric, dimension, filter, and the values.
type Expected = (&'static str, &'static str, Value, &'static [(&'static str, f64)]);

fn expected() -> Vec<Expected> {
    let none = || json!({});
    vec![
        (
            "calls",
            "route",
            none(),
            &[
                ("ok", 60_000.0),
                ("teapot", 20_000.0),
                ("keyed", 18_500.0),
                ("_unmatched", 1_000.0),
                ("list", 480.0),
                ("broken", 20.0),
            ],
        ),
        (
            "calls",
            "status",
            none(),
            &[
                ("200", 77_480.0),
                ("418", 20_000.0),
                ("401", 1_500.0),
                ("404", 1_000.0),
                ("502", 20.0),
            ],
        ),
        (
            "calls",
            "consumer",
            json!({ "service": "own" }),
            &[("", 81_520.0), ("alice", 9_000.0), ("bob", 8_000.0)],
        ),
        ("refused", "service", json!({ "class": "5xx" }), &[("own", 20.0)]),
        (
            "calls",
            "plugin",
            json!({ "refusal": "unauthenticated" }),
            &[("key-auth", 1_500.0)],
        ),
        (
            "calls",
            "refusal",
            none(),
            &[
                ("unauthenticated", 1_500.0),
                ("no_route", 1_000.0),
                ("upstream_connect", 20.0),
            ],
        ),
        ("calls", "method", none(), &[("GET", 100_000.0)]),
        ("calls", "protocol", none(), &[("http/1.1", 100_000.0)]),
        (
            "unique_callers",
            "service",
            json!({ "service": "shop" }),
            &[("shop", 1.0)],
        ),
    ]
}

/// Calls that a worker's ring surely holds, however late the aggregator is on a busy machine.
const PIECE: usize = 15_000;

#[test]
fn counts_are_exact() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let weir = Weir::start_with(folder.path(), &FLAGS, &[("WEIR_WORKERS", "2")]);
    let (alice, bob) = ("X-Api-Key: alice-key\r\n", "X-Api-Key: bob-key\r\n");
    let mix = [
        ("/ok", "", 60_000_usize, 200_u16),
        ("/teapot", "", 20_000, 418),
        ("/keyed", alice, 9_000, 200),
        ("/keyed", bob, 8_000, 200),
        ("/keyed", "", 1_500, 401),
        ("/nowhere/else", "", 1_000, 404),
        ("/list", "", 480, 200),
        ("/broken", "", 20, 502),
    ];
    let mut sent = 0;
    for (path, header, count, status) in mix {
        for piece in (0..count).step_by(PIECE) {
            let piece = PIECE.min(count - piece);
            repeat(&weir.proxy(), path, header, piece, status);
            sent += piece;
            until("all calls are counted", || all_calls(&weir) == sent as f64);
        }
    }
    assert_eq!(sent, 100_000);
    for (metric, dimension, filter, expected) in expected() {
        let expected = expected
            .iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect();
        assert_eq!(
            totals(&weir, metric, dimension, &filter),
            expected,
            "{metric} by {dimension}"
        );
    }
    let none = json!({});
    let shares = totals(&weir, "share_4xx", "service", &json!({ "service": "own" }));
    assert!((shares["own"] - 21_500.0 / 98_520.0).abs() < 1e-9, "{shares:?}");
    let estimated = totals(&weir, "calls", "agent", &none);
    // An estimate by samples: those that find no room, because the aggregator is late on a busy machine, are missing in
    // it.
    assert!(
        (50_000.0..=100_000.0).contains(&estimated["curl"]),
        "{estimated:?}"
    );
    let asked =
        json!({ "metrics": ["upstream_p50", "latency_p99"], "from": "-1h", "filter": { "route": "list" } });
    let total = query(&weir, &asked)["frames"][0]["total"].clone();
    assert!(total["upstream_p50"].as_f64() > Some(0.0), "{total}");
    assert!(
        total["latency_p99"].as_f64() >= total["upstream_p50"].as_f64(),
        "{total}"
    );
    let metrics = Call::get(&weir.status(), "/metrics").make().expect(200).body;
    assert!(
        metrics.contains("\nweir_analytics_calls_dropped_total 0\n"),
        "{metrics}"
    );
}

#[test]
fn csv_has_the_same_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let weir = Weir::start(folder.path(), &FLAGS);
    repeat(&weir.proxy(), "/ok", "", 30, 200);
    repeat(&weir.proxy(), "/teapot", "", 10, 418);
    until("all calls are counted", || all_calls(&weir) == 40.0);
    let asked =
        json!({ "metrics": ["calls", "share_4xx"], "from": "-10m", "step": "1m", "group_by": ["route"] });
    let answer = query(&weir, &asked);
    let csv = Call::new("POST", &weir.console(), "/api/v1/analytics/query")
        .header("Accept", "text/csv")
        .body(&asked.to_string())
        .make()
        .expect(200);
    assert!(
        csv.header("content-type")
            .expect("a type")
            .starts_with("text/csv")
    );
    let mut lines = csv.body.lines();
    assert_eq!(lines.next(), Some("time,route,calls,share_4xx"));
    let mut expected = Vec::new();
    for frame in answer["frames"].as_array().expect("frames") {
        let times = answer["times"].as_array().expect("times").iter();
        for (place, time) in times.enumerate() {
            let value = |metric: &str| match &frame["values"][metric][place] {
                Value::Null => String::new(),
                value => value.as_f64().expect("a number").to_string(),
            };
            let route = frame["group"]["route"].as_str().expect("a route");
            expected.push(format!(
                "{time},{route},{},{}",
                value("calls"),
                value("share_4xx")
            ));
        }
    }
    assert_eq!(lines.collect::<Vec<_>>(), expected);
    let sum: f64 = answer["frames"][0]["values"]["calls"]
        .as_array()
        .expect("values")
        .iter()
        .filter_map(Value::as_f64)
        .sum();
    assert_eq!(sum, 30.0);
}

#[test]
fn wrong_queries_are_refused_with_the_field() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let weir = Weir::start(folder.path(), &FLAGS);
    for (asked, status, part) in [
        (
            json!({ "metrics": ["hits"], "from": "-1h" }),
            422,
            "metrics: there is no metric 'hits'",
        ),
        (
            json!({ "metrics": ["calls"], "from": "-1h", "group_by": ["consumer", "target"] }),
            422,
            "not counted by",
        ),
        (
            json!({ "metrics": ["calls"], "from": "soon" }),
            422,
            "from: 'soon' is not a valid time",
        ),
        (
            json!({ "metrics": ["calls"], "from": "-1h", "colour": 1 }),
            422,
            "colour: unknown field `colour`",
        ),
    ] {
        let call = Call::new("POST", &weir.console(), "/api/v1/analytics/query").body(&asked.to_string());
        let problem = call.make().expect(status).json();
        assert!(
            problem["detail"].as_str().expect("a detail").contains(part),
            "{problem}"
        );
    }
    let definition = Call::get(&weir.console(), "/api/v1/analytics/definition")
        .make()
        .expect(200)
        .json();
    assert!(
        definition["metrics"].as_array().expect("metrics").len() > 20,
        "{definition}"
    );
}

#[test]
fn analytics_can_be_off() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    for flags in [
        &["-c", "weir.yaml", "--console", "127.0.0.1:0"][..],
        &[
            "-c",
            "weir.yaml",
            "--console",
            "127.0.0.1:0",
            "--data",
            "data",
            "--analytics",
            "off",
        ],
    ] {
        let weir = Weir::start(folder.path(), flags);
        repeat(&weir.proxy(), "/ok", "", 5, 200);
        let asked = json!({ "metrics": ["calls"], "from": "-1h" });
        let call = Call::new("POST", &weir.console(), "/api/v1/analytics/query").body(&asked.to_string());
        let problem = call.make().expect(404).json();
        assert_eq!(problem["type"], "urn:weir:problem:analytics-off");
        let metrics = Call::get(&weir.status(), "/metrics").make().expect(200).body;
        assert!(!metrics.contains("weir_analytics"), "{metrics}");
        assert!(!folder.path().join("data/analytics").exists());
    }
}
