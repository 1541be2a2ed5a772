//! What is counted, as golden text; bounds; and that many workers count together.

use super::*;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_plugin::{CallRecord, Exchange, LogEntry, Outcome, RouteInfo};
use weir_plugins_caching::proxy_cache::{Caches, ProxyCache};
use weir_plugins_testkit::{build, example, exchange, identity, prepare, refused_at};

fn record(status: u16, total_us: u64, upstream_us: Option<u64>) -> CallRecord<'static> {
    CallRecord {
        status,
        bytes_in: 100,
        bytes_out: 1_000,
        total_us,
        upstream_us,
        upstream_status: upstream_us.map(|_| status),
        upstream: weir_plugins_testkit::record()
            .upstream
            .filter(|_| upstream_us.is_some()),
        ..weir_plugins_testkit::record()
    }
}

fn call(route: &str, consumer: Option<&str>) -> Exchange {
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /p", &[("X-Team", "a\"b\\")]);
    exchange.route = Some(Arc::new(RouteInfo {
        name: route.into(),
        service: "s1".into(),
        ..RouteInfo::default()
    }));
    exchange.identity = consumer.map(|name| identity(name, None));
    exchange
}

fn filter(registry: &Arc<MetricRegistry>, config: &Value) -> Arc<dyn Filter> {
    build(&Prometheus::new(Arc::clone(registry)), config).expect("a good configuration")
}

fn count(filter: &dyn Filter, exchange: &mut Exchange, record: &CallRecord<'_>) {
    let mut entries: Vec<LogEntry> = Vec::new();
    filter.on_log(exchange, record, &mut entries);
    assert!(entries.is_empty());
}

fn families() -> Value {
    json!({
        "exposition": "t",
        "families": [
            {
                "name": "t_calls_total", "help": "Calls\nby \\ team.", "value": "calls",
                "labels": [
                    {"name": "route", "value": "$route_name"},
                    {"name": "code", "value": "$status"},
                    {"name": "source", "value": {"upstream": "service", "gateway": "own"}},
                    {"name": "zone", "value": "z\"1"},
                    {"name": "team", "value": "$http_x_team"},
                ],
            },
            {
                "name": "t_ms", "help": "Time.", "value": "total_ms", "buckets": [1, 5],
                "labels": [{"name": "type", "value": "request"}, {"name": "route", "value": "$route_name"}],
            },
            {
                "name": "t_ms", "help": "Time.", "value": "upstream_ms", "buckets": [1, 5],
                "labels": [{"name": "type", "value": "upstream"}, {"name": "route", "value": "$route_name"}],
            },
            {"name": "t_bytes", "help": "Bytes.", "value": "bytes_out"},
        ],
    })
}

#[test]
fn calls_are_reported_as_prometheus_reads_them() {
    let registry = Arc::new(MetricRegistry::default());
    let filter = filter(&registry, &families());
    for (route, status, total, upstream, is_gateway) in [
        ("r1", 200, 1_000, Some(900), false),
        ("r1", 200, 1_001, Some(1_000), false),
        ("r1", 503, 9_000, None, true),
        ("r2", 200, 5_500, Some(5_200), false),
    ] {
        let mut exchange = call(route, None);
        exchange.response.is_gateway = is_gateway;
        count(&*filter, &mut exchange, &record(status, total, upstream));
    }
    let expected = r#"# HELP t_bytes Bytes.
# TYPE t_bytes counter
t_bytes 4000
# HELP t_calls_total Calls\nby \\ team.
# TYPE t_calls_total counter
t_calls_total{route="r1",code="200",source="service",zone="z\"1",team="a\"b\\"} 2
t_calls_total{route="r1",code="503",source="own",zone="z\"1",team="a\"b\\"} 1
t_calls_total{route="r2",code="200",source="service",zone="z\"1",team="a\"b\\"} 1
# HELP t_ms Time.
# TYPE t_ms histogram
t_ms_bucket{type="request",route="r1",le="1"} 1
t_ms_bucket{type="request",route="r1",le="5"} 2
t_ms_bucket{type="request",route="r1",le="+Inf"} 3
t_ms_count{type="request",route="r1"} 3
t_ms_sum{type="request",route="r1"} 11.001
t_ms_bucket{type="request",route="r2",le="1"} 0
t_ms_bucket{type="request",route="r2",le="5"} 0
t_ms_bucket{type="request",route="r2",le="+Inf"} 1
t_ms_count{type="request",route="r2"} 1
t_ms_sum{type="request",route="r2"} 5.5
t_ms_bucket{type="upstream",route="r1",le="1"} 2
t_ms_bucket{type="upstream",route="r1",le="5"} 2
t_ms_bucket{type="upstream",route="r1",le="+Inf"} 2
t_ms_count{type="upstream",route="r1"} 2
t_ms_sum{type="upstream",route="r1"} 1.9
t_ms_bucket{type="upstream",route="r2",le="1"} 0
t_ms_bucket{type="upstream",route="r2",le="5"} 0
t_ms_bucket{type="upstream",route="r2",le="+Inf"} 1
t_ms_count{type="upstream",route="r2"} 1
t_ms_sum{type="upstream",route="r2"} 5.2
"#;
    assert_eq!(registry.render("t"), expected);
    assert_eq!(registry.render_all(), expected);
    assert_eq!(registry.render("another"), "");
}

