//! Answers of callouts in a Redis: real gateways share them, and go on without it.

use crate::support::{Gateway, Redis, Upstream, is_installed, send, until};
use std::sync::atomic::Ordering;

/// `request-callout` of Kong's paid edition, which asks `asked`.
fn document(upstream: &Upstream, asked: &Upstream, port: u16) -> String {
    let redis = format!("{{host: 127.0.0.1, port: {port}, timeout: 300}}");
    format!(
        "_format_version: '3.0'\nservices:\n- name: s\n  url: http://{}\n  routes:\n  - name: r\n    paths: [/]\n    plugins:\n    \
         - {{name: request-callout, config: {{callouts: [{{name: c, request: {{url: 'http://{}/x?q=$(query_params.q)'}}}}], \
         cache: {{strategy: redis, cache_ttl: 60, redis: {redis}}}}}}}\n",
        upstream.address, asked.address
    )
}

#[test]
fn gateways_share_answers_and_ask_without_the_redis() {
    if !is_installed() {
        return;
    }
    let mut redis = Redis::start(&[]);
    let (upstream, asked) = (Upstream::start(""), Upstream::start(""));
    let document = document(&upstream, &asked, redis.port);
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    let questions = || asked.calls.load(Ordering::SeqCst);
    let call = |gateway: &Gateway, path: &str| {
        let (status, answer) = send(&gateway.address, "GET", path, "");
        assert_eq!(status, 200, "{path}: {answer}");
    };
    call(&gateways[0], "/?q=1");
    assert_eq!(questions(), 1);
    // It is written after the answer.
    until("it is kept", || {
        redis.ask("KEYS weir:callout:*").starts_with("*1")
    });
    for gateway in &gateways {
        call(gateway, "/?q=1");
    }
    assert_eq!(questions(), 1, "the other gateway's answer is used");
    call(&gateways[1], "/?q=2");
    assert_eq!(questions(), 2, "another request has another answer");
    until("both are kept", || {
        redis.ask("KEYS weir:callout:*").starts_with("*2")
    });
    let keys = redis.ask("KEYS weir:callout:*");
    let key = keys
        .lines()
        .find(|line| line.starts_with("weir:"))
        .expect("a key")
        .to_owned();
    let left: u64 = redis
        .ask(&format!("TTL {key}"))
        .trim()
        .trim_start_matches(':')
        .parse()
        .expect("a number");
    assert!((1..=60).contains(&left), "{left}");
    // What is no answer counts as nothing.
    for key in keys.lines().filter(|line| line.starts_with("weir:")) {
        redis.ask(&format!("SET {key} nonsense"));
    }
    call(&gateways[0], "/?q=1");
    assert_eq!(questions(), 3);
    // Without the Redis, servers are asked each time.
    redis.kill();
    call(&gateways[0], "/?q=2");
    call(&gateways[1], "/?q=2");
    assert_eq!(questions(), 5);
    redis.restart();
    until("answers are kept again", || {
        let before = questions();
        call(&gateways[0], "/?q=2");
        questions() == before
    });
}
