//! Counts that each gateway keeps, and settles with the others now and then.

use crate::support::{Gateway, Redis, Upstream, is_installed, native, passed, until};

fn limit(port: u16, count: usize) -> String {
    format!(
        "rate-limit: {{limits: [{{count: {count}, per: day}}], store: {{redis: {{host: 127.0.0.1, port: {port}, timeout_ms: 300, connect_timeout_ms: 300}}, sync_interval_seconds: 0.05}}}}"
    )
}

/// The sum of all counters there.
fn counted(redis: &Redis) -> usize {
    let script = "EVAL \"local n=0 for _,k in ipairs(redis.call('KEYS','*')) do n=n+redis.call('GET',k) end return n\" 0";
    let answer = redis.ask(script);
    answer.trim().trim_start_matches(':').parse().unwrap_or(0)
}

#[test]
fn gateways_learn_of_each_other() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let document = native(&upstream, &limit(redis.port, 100));
    let (first, second) = (Gateway::start(&document), Gateway::start(&document));
    assert_eq!(passed(&[&first], 64, "/"), 64);
    until("the first has settled", || counted(&redis) == 64);
    // The second learns of it with its first settlement.
    assert_eq!(second.call("/"), 200);
    until("the second has settled", || counted(&redis) == 65);
    until("the second knows", || {
        let (status, answer) = second.get("/", "");
        let left: usize = answer
            .split_once("RateLimit-Remaining: ")
            .and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok())
            .expect("told");
        status == 200 && left < 40
    });
    let rest = passed(&[&second], 80, "/");
    until("all is settled", || counted(&redis) >= 100);
    assert_eq!(
        counted(&redis),
        100,
        "alone, no gateway exceeds the limit: {rest} more passed"
    );
    // Each other gateway may exceed it by what it allows in one interval.
    until("the first refuses, too", || first.call("/") == 429);
    first.end();
    second.end();
}

#[test]
fn counts_outlive_an_outage_and_a_gateway() {
    if !is_installed() {
        return;
    }
    let mut redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let document = native(&upstream, &limit(redis.port, 20));
    let gateway = Gateway::start(&document);
    assert_eq!(passed(&[&gateway], 8, "/"), 8);
    until("it has settled", || counted(&redis) == 8);
    redis.kill();
    assert_eq!(passed(&[&gateway], 8, "/"), 8, "it counts on");
    redis.restart();
    // The server has lost its counts; what came since is there.
    until("what was counted meanwhile is settled", || counted(&redis) == 8);
    // What was counted last is written before it ends.
    let before = counted(&redis);
    assert_eq!(gateway.call("/"), 200);
    gateway.end();
    assert_eq!(counted(&redis), before + 1);
}

#[test]
fn refused_calls_settle_too() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    // The limit stands before what refuses all calls.
    let plugin = limit(redis.port, 100);
    let document = native(
        &upstream,
        &format!("{{{plugin}}}, {{request-termination: {{status: 503}}}}"),
    );
    let gateway = Gateway::start(&document);
    assert_eq!(gateway.call("/"), 503);
    until("it has settled", || counted(&redis) == 1);
}