#[test]
fn instances_of_one_family_are_reported_as_one() {
    let registry = Arc::new(MetricRegistry::default());
    let one = |labels: Value| {
        let config = json!({"exposition": "t", "families": [
            {"name": "t_total", "help": "Calls.", "value": "calls", "labels": labels},
        ]});
        filter(&registry, &config)
    };
    let plain = one(json!([{"name": "route", "value": "$route_name"}, {"name": "consumer", "value": ""}]));
    let by_consumer = one(json!([
        {"name": "route", "value": "$route_name"}, {"name": "consumer", "value": "$consumer_name"},
    ]));
    count(&*plain, &mut call("r1", Some("alice")), &record(200, 1, None));
    count(&*by_consumer, &mut call("r1", None), &record(200, 1, None));
    count(
        &*by_consumer,
        &mut call("r2", Some("alice")),
        &record(200, 1, None),
    );
    let text = registry.render("t");
    assert!(text.contains("t_total{route=\"r1\",consumer=\"\"} 2\n"), "{text}");
    assert!(
        text.contains("t_total{route=\"r2\",consumer=\"ALICE\"} 1\n"),
        "{text}"
    );
    assert_eq!(text.matches("# TYPE").count(), 1);
}

#[test]
fn workers_count_together_and_reloads_go_on() {
    let registry = Arc::new(MetricRegistry::default());
    let config =
        json!({"exposition": "t", "families": [{"name": "t_total", "help": "Calls.", "value": "calls"}]});
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let filter = filter(&registry, &config);
                for _ in 0..1_000 {
                    count(&*filter, &mut call("r1", None), &record(200, 1, None));
                }
            });
        }
    });
    assert!(registry.render("t").ends_with("t_total 4000\n"));
}

#[test]
fn series_are_bounded_and_make_room() {
    let registry = Arc::new(MetricRegistry::default());
    let config = json!({"exposition": "t", "families": [
        {"name": "t_total", "help": "Calls.", "value": "calls", "labels": [{"name": "who", "value": "$arg_who"}]},
    ]});
    let filter = filter(&registry, &config);
    let mut exchange = exchange();
    let mut call = |who: &str| {
        prepare(&mut exchange, &format!("GET /?who={who}"), &[]);
        count(&*filter, &mut exchange, &record(200, 1, None));
    };
    for who in 0..family_set::MAX_SERIES + 50 {
        call(&who.to_string());
    }
    let text = registry.render("t");
    assert_eq!(text.matches("t_total{").count(), family_set::MAX_SERIES + 1);
    assert!(text.contains("t_total{who=\"other\"} 50\n"));
    // All but one are not called for a while.
    for _ in 0..12 {
        call("7");
        registry.render("t");
    }
    call("fresh");
    let text = registry.render("t");
    assert!(text.contains("t_total{who=\"fresh\"} 1\n") && text.contains("t_total{who=\"7\"} 13\n"));
    assert_eq!(text.matches("t_total{").count(), 2, "the others made room");
    // One that was evicted begins at zero.
    call("8");
    assert!(registry.render("t").contains("t_total{who=\"8\"} 1\n"));
}

