//! The metrics from outside: a scrape reports what workers record.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_telemetry::access_log::{AccessEntry, AccessLog};
use weir_telemetry::calls::AnalyticsStats;
use weir_telemetry::log_sinks::{LogSinkKind, LogSinkStats};
use weir_telemetry::metrics::names::Metric;
use weir_telemetry::metrics::{
    Observation, ProtocolError, Refusal, Registry, RegistryOptions, SeriesId, StreamKind, StreamResult,
    TargetSample, TargetSource,
};
use weir_telemetry::ocsp::{OcspResult, OcspStats};
use weir_telemetry::redis::RedisStats;

fn registry(series_limit: usize) -> Registry {
    Registry::new(RegistryOptions {
        series_limit,
        version: "0.1.0".into(),
        revision: "abc123".into(),
    })
}

/// One answer that was stapled.
fn one_stapled() -> Arc<OcspStats> {
    let stats = Arc::new(OcspStats::default());
    stats.add(OcspResult::Taken);
    stats
}

/// A target that is healthy.
struct OneTarget;

impl TargetSource for OneTarget {
    fn visit(&self, visit: &mut dyn FnMut(TargetSample<'_>)) {
        visit(TargetSample {
            upstream: "u",
            target: "t",
            address: ([127, 0, 0, 1], 80).into(),
            is_healthy: true,
        });
    }

    fn visit_limits(&self, visit: &mut dyn FnMut(&str, u32, u32)) {
        visit("u", 20, 3);
    }
}

fn scrape(registry: &Registry) -> String {
    let mut text = String::new();
    registry.render(&mut text).expect("a String takes everything");
    text
}

/// The value of the sample that begins with `sample`; `None` if there is none.
fn value(text: &str, sample: &str) -> Option<u64> {
    let mut found = text
        .lines()
        .filter_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    let value = found.next()?.parse().expect("a whole number");
    assert_eq!(found.next(), None, "{sample} appears twice");
    Some(value)
}

fn observation(status: u16) -> Observation {
    Observation {
        status,
        ..Observation::default()
    }
}

#[test]
fn the_exposition_is_golden() {
    let registry = registry(2);
    let (one, two) = (registry.worker(), registry.worker());
    let ids = registry.allocate([("inventory", "things"), ("", "say \"hi\"\\\n"), ("late", "comer")]);
    registry.reload_failed(1_700_000_000);
    registry.reload_succeeded(7, "9f86d081", 1_700_000_100);

    one.connections_accepted.add(3);
    one.connections_active.increment();
    two.connections_accepted.increment();
    two.connections_active.increment();
    one.upstream_connections_opened.increment();
    one.upstream_connections_active.increment();
    two.upstream_connections_reused.add(2);
    two.upstream_retries.increment();
    one.protocol_error(ProtocolError::BadRequest);
    two.refusal(Refusal::NoRoute);

    let proxied = Observation {
        status: 200,
        total_us: 1_500,
        upstream_us: 1_460,
        bytes_in: 100,
        bytes_out: 2_000,
    };
    one.record(ids[0], &proxied);
    two.record(ids[0], &proxied);
    two.record(
        ids[0],
        &Observation {
            status: 418,
            ..proxied
        },
    );
    one.record(
        ids[1],
        &Observation {
            status: 429,
            total_us: 15,
            ..Observation::default()
        },
    );
    one.record(ids[2], &observation(204));
    two.record(
        SeriesId::UNMATCHED,
        &Observation {
            status: 404,
            total_us: 12,
            ..Observation::default()
        },
    );

    let log = AccessLog::to_writer(std::io::sink()).unwrap();
    registry.observe_access_log(log.stats());
    log.handle().log(&AccessEntry::default());
    assert!(log.close(std::time::Duration::from_secs(60)));

    let sent = Arc::new(LogSinkStats::default());
    registry.observe_log_sinks(Arc::clone(&sent));
    sent.add_sent(LogSinkKind::Http, 3);
    sent.add_dropped(LogSinkKind::Http, 1);
    sent.add_retry(LogSinkKind::Http);

    let sessions = one.streams.of(StreamKind::Tls);
    sessions.bytes_in.add(10);
    sessions.bytes_out.add(20);
    sessions.ended(StreamResult::Done);
    two.streams.datagrams_dropped.increment();

    let redis = Arc::new(RedisStats::default());
    redis.server("127.0.0.1:6379").answered.fetch_add(2, Relaxed);
    registry.observe_redis(redis);
    registry.observe_evictions([("rate-limit", Arc::new(AtomicU64::new(3)))]);
    registry.certificates_end(vec![("a.test".into(), 60)]);

    registry.store_followed(0, true);
    registry.observe_targets(Arc::new(OneTarget));
    let analytics = Arc::new(AnalyticsStats::default());
    analytics.dropped.fetch_add(4, Relaxed);
    registry.observe_analytics(analytics);
    registry.observe_ocsp(one_stapled());

    let text = scrape(&registry);
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/exposition.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &text).unwrap();
    }
    assert_eq!(
        text,
        std::fs::read_to_string(golden).unwrap(),
        "set UPDATE_GOLDEN=1 to take over a change"
    );
    for metric in Metric::ALL {
        assert!(
            text.contains(&format!("# TYPE {} ", metric.name())),
            "{} is never exposed",
            metric.name()
        );
    }
}

