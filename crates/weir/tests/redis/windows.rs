//! Two gateways together allow exactly what one limit says.

use crate::support::{Gateway, Redis, Upstream, is_installed, native, passed};

#[test]
fn two_gateways_share_one_limit_exactly() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let store = format!(
        "store: {{redis: {{host: 127.0.0.1, port: {}, connect_timeout_ms: 30000, timeout_ms: 30000}}, on_unavailable: refuse}}",
        redis.port
    );
    for (plugin, expected) in [
        ("rate-limit: {limits: [{count: 50, per: day}], STORE}", 50),
        (
            "rate-limit: {limits: [{count: 50, per: {seconds: 600}}], STORE}",
            50,
        ),
        (
            "rate-limit: {limits: [{count: 50, per: {sliding-seconds: 86400}}], STORE}",
            50,
        ),
        (
            "rate-limit: {limits: [{count: 90, per: month}, {count: 40, per: {seconds: 600}}], STORE}",
            40,
        ),
        (
            "throttle: {rate_per_second: 0.001, burst: 30, delay: false, STORE}",
            31,
        ),
    ] {
        assert!(redis.ask("FLUSHALL").starts_with("+OK"));
        let document = native(&upstream, &plugin.replace("STORE", &store));
        let gateways = [Gateway::start(&document), Gateway::start(&document)];
        let gateways: Vec<&Gateway> = gateways.iter().collect();
        assert_eq!(passed(&gateways, 160, "/"), expected, "{plugin}");
        // Nothing stays for ever.
        let keys = redis.ask("KEYS *");
        let names = keys.lines().filter(|line| line.starts_with("weir:"));
        let mut count = 0;
        for name in names {
            let left = redis.ask(&format!("PTTL {name}"));
            assert!(left.starts_with(':') && !left.starts_with(":-"), "{name}: {left}");
            count += 1;
        }
        assert!(count > 0, "{keys}");
    }
}

#[test]
fn headers_show_what_is_left_everywhere() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let plugin = format!(
        "rate-limit: {{limits: [{{count: 3, per: {{seconds: 600}}}}], store: {{redis: {{host: 127.0.0.1, port: {}}}}}}}",
        redis.port
    );
    let document = native(&upstream, &plugin);
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    for (place, status, left) in [(0, 200, 2), (1, 200, 1), (0, 200, 0), (1, 429, 0), (0, 429, 0)] {
        let (got, answer) = gateways[place].get("/", "");
        assert_eq!(got, status, "{answer}");
        assert!(
            answer.contains(&format!("RateLimit-Remaining: {left}\r\n")),
            "{answer}"
        );
    }
    let ok = gateways[0].metric(&format!(
        "weir_redis_calls_total{{server=\"127.0.0.1:{}\",result=\"answered\"}}",
        redis.port
    ));
    assert_eq!(ok, 3);
}

#[test]
fn graphql_and_responses_share_their_counts_too() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("X-Used: v=2\r\n");
    let store = format!(
        "store: {{redis: {{host: 127.0.0.1, port: {}, connect_timeout_ms: 30000, timeout_ms: 30000}}, on_unavailable: refuse}}",
        redis.port
    );
    let plugin = format!("response-rate-limit: {{limits: {{v: [{{count: 5, per: day}}]}}, {store}}}");
    let document = native(&upstream, &plugin);
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    // What is left before the call. What a call has used is sent once its answer has gone out.
    for (place, left, status) in [(0, 5, 200), (1, 3, 200), (0, 1, 200), (1, -1, 429)] {
        crate::support::until("the use before is counted", || {
            let used = redis.ask("EVAL \"local n=0 for _,k in ipairs(redis.call('KEYS','*')) do n=n+redis.call('GET',k) end return n\" 0");
            used.trim() == format!(":{}", 5 - left)
        });
        let (got, answer) = gateways[place].get("/", "");
        assert_eq!(got, status, "{answer}");
        assert!(
            answer.contains(&format!("X-RateLimit-Remaining-v: {left}\r\n")),
            "{answer}"
        );
    }
}