#[test]
fn series_expire_that_are_not_called_for_a_while() {
    static NOW_MS: AtomicUsize = AtomicUsize::new(0);
    let registry = Arc::new(MetricRegistry::default());
    registry.set_clock(|| NOW_MS.load(Ordering::Relaxed) as u64);
    let family = |name: &str, expire: Value| {
        json!({"name": name, "help": "Calls.", "value": "calls", "expire_seconds": expire,
            "labels": [{"name": "who", "value": "$arg_who"}]})
    };
    let all =
        json!({"exposition": "all", "families": [family("long", 10.into()), family("short", 1.into())]});
    let some =
        json!({"exposition": "some", "families": [family("never", Value::Null), family("soon", 1.into())]});
    let filters = [all, some].map(|config| filter(&registry, &config));
    let mut exchange = exchange();
    // The ends of calls, the times of scrapes, and the output of the two expositions.
    let cases: [(Option<usize>, usize, [&str; 4]); 6] = [
        (Some(5_000), 5_000, ["long 1", "short 1", "never 1", "soon 1"]),
        (None, 6_000, ["long 1", "short 1", "never 1", "soon 1"]),
        (None, 6_001, ["long 1", "", "never 1", ""]),
        (Some(7_000), 7_000, ["long 2", "short 2", "never 2", "soon 2"]),
        (None, 17_001, ["", "", "never 2", ""]),
        (Some(18_000), 18_000, ["long 1", "short 1", "never 3", "soon 3"]),
    ];
    for (ended_ms, now_ms, expected) in cases {
        NOW_MS.store(now_ms, Ordering::Relaxed);
        if let Some(ended_ms) = ended_ms {
            prepare(&mut exchange, "GET /?who=a", &[]);
            let record = CallRecord {
                started_ms: ended_ms as u64 - 2,
                ..record(200, 2_000, None)
            };
            for filter in &filters {
                count(&**filter, &mut exchange, &record);
            }
        }
        let text = registry.render("all") + &registry.render("some");
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected: Vec<String> = (expected.iter())
            .filter_map(|it| it.split_once(' '))
            .map(|(name, count)| format!("{name}{{who=\"a\"}} {count}"))
            .collect();
        assert_eq!(samples, expected, "at {now_ms}");
    }
}

#[test]
fn what_is_configured_no_more_is_let_go() {
    let registry = Arc::new(MetricRegistry::default());
    let of = |number: usize| {
        let labels: Vec<Value> = (0..=number % 3)
            .map(|label| json!({"name": format!("l{label}"), "value": "$route_name"}))
            .collect();
        let family =
            json!({"name": "t_total", "help": number.to_string(), "value": "calls", "labels": labels});
        filter(&registry, &json!({"exposition": "t", "families": [family]}))
    };
    // Configurations that are only checked leave nothing.
    let first = of(0);
    for number in 1..1_000 {
        drop(of(number));
    }
    count(&*first, &mut call("r", None), &record(200, 1, None));
    assert_eq!(
        registry.sets(),
        2,
        "the first, and the last, which goes with the next"
    );
    // Series with counts are reported for a while, and do not share the cells of those before them.
    for number in 1..1_000 {
        count(&*of(number), &mut call("r", None), &record(200, 1, None));
    }
    assert!(registry.sets() < 40, "{}", registry.sets());
    let text = registry.render("t");
    assert!(text.contains("t_total{l0=\"r\"} 12\n"), "{text}");
    assert!(
        text.contains("t_total{l0=\"r\",l1=\"r\",l2=\"r\"} 11\n"),
        "{text}"
    );
    // One that comes back in time goes on.
    count(&*of(999), &mut call("r", None), &record(200, 1, None));
    assert!(registry.render("t").contains("t_total{l0=\"r\"} 13\n"));
}

#[test]
fn values_are_cut() {
    let registry = Arc::new(MetricRegistry::default());
    let config = json!({"exposition": "t", "families": [
        {"name": "t_total", "help": "Calls.", "value": "calls", "labels": [{"name": "who", "value": "$arg_who"}]},
    ]});
    let mut exchange = exchange();
    prepare(&mut exchange, &format!("GET /?who={}", "x".repeat(5_000)), &[]);
    count(&*filter(&registry, &config), &mut exchange, &record(200, 1, None));
    let line = format!("t_total{{who=\"{}\"}} 1\n", "x".repeat(255));
    assert!(registry.render("t").ends_with(&line));
}