#[test]
fn a_fresh_registry_claims_nothing() {
    let text = scrape(&registry(10));
    for absent in [
        "weir_config_info",
        "weir_config_last_reload",
        "weir_route_",
        "_duration_",
        "access_log",
    ] {
        assert!(!text.contains(absent), "{absent}");
    }
    assert_eq!(value(&text, "weir_config_generation"), Some(0));
    assert_eq!(value(&text, "weir_requests_total"), Some(0));
}

#[test]
fn workers_are_summed() {
    let registry = registry(10);
    let ids = registry.allocate([("s", "a"), ("s", "b")]);
    let threads: Vec<_> = (1..=4)
        .map(|n| {
            let (worker, ids) = (registry.worker(), ids.clone());
            std::thread::spawn(move || {
                for _ in 0..n * 100 {
                    worker.record(ids[0], &observation(200));
                    worker.record(ids[1], &observation(503));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let text = scrape(&registry);
    assert_eq!(value(&text, "weir_requests_total"), Some(2_000));
    assert_eq!(registry.totals().requests, 2_000);
    for (route, class, code) in [("a", "2xx", "200"), ("b", "5xx", "503")] {
        let labels = format!(r#"{{service="s",route="{route}",class="{class}",code="{code}"}}"#);
        assert_eq!(
            value(&text, &format!("weir_route_requests_total{labels}")),
            Some(1_000)
        );
    }
}

#[test]
fn counters_survive_a_reload_and_pairs_beyond_the_limit_share_one_series() {
    let registry = registry(2);
    let worker = registry.worker();
    let first = registry.allocate([("s", "a"), ("s", "b")]);
    worker.record(first[0], &observation(200));

    let second = registry.allocate([("s", "b"), ("s", "c"), ("s", "a"), ("s", "d")]);
    assert_eq!([second[0], second[2]], [first[1], first[0]]);
    second.iter().for_each(|&id| worker.record(id, &observation(200)));

    let text = scrape(&registry);
    let requests = |text: &str, service: &str, route: &str| {
        let labels = format!(r#"{{service="{service}",route="{route}",class="2xx",code="200"}}"#);
        value(text, &format!("weir_route_requests_total{labels}"))
    };
    assert_eq!(requests(&text, "s", "a"), Some(2));
    assert_eq!(requests(&text, "s", "b"), Some(1));
    assert_eq!(requests(&text, "s", "c"), None);
    assert_eq!(requests(&text, "_other", "_other"), Some(2));
    assert_eq!(value(&text, "weir_metrics_series"), Some(2));
    assert_eq!(value(&text, "weir_metrics_series_limit"), Some(2));
    assert_eq!(value(&text, "weir_metrics_series_overflow"), Some(2));

    // `a` is replaced by `e`, which starts from zero; a request still running on `a` then has no series.
    let third = registry.allocate([("s", "b"), ("s", "e")]);
    let text = scrape(&registry);
    assert_eq!(requests(&text, "s", "a"), None);
    assert_eq!(requests(&text, "s", "e"), None);
    worker.record(third[1], &observation(200));
    worker.record(first[0], &observation(200));
    let text = scrape(&registry);
    assert_eq!(requests(&text, "s", "e"), Some(1));
    assert_eq!(requests(&text, "_other", "_other"), Some(3));
    assert_eq!(value(&text, "weir_metrics_series_overflow"), Some(0));
    assert_eq!(value(&text, "weir_requests_total"), Some(7));
}

#[test]
fn ten_thousand_changes_leave_no_trace_but_the_limit() {
    let registry = registry(50);
    let worker = registry.worker();
    let mut name = String::new();
    for change in 0..10_000 {
        name.clear();
        write!(name, "route-{change}").unwrap();
        let id = registry.allocate([("s", name.as_str())])[0];
        assert_ne!(id, SeriesId::OTHER);
        worker.record(id, &observation(200));
    }
    let text = scrape(&registry);
    assert_eq!(value(&text, "weir_metrics_series"), Some(50));
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("weir_route_requests_total"))
            .count(),
        50
    );
}

#[test]
fn a_scrape_during_counting_and_reloads_never_shows_a_counter_of_another_pair() {
    let registry = Arc::new(registry(1));
    let worker = registry.worker();
    let counting = registry.clone();
    let thread = std::thread::spawn(move || {
        for round in 0..500_u16 {
            // Even rounds are of pair `even` and only see 200; odd ones of pair `odd` and only see 503.
            let (name, status) = if round % 2 == 0 {
                ("even", 200)
            } else {
                ("odd", 503)
            };
            let id = counting.allocate([("s", name)])[0];
            (0..50).for_each(|_| worker.record(id, &observation(status)));
        }
    });
    loop {
        let ended = thread.is_finished();
        let text = scrape(&registry);
        assert!(!text.contains(r#"route="even",class="5xx""#), "{text}");
        assert!(!text.contains(r#"route="odd",class="2xx""#), "{text}");
        if ended {
            break;
        }
    }
    thread.join().unwrap();
    assert_eq!(registry.totals().requests, 25_000);
}

#[test]
fn ends_of_certificates_are_reported() {
    let registry = registry(1);
    assert!(!scrape(&registry).contains("weir_certificate_expires_seconds"));
    registry.certificates_end(vec![("a.test".into(), 60), ("b.test".into(), -5)]);
    let text = scrape(&registry);
    for line in [
        "weir_certificate_expires_seconds{name=\"a.test\"} 60",
        "weir_certificate_expires_seconds{name=\"b.test\"} -5",
    ] {
        assert!(text.lines().any(|it| it == line), "{text}");
    }
}
