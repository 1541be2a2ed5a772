//! Groups and several things together, windows of the clock, and counts of several gateways.

use super::*;

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
fn weeks_end_on_sunday() {
    const WEEK_MS: u64 = 7 * 86_400_000;
    let plugin = RateLimit::default();
    let filter = build(&plugin, &json!({"limits": [{"count": 1, "per": "week"}]})).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /", &[]);
    // 1970-01-01 was a Thursday.
    let left_ms = WEEK_MS - (exchange.unix_ms() + 3 * 86_400_000) % WEEK_MS;
    assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
    let reset = exchange
        .response_headers
        .get(b"ratelimit-reset")
        .expect("the header");
    assert_eq!(reset, left_ms.div_ceil(1_000).to_string().as_bytes());
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
    let header = |exchange: &Exchange, name: &[u8]| -> u64 {
        let value = exchange.response_headers.get(name).expect("the header");
        std::str::from_utf8(value)
            .expect("text")
            .parse()
            .expect("a number")
    };
    assert_eq!(header(&exchange, b"ratelimit-reset"), left_ms.div_ceil(1_000));
    let mut waits: Vec<u64> = (0..20)
        .map(|_| {
            exchange.response_headers.clear();
            assert_eq!(word(&filter.on_request(&mut exchange)), "rate_limited 429");
            header(&exchange, b"retry-after")
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