#[test]
fn the_endpoint_purges_where_it_is_asked_to() {
    let cache = ProxyCache::default();
    let caches = cache.caches();
    let config = json!({
        "key": ["$uri"], "zone": "z", "ttl_seconds": 60,
        "purged_as": {"name": "routes/1", "store": "memory"},
    });
    let _instance = build(&cache, &config).expect("a good configuration");
    let registry = Arc::new(MetricRegistry::default());
    let endpoint = build(
        &MetricsEndpoint::new(registry, caches),
        &json!({"path": "/metrics", "purge_below": "/purge/"}),
    )
    .expect("a good configuration");
    for (call, status) in [
        ("PURGE /purge/memory/1/abc", 200),
        ("PURGE /purge/disk/1/abc", 400),
        ("PURGE /purge/disk/2/abc", 404),
        ("PURGE /purge/memory/2/abc", 404),
        ("PURGE /purge/other/1/abc", 400),
        ("PURGE /purge/memory/1", 400),
        ("PURGE /purge/memory//abc", 400),
        ("PURGE /other", 404),
        ("GET /purge/memory/1/abc", 404),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, call, &[]);
        let found = match endpoint.on_request(&mut exchange) {
            Outcome::Reply(reply) => reply.status,
            Outcome::Refuse(refusal) => refusal.status,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, status, "{call}");
    }
}

#[test]
fn the_endpoint_answers_with_an_exposition() {
    let registry = Arc::new(MetricRegistry::default());
    registry.set_preface("t", |targets, out| out.push_str(&format!("targets {targets}\n")));
    let counting = filter(
        &registry,
        &json!({"exposition": "t", "families": [], "target_health": true}),
    );
    let endpoint = build(
        &MetricsEndpoint::new(Arc::clone(&registry), Caches::default()),
        &json!({"exposition": "t"}),
    )
    .expect("a good configuration");
    let mut exchange = exchange();
    let mut ask = || {
        assert!(matches!(endpoint.on_request(&mut exchange), Outcome::Suspend(_)));
        match endpoint.on_request(&mut exchange) {
            Outcome::Reply(reply) => (reply.status, String::from_utf8(reply.body).expect("text")),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(), (200, "targets true\n".to_owned()));
    // When no instance asks for it any more, it is no longer reported.
    drop(counting);
    assert_eq!(ask(), (200, "targets false\n".to_owned()));
}

/// A caller that goes leaves a job behind that makes nothing.
#[test]
fn a_text_is_made_only_for_a_caller_that_waits() {
    let registry = Arc::new(MetricRegistry::default());
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let queue = Arc::clone(&jobs);
    registry.set_runner(move |job| queue.lock().expect("no panic").push(job));
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    registry.set_preface("t", move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let endpoint = build(
        &MetricsEndpoint::new(Arc::clone(&registry), Caches::default()),
        &json!({"exposition": "t"}),
    )
    .expect("a good configuration");
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let mut exchange = exchange();
        match endpoint.on_request(&mut exchange) {
            Outcome::Suspend(wait) => waiting.push((exchange, wait)),
            other => panic!("{other:?}"),
        }
    }
    waiting.truncate(1);
    jobs.lock().expect("no panic").drain(..).for_each(|job| job());
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

#[test]
fn configurations_are_checked() {
    let plugin = Prometheus::new(Arc::default());
    build(&plugin, &example(include_str!("mod.rs"))).expect("the example is good");
    build(&plugin, &json!({})).expect("the defaults are good");
    let family = |family: Value| json!({"families": [family]});
    for (config, place) in [
        (
            family(json!({"name": "1x", "help": "", "value": "calls"})),
            "families[0].name",
        ),
        (
            family(
                json!({"name": "x", "help": "", "value": "calls", "labels": [{"name": "a-b", "value": ""}]}),
            ),
            "families[0].labels",
        ),
        (
            family(json!({"name": "x", "help": "", "value": "total_ms", "buckets": [5, 5]})),
            "families[0].buckets",
        ),
        (
            family(json!({"name": "x", "help": "", "value": "sheep"})),
            "families[0].value",
        ),
    ] {
        assert_eq!(refused_at(&plugin, &config), [place], "{config}");
    }
}
